"""Lines that hold no diagnosis: drugs, procedures, laboratory values, normal and negated findings, remarks.

Holds: why a line yields no code, in words. Refuses: taking anything off a line that holds a diagnosis.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.abbreviations import expand
from alpha_id_runtime.understanding.cues import Cues, folded_words, is_word, load_cues, take_off
from alpha_id_runtime.understanding.tables import LazyPattern

if TYPE_CHECKING:
    import re

    from alpha_id_runtime.model import Certainty

_FILLER = LazyPattern(
    r"\b(?:seit|am|im|vom|bis|ab|zuletzt|aktuell|derzeit|uhr|und|ca|etwa|von|unter|mit|tnm|uicc|stadium)\b|[\W\d_]"
)
# These reasons hold although a disease is named: "kein Hinweis auf Pneumonie".
_EVEN_IF_ILL = ("negated finding", "value", "no diagnosis")
_DENIED = ("a negated finding",)
_FIGURES = ("a drug", "a laboratory", *_DENIED)
_SEGMENT = LazyPattern(r"\s*(?:[,;](?!\d)|\s[-–/]\s|\s(?:und|sowie|u\.)\s)\s*")
_JOINED = LazyPattern(r"[,;]|\b(?:unter|bei|wegen|mit|nach|gegen|durch|aktuell)\b")
_COMMA = LazyPattern(r"[,;](?!\d)")
_WORDS_OF_A_DRUG = 4  # a name, a form, how it is given
# Kinds of words of which a line without a diagnosis is made, the one that gives the reason first. Those
# of the second say nothing without a figure: "Cholesterin" may stand for a raised one.
_HEADS = ("drug", "exam", "order", "aid", "paper", "normal", "lab", "measured", "score")
_DIGIT = LazyPattern(r"\d")
_WITH_FIGURES = {"lab": _DIGIT, "measured": _DIGIT, "score": LazyPattern(r"\d|\b(?:i{1,3}|iv|v)[ab]?\b")}
_PLAIN = (*_HEADS, "beside drug", "beside")
_NAME = LazyPattern(r"[a-zμ0-9]*[a-zμ][a-zμ0-9]*(?:[-/][a-zμ0-9]+)*\.?")
_JOINT = LazyPattern(r"[-/]")
_MARKED = LazyPattern(r"[↑↓⇑⇓⬆⬇↗↘?]")  # a value out of its range, or a doubt
_LEAST_COMPOUND = 6
_WORDS_OF_A_HEAD = 4
_REPORTED = ("exam", "lab", "measured", "score")
_BUT_THEN = LazyPattern(r"(?i)[,;]?\s(?:jedoch|aber|sondern|dafür|stattdessen)\s")
# These say nothing of what follows: "Keine Thrombose, Erysipel".
_ALONE = ("negated finding", "remark", "remark, no diagnosis", "value")
_DENIED_HERE = LazyPattern(
    r"\b(?:kein\w*|ohne)\b.*|\b(?:[\w-]+\s)?\w+\s(?:negativ|neg\.?|unauff\w*|o\.\s?b\.?)(?!\w)|\b\w+frei\b"
)


def why_no_diagnosis(text: str, certainty: Certainty | None) -> str | None:
    """Return in words why ``text`` (codes, numbering off) holds no diagnosis; None where it may hold one.

    A line of several parts holds none only if none of them does. A state after a procedure (``Z``) is a
    diagnosis: there are codes for it.
    """
    but = _BUT_THEN().search(text)
    if but and is_word(text[but.end() :]):  # "Kein Hinweis auf Fraktur, aber Prellung"
        return why_no_diagnosis(text[but.end() :], certainty)
    whole = _reason(text, certainty)
    if whole or certainty == "Z":
        return whole
    first: str | None = None
    for part in _SEGMENT().split(text):
        if is_word(part) and part != text:
            reason = _reason(part, certainty) or _report(part)
            if reason is None and first and not first.endswith(_ALONE) and not _may_be_ill(part):
                continue  # how it was done, or what was found: "Appendektomie, konventionell"
            if reason is None and not _kinds_said(fold(part)):  # "Leber, Milz unauffällig"
                return None
            first = first or reason
    return first


def _report(text: str) -> str | None:
    """Return the reason where ``text`` reports of an examination, named before a colon, and of no disease."""
    head, colon, rest = text.partition(":")
    words = folded_words(head)
    if not colon or not words or len(words) > _WORDS_OF_A_HEAD or _may_be_ill(rest):
        return None
    cues = load_cues()
    named = any(cues.words[kind].has(word) for word in words for kind in ("procedure", *_REPORTED))
    return cues.words["exam"].reason if named else None


def _may_be_ill(part: str) -> bool:
    """Return whether a part behind one without a diagnosis may hold one: it names a disease not denied."""
    cues = load_cues()
    low = fold(part)
    # What is denied stands behind its denial: "ohne Ödem" denies the oedema, no glioma before it.
    affirmed = _DENIED_HERE().sub(" ", low)
    return cues.words["disease"].found_in(affirmed) or (affirmed == low and _is_ill_in_full(part, cues))


def without_empty_parts(text: str) -> str:
    """Return ``text`` without its parts between commas that deny something or are but figures.

    Figures are a drug with its dose, or a measured value behind the first comma; one part is always left.
    """
    parts = _COMMA().split(text)
    if len(parts) == 1:
        return text
    kept = [part for place, part in enumerate(parts) if not _is_empty(part, first=place == 0)]
    return text if len(kept) in (0, len(parts)) else ",".join(kept)


def _is_empty(part: str, *, first: bool) -> bool:
    figures = not first and any(map(str.isdecimal, part))
    reason = _reason(part.strip(), None) if figures or "kein" in fold(part) else None
    return reason is not None and reason.startswith(_FIGURES if figures else _DENIED)


def _reason(text: str, certainty: Certainty | None) -> str | None:
    cues = load_cues()
    low = fold(text).strip(" .,;:!-")
    if not is_word(low):
        return "no word in the line"
    ill = cues.words["disease"].found_in(low)
    for cue in cues.patterns["no diagnosis"].among(low):
        certain = cue.reason.endswith(_EVEN_IF_ILL)
        if not ill or certain:
            match = cue.pattern().fullmatch(low)
            if match and _listed(cues, match) and (certain or not _is_ill_in_full(text, cues)):
                return cue.reason
    # "VHF, Z.n. Kardioversion": each part is asked by itself.
    is_one_part = len(_SEGMENT().split(text)) == 1
    if certainty != "Z" and is_one_part and _is_procedure(low, cues) and not _is_ill_in_full(text, cues):
        return cues.words["procedure"].reason
    known = None if certainty == "Z" else _only_known_words(low)
    return known or (None if ill else _only_figures(text))


def _is_ill_in_full(text: str, cues: Cues) -> bool:
    """Return whether ``text`` names a disease by its abbreviation ("MS stabil"); an implant is none."""
    written = (fold(each.text).replace("vorhandensein", "") for each in expand(text))
    return any(cues.words["disease"].found_in(low) for low in written)


def _listed(cues: Cues, match: re.Match[str]) -> bool:
    """Return whether each group that names a list holds words of that list only."""
    for kind, said in match.groupdict().items():
        words = cues.words[kind]
        if said and said not in words.whole and not all(map(words.has, _SEPARATOR().split(said))):
            return False
    return True


_SEPARATOR = LazyPattern(r"[\s/+,]+")


def _only_known_words(low: str) -> str | None:
    """Return the reason where every word of a folded line belongs to lines without a diagnosis."""
    said = _kinds_said(low)
    for kind in _HEADS:
        if kind in said and (kind not in _WITH_FIGURES or _WITH_FIGURES[kind]().search(low)):
            return load_cues().words[kind].reason
    return None


def _kinds_said(low: str) -> set[str]:
    """Return the kinds of the words of ``low``; none where a word is of no kind.

    One word that no list knows, and the line may hold a diagnosis: "Kontrolle bei Struma", "TSH erhöht".
    """
    first = _NAME().search(low)
    if not first or not _kinds_of(first.group()) or _MARKED().search(low):
        return set()
    for cue in load_cues().words["beside"].patterns.among(low):
        low = cue.pattern().sub(" ", low)
    said: set[str] = set()
    for word in _NAME().findall(low):
        kinds = _kinds_of(word)
        if not kinds:
            return set()
        said |= kinds
    return said


class _Vocabulary(NamedTuple):
    """The words of lines without a diagnosis: whole ones by their kinds, starts and ends of all kinds."""

    whole: dict[str, frozenset[str]]
    starts: tuple[str, ...]
    ends: tuple[str, ...]


@lru_cache(maxsize=1)
def _vocabulary() -> _Vocabulary:
    words = load_cues().words
    whole: dict[str, set[str]] = {}
    for kind in _PLAIN:
        for word in words[kind].whole:
            whole.setdefault(word, set()).add(kind)
    return _Vocabulary(
        {word: frozenset(kinds) for word, kinds in whole.items()},
        tuple(start for kind in _HEADS for start in words[kind].starts),
        tuple(end for kind in _HEADS for end in words[kind].ends),
    )


_UNKNOWN: frozenset[str] = frozenset()


@lru_cache(maxsize=8192)
def _kinds_of(word: str) -> frozenset[str]:
    """Return of which kinds a folded word is, or each of its parts at hyphen and slash; none: unknown."""
    known = _vocabulary()
    bare = word.rstrip(".")
    forms = (word, bare, word.strip("0123456789."), word.strip("0123456789"))
    if "" in forms:  # figures only, as in "4x2"
        return frozenset({"beside"})
    kinds = _UNKNOWN.union(*(known.whole.get(form, _UNKNOWN) for form in forms))
    if (
        not kinds
        and len(bare) >= _LEAST_COMPOUND
        and (bare.startswith(known.starts) or bare.endswith(known.ends))
    ):
        words = load_cues().words
        if not words["disease"].found_in(bare):
            kinds = frozenset(kind for kind in _HEADS if words[kind].is_built_so(bare))
    if not kinds and _JOINT().search(bare) and not load_cues().words["disease"].found_in(bare):
        parts = [_kinds_of(part) for part in _JOINT().split(bare) if part]
        kinds = _UNKNOWN.union(*parts) if all(parts) else _UNKNOWN
    return kinds


def _only_figures(text: str) -> str | None:
    """Return the reason where ``text``, which names no disease, is little but figures or a dose."""
    bare, notes = take_off(text)
    if notes and not is_word(_FILLER().sub(" ", fold(bare))):
        return f"nothing but {' and '.join(notes)}"
    if (
        "dose" in notes
        and not _JOINED().search(fold(bare))
        and sum(map(is_word, folded_words(bare))) <= _WORDS_OF_A_DRUG
    ):
        return "a drug with its dose"
    return None


def _is_procedure(low: str, cues: Cues) -> bool:
    """Return whether a word names a procedure and no other one a disease ("-zystektomie" is none)."""
    words = folded_words(low)
    procedure = cues.words["procedure"]
    others = [word for word in words if not procedure.has(word)]
    if len(others) == len(words) or cues.words["not procedure"].found_in(low):
        return False
    return not cues.words["disease"].found_in(" ".join(others))
