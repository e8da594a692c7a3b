"""Lines that hold no diagnosis: drugs, procedures, laboratory values, normal and negated findings, remarks.

Holds: why a line yields no code, in words. Refuses: taking anything off a line that holds a diagnosis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alpha_id_runtime.text import fold
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


def why_no_diagnosis(text: str, certainty: Certainty | None) -> str | None:
    """Return in words why ``text`` (codes, numbering off) holds no diagnosis; None where it may hold one.

    A line of several parts holds none only if none of them does. A state after a procedure (``Z``) is a
    diagnosis: there are codes for it.
    """
    whole = _reason(text, certainty)
    if whole or certainty == "Z":
        return whole
    first: str | None = None
    for part in _SEGMENT().split(text):
        if is_word(part) and part != text:
            reason = _reason(part, certainty)
            if reason is None:
                return None
            first = first or reason
    return first


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
        if not ill or cue.reason.endswith(_EVEN_IF_ILL):
            match = cue.pattern().fullmatch(low)
            if match and _listed(cues, match):
                return cue.reason
    if certainty != "Z" and _is_procedure(low, cues):
        return cues.words["procedure"].reason
    return None if ill else _only_figures(text)


def _listed(cues: Cues, match: re.Match[str]) -> bool:
    """Return whether each group that names a list holds words of that list only."""
    for kind, said in match.groupdict().items():
        words = cues.words[kind]
        if said and said not in words.whole and not all(map(words.has, _SEPARATOR().split(said))):
            return False
    return True


_SEPARATOR = LazyPattern(r"[\s/+,]+")


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
