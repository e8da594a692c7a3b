"""Words around a diagnosis: certainty, side, headings, dates, doses.

Holds: ``tables/cues.tsv`` and ``tables/drugs.tsv`` as patterns and word lists, and functions that read or
take off what they describe. Refuses: abbreviations, degrees, synonyms, and lines without a diagnosis; they
are read elsewhere.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.tables import Finder, LazyPattern, Row, RowPattern, folded, read_table

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_runtime.model import Certainty, Laterality

_TABLES = ("cues.tsv", "drugs.tsv")
COLUMNS = ("kind", "value", "trigger", "pattern", "reason")
# Kinds of rows that hold one regular expression each, and kinds that may hold lists of words.
PATTERNS = (
    "start", "end", "tail", "side", "anatomy", "eye", "eye context", "heading", "date", "dose", "measure",
    "tnm", "no diagnosis",
)  # fmt: skip
LISTS = (
    "procedure", "not procedure", "disease", "drug", "beside drug", "lab", "measured", "score", "normal",
    "exam", "aid", "order", "paper", "beside", "remark",
)  # fmt: skip
_LISTED = ("word", "start", "end", "part")
TAKEN_OFF = (("tnm", "TNM or grading"), ("measure", "measured value"), ("dose", "dose"), ("date", "date"))

_NUMBERING = LazyPattern(
    r"\s*(?:[-–—•*·>→]+\s*)*(?:\(?\d{1,2}(?:\.\d{1,2})?[.)]\)?"
    r"(?!\s*(?:[\d%]|grad|ssw|schwanger|monat|rippe|finger|zeh|strahl|lebens|schub|mfk|mhk|metat|hirnn|ordnung|grav"
    r"|trim|woche|tag|jahr|ast\b|lwk|bwk|hwk|ptg|degree|geburt|kind|stadi))\s*|[a-h]\)\s*|[ivx]{1,4}\)\s+)?"
    r"(?:[-–—•*·>→]+\s*)*",
    re.IGNORECASE,
)
_WORD = LazyPattern(r"[^\W\d_]{2,}")
_DIGIT = LazyPattern(r"\d")
_FOLDED_WORD = LazyPattern(r"[^\W_][\w/-]*")
_ANY_DIGIT = "0"
_REACH = 64  # words of certainty lie within so many signs of the start or end
_SEVERAL = LazyPattern(r"[,;]\s|\bDD\b")


class Cue(NamedTuple):
    """One row: a pattern tried only where one of its triggers stands in the folded line."""

    value: str
    triggers: tuple[str, ...]
    pattern: RowPattern
    reason: str


class Gate:
    """The rows of one kind behind their triggers: most lines hold none, and no pattern is tried."""

    __slots__ = ("_always", "_digit", "_finder", "_places", "_triggers", "cues")

    def __init__(self, cues: tuple[Cue, ...], finder: Finder) -> None:
        """Take the rows in their order, and what finds the triggers of all kinds in a text.

        A row without a trigger is always tried; ``0`` stands for any digit.
        """
        self.cues = cues
        self._finder = finder
        self._always = [place for place, cue in enumerate(cues) if not cue.triggers]
        self._places: dict[str, list[int]] = {}
        for place, cue in enumerate(cues):
            for trigger in cue.triggers:
                self._places.setdefault(trigger, []).append(place)
        self._digit = self._places.get(_ANY_DIGIT, [])
        self._triggers = frozenset(self._places)

    def opens(self, low: str) -> bool:
        """Return whether a row may match in ``low`` or in any part of it."""
        return bool(self._always or self._digit or self._triggers & self._finder.all_in(low))

    def among(self, low: str) -> list[Cue]:
        """Return the rows that may match in ``low``, in order."""
        found = self._triggers & self._finder.all_in(low)
        digit = self._digit and _DIGIT().search(low)
        if not found and not digit:
            return [self.cues[place] for place in self._always]
        places = {*self._always, *(self._digit if digit else ())}
        for trigger in found:
            places.update(self._places[trigger])
        return [self.cues[place] for place in sorted(places)]


class Words(NamedTuple):
    """Words of one kind, folded: whole ones, starts, ends, parts, and patterns for what these cannot say."""

    whole: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    parts: Finder
    patterns: Gate
    reason: str

    def has(self, word: str) -> bool:
        """Return whether a folded ``word`` is of this kind."""
        return (
            word in self.whole
            or word.startswith(self.starts)
            or word.endswith(self.ends)
            or (
                bool(self.patterns.cues)
                and any(cue.pattern().fullmatch(word) for cue in self.patterns.among(word))
            )
        )

    def is_built_so(self, word: str) -> bool:
        """Return whether a folded ``word`` has a start or an end of this kind."""
        return word.startswith(self.starts) or word.endswith(self.ends)

    def found_in(self, low: str) -> bool:
        """Return whether a part or a pattern of this kind stands in the folded text ``low``."""
        return self.parts.any_in(low) or any(cue.pattern().search(low) for cue in self.patterns.among(low))


class Cues(NamedTuple):
    """The table: patterns and word lists by kind."""

    patterns: dict[str, Gate]
    words: dict[str, Words]


@lru_cache(maxsize=4)
def load_cues(folder: Path | None = None) -> Cues:
    """Return the table of cues, read once; its patterns are compiled when first used.

    Raises:
        ConfigError: a row is broken or a kind is missing.
    """
    by_kind: dict[str, list[Row]] = {kind: [] for kind in (*PATTERNS, *LISTS)}
    rows = [row for table in _TABLES for row in read_table(table, COLUMNS, folder)]
    for row in rows:
        row.filled("pattern")
        kind = row.one_of("kind", (*PATTERNS, *LISTS))
        by_kind[kind].append(row)
        if kind in ("start", "end"):
            row.one_of("value", ("V", "A", "Z", "G"))
        elif kind in ("side", "eye"):
            row.one_of("value", ("R", "L", "B"))
        elif kind in LISTS:
            row.one_of("value", ("", *_LISTED))
        if kind in ("no diagnosis", "procedure"):
            row.filled("reason")
    missing = [kind for kind, found in by_kind.items() if not found]
    if missing:
        raise rows[0].fail(f"the table has no row of kind {missing[0]!r}.")
    triggers = Finder(trigger for row in rows for trigger in row.stems("trigger"))
    return Cues(
        {kind: Gate(tuple(_cue(row) for row in by_kind[kind]), triggers) for kind in PATTERNS},
        {kind: _words(by_kind[kind], triggers) for kind in LISTS},
    )


def check_cues(folder: Path | None = None) -> None:
    """Compile every pattern of the table.

    Raises:
        ConfigError: one is no regular expression.
    """
    cues = load_cues(folder)
    for gate in (*cues.patterns.values(), *(words.patterns for words in cues.words.values())):
        for cue in gate.cues:
            cue.pattern()


def _cue(row: Row) -> Cue:
    source = row["pattern"]
    if row["kind"] == "start":
        source = rf"[\s,:(–-]*(?:{source})(?:(?<=[.?/:])|(?![a-z]))[\s:]*"
    elif row["kind"] == "end":
        source = rf"(?:(?<=\W)|(?=[(,?]))(?:{source})[\s.!)]*$"
    elif row["kind"] == "eye":
        source = rf"(?<![\w-])(?:{source})(?![\w-])"
    return Cue(row["value"], row.stems("trigger"), row.pattern("pattern", source), row["reason"])


def _words(rows: list[Row], triggers: Finder) -> Words:
    lists: dict[str, tuple[str, ...]] = dict.fromkeys(_LISTED, ())
    for row in rows:
        if row["value"]:
            lists[row["value"]] += row.stems("pattern")
    return Words(
        frozenset(lists["word"]),
        lists["start"],
        lists["end"],
        Finder(lists["part"]),
        Gate(tuple(_cue(row) for row in rows if not row["value"]), triggers),
        rows[0]["reason"],
    )


def take_heading(text: str) -> tuple[str, list[str]]:
    """Return ``text`` without bullets, numbering and a heading such as "Diagnosen:", and notes on them."""
    notes = []
    bare = text
    if not text[:1].isalpha() or ")" in text[1:6]:  # else no numbering can begin it
        bare = text[_NUMBERING().match(text).end() :]  # type: ignore[union-attr]  # matches the empty text too
    if bare != text and bare.strip():
        notes.append("numbering")
    else:
        bare = text
    if ":" not in bare:
        return bare, notes
    whole = folded(bare)
    for cue in load_cues().patterns["heading"].among(whole.low):
        match = cue.pattern().match(whole.low)
        if match and whole.low[match.end() :].strip():
            bare = bare[whole.span(0, match.end())[1] :].lstrip()
            notes.append("heading")
            break
    return bare, notes


def may_say_certainty(text: str) -> bool:
    """Return whether ``text`` or a part of it may hold words of certainty; if not, spare the search."""
    patterns = load_cues().patterns
    low = folded(text).low
    return patterns["start"].opens(low) or patterns["end"].opens(low)


@lru_cache(maxsize=64)
def take_certainty(text: str) -> tuple[str, Certainty | None, tuple[str, ...]]:
    """Return ``text`` without the certainty words at its start and end, the certainty, and the words.

    Of several the first at the start counts, then the one at the end; "ausgeschlossen" counts before all.
    """
    cues = load_cues()
    first: str | None = None
    notes = []
    for kind in ("start", "start", "end"):
        found = _certainty_at(text, cues.patterns[kind], at_start=kind == "start")
        if found is None:
            continue
        value, (start, end) = found
        kept = text[end:] if kind == "start" else text[:start]
        if not _WORD().search(kept) or (kind == "end" and _SEVERAL().search(kept)):
            continue  # words at the end of several parts hold for the last one
        first = value if first is None or value == "A" or (first == "G" and value != "G") else first
        notes.append(text[start:end].strip(" ,:()"))
        text = kept
    return text, cast("Certainty | None", first), tuple(notes)


def _certainty_at(text: str, gate: Gate, *, at_start: bool) -> tuple[str, tuple[int, int]] | None:
    """Return the certainty said at the start (the first row that fits) or end (the earliest place)."""
    whole = folded(text)
    best: tuple[str, tuple[int, int]] | None = None
    for cue in gate.among(whole.low[:_REACH] if at_start else whole.low[-_REACH:]):
        match = cue.pattern().match(whole.low) if at_start else cue.pattern().search(whole.low)
        if match and (best is None or match.start() < best[1][0]):
            best = cue.value, match.span()
            if at_start:
                break
    return (best[0], whole.span(*best[1])) if best else None


def take_side(text: str) -> tuple[str, Laterality | None, list[str]]:
    """Return ``text`` without the words of side, the side (both where two are named), and the words.

    "linker Ventrikel", "Rechts-links-Shunt" and the like are anatomy and stay.
    """
    patterns = load_cues().patterns
    whole = folded(text)
    low = whole.low
    anatomy: list[tuple[int, int]] | None = None
    spans: list[tuple[int, int]] = []
    found: list[str] = []
    for cue in patterns["side"].among(low):
        for match in cue.pattern().finditer(low):
            if anatomy is None:
                anatomy = _spans(patterns["anatomy"], low)
            start, end = match.span()
            if start < end and not any(s < end and start < e for s, e in (*anatomy, *spans)):
                spans.append((start, end))
                found.append(cue.value)
    spans = [whole.span(start, end) for start, end in spans]
    for side, span in _eyes(text, low):
        spans.append(span)
        found.append(side)
    if not found:
        return text, None, []
    notes = [text[start:end] for start, end in spans]
    both = "B" in found or len(set(found)) > 1
    return cut(text, spans), cast("Laterality", "B" if both else found[0]), notes


@lru_cache(maxsize=1)
def _any_eye() -> re.Pattern[str]:
    """Return one pattern for the letters of any side: one search tells that there are none."""
    return re.compile("|".join(cue.pattern().pattern for cue in load_cues().patterns["eye"].cues))


def _eyes(text: str, low: str) -> list[tuple[str, tuple[int, int]]]:
    """Return the sides said by letters ("RA", as written) beside a word of the eye or before a colon."""
    patterns = load_cues().patterns
    if not _any_eye().search(text):
        return []
    return [
        (cue.value, match.span())
        for cue in patterns["eye"].cues
        for match in cue.pattern().finditer(text)
        if text[match.end() :].lstrip().startswith(":") or _spans(patterns["eye context"], low)
    ]


@lru_cache(maxsize=64)
def take_off(text: str) -> tuple[str, tuple[str, ...]]:
    """Return ``text`` without TNM, measured values, doses, dates and a denying tail, and notes on them."""
    notes = []
    patterns = load_cues().patterns
    for kind, name in TAKEN_OFF:
        whole = folded(text)
        spans = [whole.span(*span) for span in _spans(patterns[kind], whole.low)]
        if spans:
            text = cut(text, spans)
            notes.append(name)
    whole = folded(text)
    spans = [whole.span(*span) for span in _spans(patterns["tail"], whole.low)]
    if spans and _WORD().search(cut(text, spans)):
        text = cut(text, spans)
        notes.append("denying tail")
    return text, tuple(notes)


def _spans(gate: Gate, low: str) -> list[tuple[int, int]]:
    """Return all places in ``low`` that a row of ``gate`` finds."""
    return [
        match.span()
        for cue in gate.among(low)
        for match in cue.pattern().finditer(low)
        if match.end() > match.start()
    ]


def cut(text: str, spans: list[tuple[int, int]]) -> str:
    """Return ``text`` with a blank in place of each span (start, end)."""
    kept, last = [], 0
    for start, end in sorted(spans):
        if start >= last:
            kept.append(text[last:start])
        last = max(last, end)
    kept.append(text[last:])
    return " ".join(kept)


def is_word(text: str) -> bool:
    """Return whether ``text`` holds a word of two letters or more."""
    return _WORD().search(text) is not None


def folded_words(text: str) -> list[str]:
    """Return the folded words of ``text``, hyphens and slashes inside kept."""
    return _FOLDED_WORD().findall(fold(text))
