"""What a line says in several words, or leaves behind, as the classification words it in one.

Holds: ``tables/wordings.tsv``, read once: "Nephrektomie" that lies behind is an acquired absence, a
"Schrittmacherträger" has an implant; two findings that one code holds ("Harnleiterstein mit Harnstauung").
What is denied or excluded says nothing. Refuses: telling whether something lies behind, which the cues say,
and choosing a code.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.tables import Finder, LazyPattern, Row, RowPattern, read_table

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("trigger", "said", "unless", "means", "when")
SAID, BEHIND, THERE, ALWAYS = "said", "behind", "there", "always"
# Words that say of an implant, a stoma or an amputation that it is there, without a "Zustand nach".
_THERE = LazyPattern(
    r"traeger|transplantiert|amputiert|implantiert|versorgt|\b(?:ein)?liegend|\bliegt\b|\bin situ\b"
    r"|endstaendig|\bangelegt|vorhanden|\bamputation\b|\breizlos"
)


_DENIAL = LazyPattern(r"\b(?:kein|ohne|nicht|ausgeschl|ausschluss|negativ|nie\b)")
_DENIED = LazyPattern(r"\b(?:kein\w*|ohne|nie)\b(?:(?!\b(?:aber|jedoch|sondern|bei|mit)\b)[^=])*")
_EXCLUDED = LazyPattern(
    r"ausgeschlossen|\bausschluss\b|negativ\w*\b(?!\s\w)|nicht\s(?:bestaetigt|nachgewiesen|nachweisbar)"
)
_COMMA = LazyPattern(r"\s*[,;=]\s*")
# Words that hold the name of a site and name none.
_NO_SITE = LazyPattern(r"\b\w*(?:behandel|behandl|handlung|vorhanden|abhanden)\w*")


class _Wording(NamedTuple):
    """A row: what is said, what must not be, how it is worded, and when that holds.

    ``triggers``: one of them must stand in the text before a pattern is tried; none: it is tried always.
    """

    triggers: tuple[str, ...]
    said: RowPattern
    unless: RowPattern | None
    means: tuple[str, ...]
    when: str


@lru_cache(maxsize=4)
def load_wordings(folder: Path | None = None) -> tuple[_Wording, ...]:
    """Return the rows of the table, in order.

    Raises:
        ConfigError: a row is broken.
    """
    rows = []
    for row in read_table("wordings.tsv", COLUMNS, folder):
        row.filled("said")
        row.filled("means")
        unless = row.pattern("unless") if row["unless"] else None
        when = row.one_of("when", (SAID, BEHIND, THERE, ALWAYS))
        # Look-aheads ask of the whole line: tried once, at its start.
        said = row.pattern("said", rf"\A{row['said']}" if row["said"].startswith("(?=") else None)
        rows.append(_Wording(_triggers(row), said, unless, row.many("means"), when))
    return tuple(rows)


def _triggers(row: Row) -> tuple[str, ...]:
    """Return the cell split at ``|``, blanks kept: they bound a word."""
    return tuple(fold(trigger) for trigger in row["trigger"].split("|") if trigger)


@lru_cache(maxsize=1)
def _by_trigger() -> tuple[Finder, dict[str, list[int]], list[int]]:
    """Return the triggers, the places of each one's rows, and of the rows that need none."""
    places: dict[str, list[int]] = {}
    always: list[int] = []
    for place, row in enumerate(load_wordings()):
        for trigger in row.triggers:
            places.setdefault(trigger, []).append(place)
        if not row.triggers:
            always.append(place)
    return Finder(places), places, always


def what_remains(text: str, *, past: bool, sequel: bool = False) -> tuple[str, ...]:
    """Return how the classification words what ``text`` leaves behind, best first; mostly nothing.

    Args:
        text: the line, or a part of it, abbreviations written out.
        past: whether the line says that it lies behind; else only what is said to be there counts.
        sequel: whether it names a sequel or a year, which makes an infarction old, but no addiction past.
    """
    low = _padded(text)
    if past:
        return _first(low, (SAID, BEHIND, THERE))
    if sequel:
        return _first(low, (BEHIND, THERE))
    return _first(low, (THERE,)) if _THERE().search(low) else ()


def what_is_one(text: str) -> tuple[str, ...]:
    """Return how the classification words in one what ``text`` says in several parts; mostly nothing."""
    return _first(_padded(text), (ALWAYS,))


def _affirmed(low: str) -> str:
    """Return folded text without what it denies: "ohne X" to the comma or "aber", and excluded parts."""
    if not _DENIAL().search(low):
        return low
    parts = _COMMA().split(low)
    kept = [_DENIED().sub(" ", part) for part in parts if not _EXCLUDED().search(part)]
    return f" {', '.join(kept)} "


def _padded(text: str) -> str:
    """Return ``text`` folded, a blank before and behind: a trigger may be a whole word."""
    return f" {fold(text)} "


def _first(low: str, when: tuple[str, ...]) -> tuple[str, ...]:
    triggers, places, always = _by_trigger()
    tried = [place for trigger in triggers.all_in(low) for place in places[trigger]]
    if when != (ALWAYS,):
        tried += always
    rows = load_wordings()
    said = ""
    for row in (rows[place] for place in sorted(set(tried))):
        if row.when not in when:
            continue
        said = said or _affirmed(_NO_SITE().sub(" ", low))
        if row.said().search(said) and not (row.unless is not None and row.unless().search(low)):
            return row.means
    return ()
