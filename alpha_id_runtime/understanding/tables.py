"""The tables of the understanding, read once and checked; and a text as it is compared with them.

Holds: reading a TSV under ``alpha_id_runtime/tables`` into rows, with a ConfigError that names file and line;
``Folded``, a text beside its folded spelling (``text.fold``), in which all look-ups are made, so that case,
umlauts written as two letters and composed signs make no difference; patterns compiled when first used.
Refuses: what a row means.

A table has comment lines (``#``), one header line, and rows of as many cells; a missing tail is an error.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from alpha_id_runtime.errors import ConfigError
from alpha_id_runtime.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

TABLES = Path(__file__).resolve().parents[1] / "tables"
CURE = "Correct the row, or reinstall the package if nobody changed the file."
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "²": "2", "µ": "μ"})


class Folded:
    """A text and its folded spelling ``low``, with the way back from places in ``low`` to the text."""

    __slots__ = ("_starts", "low", "text")

    def __init__(self, text: str) -> None:
        """Fold ``text`` sign by sign."""
        self.text = text
        self._starts: list[int] | None = None
        self.low = text.lower() if text.isascii() else "".join(map(_folded_sign, text))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in ``text`` of ``low[start:end]``; a sign meant in part counts whole."""
        if len(self.low) == len(self.text) and self.text.isascii():
            return start, end
        if self._starts is None:
            self._starts = [place for place, sign in enumerate(self.text) for _ in _folded_sign(sign)]
        starts = self._starts
        first = starts[start] if start < len(starts) else len(self.text)
        return first, max(first, starts[end - 1] + 1) if end > start else first

    def replaced(self, spans: Iterable[tuple[int, int]], texts: Iterable[str]) -> str:
        """Return ``text`` with each span of ``low`` (in order, not overlapping) replaced."""
        out, last = [], 0
        for (low_start, low_end), new in zip(spans, texts, strict=True):
            start, end = self.span(low_start, low_end)
            out += [self.text[last:start], new]
            last = end
        out.append(self.text[last:])
        return "".join(out)


@lru_cache(maxsize=4096)
def _folded_sign(sign: str) -> str:
    return fold(sign)


@lru_cache(maxsize=64)
def folded(text: str) -> Folded:
    """Return ``text`` beside its folded spelling."""
    return Folded(text)


class Finder:
    """Which of many stems stand in a text: looked up by their first signs, as nearly all stand nowhere in it.

    What was found in the last texts is kept: several readers ask of the same text.
    """

    __slots__ = ("_by_start", "_short", "_starts", "all_in")

    def __init__(self, stems: Iterable[str]) -> None:
        """Take the stems, folded; "" is in no text."""
        self._by_start: dict[str, list[str]] = {}
        short = []
        for stem in dict.fromkeys(stems):
            if len(stem) >= _START:
                self._by_start.setdefault(stem[:_START], []).append(stem)
            elif stem:
                short.append(stem)
        self._starts = frozenset(self._by_start)
        self._short = tuple(short)
        self.all_in = lru_cache(maxsize=64)(self._all_in)

    def any_in(self, low: str) -> bool:
        """Return whether a stem stands in the folded text ``low``."""
        for start in self._starts & _starts_in(low):
            for stem in self._by_start[start]:
                if stem in low:
                    return True
        return any(stem in low for stem in self._short) if self._short else False

    def _all_in(self, low: str) -> frozenset[str]:
        """Return the stems that stand in the folded text ``low``."""
        found = [stem for stem in self._short if stem in low]
        for start in self._starts & _starts_in(low):
            found += [stem for stem in self._by_start[start] if stem in low]
        return frozenset(found)


_START = 3


@lru_cache(maxsize=64)
def _starts_in(low: str) -> frozenset[str]:
    """Return every three signs in a row of ``low``; the same text is asked of many finders."""
    return frozenset(map("".join, zip(low, low[1:], low[2:], strict=False)))


class LazyPattern:
    """A regular expression, compiled at its first use: a cold start pays only for what it needs."""

    __slots__ = ("_compiled", "_flags", "source")

    def __init__(self, source: str, flags: int = 0) -> None:
        """Take the source and flags of ``re``."""
        self.source = source
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def __call__(self) -> re.Pattern[str]:
        """Return the compiled pattern.

        Raises:
            re.error: the source is no regular expression.
        """
        if self._compiled is None:
            self._compiled = re.compile(self.source, self._flags)
        return self._compiled


class Row:
    """One row of a table: its cells by column name, and where it stands."""

    __slots__ = ("cells", "file", "line")

    def __init__(self, file: str, line: int, cells: dict[str, str]) -> None:
        """Take the cells by column name."""
        self.file = file
        self.line = line
        self.cells = cells

    def __getitem__(self, column: str) -> str:
        """Return the cell of ``column``, blanks around it taken off."""
        return self.cells[column]

    def fail(self, what: str) -> ConfigError:
        """Return the error for this row, to be raised."""
        return ConfigError(f"{self.file}, line {self.line}: {what} {CURE}")

    def one_of(self, column: str, allowed: tuple[str, ...]) -> str:
        """Return the cell, which must be one of ``allowed``."""
        value = self.cells[column]
        if value not in allowed:
            raise self.fail(f"column {column!r} must be one of {', '.join(allowed)}, not {value!r}.")
        return value

    def filled(self, column: str) -> str:
        """Return the cell, which must not be empty."""
        if not self.cells[column]:
            raise self.fail(f"column {column!r} must not be empty.")
        return self.cells[column]

    def many(self, column: str) -> tuple[str, ...]:
        """Return the cell split at ``|``; empty cell, empty tuple."""
        cell = self.cells[column]
        if "|" not in cell:
            return (cell,) if cell else ()
        return tuple(part.strip() for part in cell.split("|") if part.strip())

    def number(self, column: str) -> float | None:
        """Return the cell as a number, None where it is empty."""
        if not self.cells[column]:
            return None
        try:
            return float(self.cells[column])
        except ValueError:
            raise self.fail(f"column {column!r} must be a number, not {self.cells[column]!r}.") from None

    def stems(self, column: str) -> tuple[str, ...]:
        """Return the cell split at ``|``, each part folded."""
        cell = fold(self.cells[column])  # at once: a table holds thousands of words
        return tuple(part for part in map(str.strip, cell.split("|")) if part)

    def pattern(self, column: str, text: str | None = None) -> RowPattern:
        """Return the cell (or ``text`` made from it) as a pattern over folded text, not yet compiled."""
        return RowPattern(self, column, self.cells[column] if text is None else text)


class RowPattern(LazyPattern):
    """A pattern of a row, over folded text; a broken one is named with its place."""

    __slots__ = ("_column", "row")

    def __init__(self, row: Row, column: str, source: str) -> None:
        """Take the row and the column that the source is of; an umlaut in it stands for its two letters."""
        super().__init__(source.translate(_UMLAUTS))
        self.row = row
        self._column = column

    def __call__(self) -> re.Pattern[str]:
        """Return the compiled pattern.

        Raises:
            ConfigError: the cell is no regular expression.
        """
        try:
            return super().__call__()
        except re.error as error:
            raise self.row.fail(f"column {self._column!r} is not a regular expression ({error}).") from error


def read_table(name: str, columns: tuple[str, ...], folder: Path | None = None) -> list[Row]:
    """Return the rows of table ``name``, whose header must name exactly ``columns``.

    Raises:
        ConfigError: the file is missing, not UTF-8, or a line has another number of cells than the header.
    """
    path = (folder or TABLES) / name
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Table {name} cannot be read ({error}). Reinstall the package.") from error
    blanks = "\t " in text or " \t" in text  # most tables hold none to take off
    rows: list[Row] = []
    header: list[str] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#") or not line.strip():
            continue
        cells = line.rstrip("\r ").split("\t")
        if blanks:
            cells = [cell.strip() for cell in cells]
        if header is None:
            if tuple(cells) != columns:
                raise ConfigError(
                    f"{name}, line {number}: the header must be {', '.join(columns)}, "
                    f"not {', '.join(cells)}. {CURE}"
                )
            header = cells
            continue
        if len(cells) != len(columns):
            raise ConfigError(
                f"{name}, line {number}: {len(columns)} cells expected, {len(cells)} found. {CURE}"
            )
        rows.append(Row(name, number, dict(zip(columns, cells, strict=True))))
    if not rows:
        raise ConfigError(f"Table {name} holds no row. Reinstall the package.")
    return rows
