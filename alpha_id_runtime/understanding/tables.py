"""The tables of the understanding, read once and checked.

Holds: reading a TSV under ``alpha_id_runtime/tables`` into dictionaries, with a ConfigError that names file
and line, and the helpers that turn cells into lists, numbers and compiled patterns. Refuses: what a row
means.

A table has comment lines (``#``), one header line, and rows of as many cells; a missing tail is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from alpha_id_runtime.errors import ConfigError

TABLES = Path(__file__).resolve().parents[1] / "tables"
CURE = "Correct the row, or reinstall the package if nobody changed the file."


@dataclass(frozen=True)
class Row:
    """One row of a table: its cells by column name, and where it stands."""

    file: str
    line: int
    cells: dict[str, str]

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
        return tuple(part.strip() for part in self.cells[column].split("|") if part.strip())

    def number(self, column: str) -> float | None:
        """Return the cell as a number, None where it is empty."""
        if not self.cells[column]:
            return None
        try:
            return float(self.cells[column])
        except ValueError:
            raise self.fail(f"column {column!r} must be a number, not {self.cells[column]!r}.") from None

    def pattern(self, column: str, text: str | None = None) -> re.Pattern[str]:
        """Return the cell (or ``text`` made from it) as a compiled pattern over lower-case text.

        An umlaut also matches its two-letter spelling.
        """
        source = self.cells[column] if text is None else text
        try:
            return re.compile(spell_out(source))
        except re.error as error:
            raise self.fail(f"column {column!r} is not a regular expression ({error}).") from error


def spell_out(pattern: str) -> str:
    """Return ``pattern`` with every umlaut and ß also matching its two-letter spelling."""
    for umlaut, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")):
        pattern = pattern.replace(umlaut, f"(?:{umlaut}|{letters})")
    return pattern


def read_table(name: str, columns: tuple[str, ...], folder: Path | None = None) -> list[Row]:
    """Return the rows of table ``name``, whose header must name exactly ``columns``.

    Raises:
        ConfigError: the file is missing, not UTF-8, or a line has another number of cells than the header.
    """
    path = (folder or TABLES) / name
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Table {name} cannot be read ({error}). Reinstall the package.") from error
    rows: list[Row] = []
    header: tuple[str, ...] | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = tuple(cell.strip() for cell in line.rstrip("\r").split("\t"))
        if header is None:
            if cells != columns:
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


def lower(text: str) -> str:
    """Return ``text`` in lower case, letter for letter: offsets stay those of ``text``."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)
