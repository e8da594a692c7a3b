"""What a line says in several words, or leaves behind, as the classification words it in one.

Holds: ``tables/wordings.tsv``, read once: "Nephrektomie" that lies behind is an acquired absence, a
"Schrittmacherträger" has an implant; two findings that one code holds ("Harnleiterstein mit Harnstauung").
Refuses: telling whether something lies behind, which the cues say, and choosing a code.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.tables import Finder, LazyPattern, Row, RowPattern, read_table

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("trigger", "said", "unless", "means", "when")
BEHIND, THERE, ALWAYS = "behind", "there", "always"
# Words that say of an implant, a stoma or an amputation that it is there, without a "Zustand nach".
_THERE = LazyPattern(
    r"traeger|transplantiert|amputiert|implantiert|versorgt|\b(?:ein)?liegend|\bliegt\b|\bin situ\b"
    r"|endstaendig|\bangelegt|vorhanden|\bamputation\b"
)


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
        when = row.one_of("when", (BEHIND, THERE, ALWAYS))
        # Look-aheads ask of the whole line: tried once, at its start.
        said = row.pattern("said", rf"\A{row['said']}" if row["said"].startswith("(?=") else None)
        rows.append(_Wording(_triggers(row), said, unless, row.many("means"), when))
    return tuple(rows)


def _triggers(row: Row) -> tuple[str, ...]:
    """Return the cell split at ``|``, blanks kept: they bound a word."""
    return tuple(fold(trigger) for trigger in row["trigger"].split("|") if trigger)


@lru_cache(maxsize=1)
def _finder() -> Finder:
    return Finder(trigger for row in load_wordings() for trigger in row.triggers)


def what_remains(text: str, *, past: bool) -> tuple[str, ...]:
    """Return how the classification words what ``text`` leaves behind, best first; mostly nothing.

    Args:
        text: the line, or a part of it, abbreviations written out.
        past: whether the line says that it lies behind; else only what is said to be there counts.
    """
    low = _padded(text)
    if not past and not _THERE().search(low):
        return ()
    return _first(low, (BEHIND, THERE) if past else (THERE,))


def what_is_one(text: str) -> tuple[str, ...]:
    """Return how the classification words in one what ``text`` says in several parts; mostly nothing."""
    return _first(_padded(text), (ALWAYS,))


def _padded(text: str) -> str:
    """Return ``text`` folded, a blank before and behind: a trigger may be a whole word."""
    return f" {fold(text)} "


def _first(low: str, when: tuple[str, ...]) -> tuple[str, ...]:
    triggers = _finder().all_in(low)
    for row in load_wordings():
        if (
            row.when in when
            and (not row.triggers or not triggers.isdisjoint(row.triggers))
            and row.said().search(low)
            and not (row.unless is not None and row.unless().search(low))
        ):
            return row.means
    return ()
