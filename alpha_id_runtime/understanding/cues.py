"""Words around a diagnosis: certainty, side, headings, dates, doses, and lines that hold no diagnosis.

Holds: ``tables/cues.tsv`` compiled, and functions that read or take off what it describes. Refuses:
abbreviations, degrees and synonyms; they are read elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from alpha_id_runtime.understanding.tables import Row, lower, read_table, spell_out

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_runtime.model import Certainty, Laterality

COLUMNS = ("kind", "value", "pattern", "reason")
KINDS = (
    "start", "end", "tail", "side", "anatomy", "eye", "eye context", "heading", "date", "dose", "measure",
    "tnm", "no diagnosis", "procedure", "not procedure", "disease",
)  # fmt: skip
TAKEN_OFF = (("tnm", "TNM or grading"), ("measure", "measured value"), ("dose", "dose"), ("date", "date"))

_NUMBERING = re.compile(
    r"^\s*(?:[-–—•*·>→]+\s*)*(?:\(?\d{1,2}(?:\.\d{1,2})?[.)]\)?"
    r"(?!\s*(?:[\d%]|grad|ssw|schwanger|monat|rippe|finger|zeh|strahl|lebens|schub|mfk|mhk|metat|hirnn|ordnung|grav"
    r"|trim|woche|tag|jahr|ast\b|lwk|bwk|hwk|ptg|degree|geburt|kind))\s*|[a-h]\)\s*|[ivx]{1,4}\)\s+)?"
    r"(?:[-–—•*·>→]+\s*)*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_FILLER = re.compile(
    r"\b(?:seit|am|im|vom|bis|ab|zuletzt|aktuell|derzeit|uhr|und|ca|etwa|von|unter|mit)\b|[\W\d_]"
)
# These reasons hold although a disease is named: "kein Hinweis auf Pneumonie".
_EVEN_IF_ILL = ("negated finding", "value", "no diagnosis")
_SEVERAL = re.compile(r"[,;]\s|\bDD\b")
_SEGMENT = re.compile(r"\s*(?:[,;](?!\d)|\s[-–/]\s|\s(?:und|sowie|u\.)\s)\s*")


@dataclass(frozen=True)
class Cues:
    """The compiled table. ``start`` and ``end`` name the certainty by the group that matched."""

    start: re.Pattern[str]
    end: re.Pattern[str]
    sides: tuple[tuple[Laterality, re.Pattern[str]], ...]
    eyes: tuple[tuple[Laterality, re.Pattern[str]], ...]
    whole: tuple[tuple[str, re.Pattern[str]], ...]
    procedure_reason: str
    any_of: dict[str, re.Pattern[str]]


@lru_cache(maxsize=4)
def load_cues(folder: Path | None = None) -> Cues:
    """Return the table of cues, read once.

    Raises:
        ConfigError: a row is broken or a kind is missing.
    """
    by_kind: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    for row in read_table("cues.tsv", COLUMNS, folder):
        row.filled("pattern")
        row.pattern("pattern")
        by_kind[row.one_of("kind", KINDS)].append(row)
        if row["kind"] in ("start", "end"):
            row.one_of("value", ("V", "A", "Z", "G"))
        if row["kind"] in ("side", "eye"):
            row.one_of("value", ("R", "L", "B"))
        if row["kind"] in ("no diagnosis", "procedure"):
            row.filled("reason")
    missing = [kind for kind, rows in by_kind.items() if not rows]
    if missing:
        raise by_kind["start" if by_kind["start"] else "end"][0].fail(
            f"the table has no row of kind {missing[0]!r}."
        )
    start = rf"^[\s,:(–-]*(?:{_named(by_kind['start'])})(?:(?<=[.?/:])|(?![a-zäöüß]))[\s:]*"
    end = rf"(?:(?<=\W)|(?=[(,?]))(?:{_named(by_kind['end'])})[\s.!)]*$"
    return Cues(
        start=re.compile(spell_out(start)),
        end=re.compile(spell_out(end)),
        sides=tuple((cast("Laterality", r["value"]), r.pattern("pattern")) for r in by_kind["side"]),
        eyes=tuple(
            (cast("Laterality", r["value"]), re.compile(rf"(?<![\w-])(?:{r['pattern']})(?![\w-])"))
            for r in by_kind["eye"]
        ),
        whole=tuple((r["reason"], r.pattern("pattern")) for r in by_kind["no diagnosis"]),
        procedure_reason=by_kind["procedure"][0]["reason"],
        any_of={
            kind: re.compile(spell_out("|".join(f"(?:{r['pattern']})" for r in by_kind[kind])))
            for kind in KINDS
            if kind not in ("start", "end", "side", "eye", "no diagnosis")
        },
    )


def _named(rows: list[Row]) -> str:
    return "|".join(f"(?P<{row['value']}{index}>{row['pattern']})" for index, row in enumerate(rows))


def take_heading(text: str) -> tuple[str, list[str]]:
    """Return ``text`` without bullets, numbering and a heading such as "Diagnosen:", and notes on them."""
    notes = []
    bare = text[_NUMBERING.match(text).end() :]  # type: ignore[union-attr]  # matches the empty text too
    if bare != text and bare.strip():
        notes.append("numbering")
    else:
        bare = text
    match = load_cues().any_of["heading"].match(lower(bare))
    if match and bare[match.end() :].strip():
        bare = bare[match.end() :].lstrip()
        notes.append("heading")
    return bare, notes


def take_certainty(text: str) -> tuple[str, Certainty | None, list[str]]:
    """Return ``text`` without the certainty words at its start and end, the certainty, and the words.

    Of several the first at the start counts, then the one at the end.
    """
    cues = load_cues()
    first: str | None = None
    notes = []
    for pattern in (cues.start, cues.start, cues.end):
        match = (pattern.match if pattern is cues.start else pattern.search)(lower(text))
        if not match or match.lastgroup is None:
            continue
        kept = text[match.end() :] if pattern is cues.start else text[: match.start()]
        if not _WORD.search(kept) or (pattern is cues.end and _SEVERAL.search(kept)):
            continue  # words at the end of several parts hold for the last one
        found = match.lastgroup[0]
        first = found if first is None or (first == "G" and found != "G") else first
        notes.append(text[match.start() : match.end()].strip(" ,:()"))
        text = kept
    return text, cast("Certainty | None", first), notes


def take_side(text: str) -> tuple[str, Laterality | None, list[str]]:
    """Return ``text`` without the words of side, the side (both where two are named), and the words.

    "linker Ventrikel", "Rechts-links-Shunt" and the like are anatomy and stay.
    """
    cues = load_cues()
    lowered = lower(text)
    anatomy = [match.span() for match in cues.any_of["anatomy"].finditer(lowered)]
    spans: list[tuple[int, int]] = []
    found: list[Laterality] = []
    for side, pattern in cues.sides:
        for match in pattern.finditer(lowered):
            start, end = match.span()
            if start < end and not any(s < end and start < e for s, e in (*anatomy, *spans)):
                spans.append((start, end))
                found.append(side)
    for side, pattern in cues.eyes:
        for match in pattern.finditer(text):
            behind = text[match.end() :].lstrip()
            if behind.startswith(":") or cues.any_of["eye context"].search(lowered):
                spans.append(match.span())
                found.append(side)
    if not found:
        return text, None, []
    notes = [text[start:end] for start, end in spans]
    both = "B" in found or len(set(found)) > 1
    return cut(text, spans), "B" if both else found[0], notes


def take_off(text: str) -> tuple[str, list[str]]:
    """Return ``text`` without TNM, measured values, doses, dates and a denying tail, and notes on them."""
    notes = []
    cues = load_cues()
    if any(char.isdecimal() for char in text) or "ED" in text or "seit" in text:
        for kind, name in TAKEN_OFF:
            spans = [m.span() for m in cues.any_of[kind].finditer(lower(text)) if m.end() > m.start()]
            if spans:
                text = cut(text, spans)
                notes.append(name)
    spans = [m.span() for m in cues.any_of["tail"].finditer(lower(text))]
    if spans and _WORD.search(cut(text, spans)):
        text = cut(text, spans)
        notes.append("denying tail")
    return text, notes


def cut(text: str, spans: list[tuple[int, int]]) -> str:
    """Return ``text`` with a blank in place of each span (start, end)."""
    kept, last = [], 0
    for start, end in sorted(spans):
        if start >= last:
            kept.append(text[last:start])
        last = max(last, end)
    kept.append(text[last:])
    return " ".join(kept)


def why_no_diagnosis(text: str, certainty: Certainty | None) -> str | None:
    """Return in words why ``text`` (codes, numbering off) holds no diagnosis; None where it may hold one.

    A line of several parts holds none only if none of them does. A state after a procedure (``Z``) is a
    diagnosis: there are codes for it.
    """
    whole = _reason(text, certainty)
    if whole or certainty == "Z":
        return whole
    first: str | None = None
    for part in _SEGMENT.split(text):
        if _WORD.search(part) and part != text:
            reason = _reason(part, certainty)
            if reason is None:
                return None
            first = first or reason
    return first


def _reason(text: str, certainty: Certainty | None) -> str | None:
    cues = load_cues()
    lowered = lower(text).strip(" .,;:!-")
    if not _WORD.search(lowered):
        return "no word in the line"
    ill = cues.any_of["disease"].search(lowered) is not None
    for reason, pattern in cues.whole:
        if (not ill or reason.endswith(_EVEN_IF_ILL)) and pattern.fullmatch(lowered):
            return reason
    if certainty != "Z" and _is_procedure(lowered, cues):
        return cues.procedure_reason
    return None if ill else _only_figures(text)


def _only_figures(text: str) -> str | None:
    """Return the reason where ``text``, which names no disease, is little but figures or a dose."""
    bare, notes = take_off(text)
    if notes and not _WORD.search(_FILLER.sub(" ", lower(bare))):
        return f"nothing but {' and '.join(notes)}"
    if "dose" in notes and len(_WORD.findall(bare)) <= 4:  # noqa: PLR2004  # a name, a form, how it is given
        return "a drug with its dose"
    return None


def _is_procedure(lowered: str, cues: Cues) -> bool:
    """Return whether a word names a procedure and no other one a disease ("-zystektomie" is none)."""
    if cues.any_of["not procedure"].search(lowered):
        return False
    words = re.findall(r"[^\W_][\w/-]*", lowered)
    others = [word for word in words if not cues.any_of["procedure"].fullmatch(word)]
    return len(others) < len(words) and not cues.any_of["disease"].search(" ".join(others))
