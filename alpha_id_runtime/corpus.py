"""The corpus phrases of a build, in index order: row numbers to entries.

Holds: the table ``phrases.parquet`` and the arrays the ranking needs of it. Refuses: searching.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alpha_id_runtime.errors import ArtefactsMissingError
from alpha_id_runtime.files import read_parquet
from alpha_id_runtime.manifest import BUILD_CURE
from alpha_id_runtime.model import Complement, Entry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt
    import pyarrow as pa

COLUMNS = (
    "text", "norm", "origin", "valid", "alpha_id", "orpha", "icd_code", "secondary_only", "edition_gap",
    "gap_rank", "complements",
)  # fmt: skip

# Of an entry, what is drawn from the table cell by cell, the slow way; arrays hold the rest.
_ENTRY_COLUMNS = ("text", "origin", "alpha_id", "orpha")


class PhraseTable:
    """Entries by row. Arrays have one element a row."""

    def __init__(self, table: pa.Table) -> None:
        """Take a table with the columns of ``corpus_phrases``."""
        self._table = table.combine_chunks()
        self._columns = {name: self._table.column(name).combine_chunks() for name in COLUMNS}
        coded = self._table.column("icd_code").combine_chunks().dictionary_encode()
        self.codes: list[str] = coded.dictionary.to_pylist()
        self.code_index: npt.NDArray[np.int32] = coded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        self.valid: npt.NDArray[np.bool_] = self._array("valid")
        self.is_title: npt.NDArray[np.bool_] = np.asarray(self._array("origin") == "title")
        self.gap_rank: npt.NDArray[np.int32] = self._array("gap_rank").astype(np.int32)
        self._secondary_only: npt.NDArray[np.bool_] = self._array("secondary_only")
        self._edition_gap: npt.NDArray[np.bool_] = self._array("edition_gap")

    @classmethod
    def open(cls, path: Path) -> PhraseTable:
        """Read the phrases of a build.

        Raises:
            ArtefactsMissingError: the file is not there.
        """
        try:
            return cls(read_parquet(path, COLUMNS))
        except FileNotFoundError as error:
            raise ArtefactsMissingError(f"{path} is missing. {BUILD_CURE}") from error

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._table.num_rows)

    def _array(self, column: str) -> Any:
        return self._table.column(column).to_numpy(zero_copy_only=False)

    def entries(self, rows: Sequence[int]) -> list[Entry]:
        """Return the entries of ``rows``, in that order."""
        columns = [(name, self._columns[name]) for name in _ENTRY_COLUMNS]
        complements = self._columns["complements"]
        return [
            Entry(
                row=row,
                icd_code=self.codes[self.code_index[row]],
                valid=bool(self.valid[row]),
                gap_rank=int(self.gap_rank[row]),
                secondary_only=bool(self._secondary_only[row]),
                edition_gap=bool(self._edition_gap[row]),
                complements=tuple(Complement(**each) for each in complements[row].as_py() or ()),
                **{name: column[row].as_py() for name, column in columns},
            )
            for row in rows
        ]

    def codes_of(self, rows: npt.NDArray[np.int64]) -> list[str]:
        """Return the code of each of ``rows``."""
        return [self.codes[number] for number in self.code_index[rows]]

    def texts(self, rows: list[int]) -> list[str]:
        """Return the phrases of ``rows``, in that order."""
        if not rows:
            return []  # pyarrow takes no places of no type
        return [str(text) for text in self._table.column("text").take(rows).to_pylist()]

    def column(self, name: str) -> list[Any]:
        """Return one whole column, for evaluation and checks: a second of work at full size."""
        return list(self._table.column(name).to_pylist())

    def rows_saying(self, part: str) -> npt.NDArray[np.int64]:
        """Return the rows whose phrase holds ``part``, case and all. 10 ms at full size."""
        import pyarrow.compute as pc  # noqa: PLC0415 -- most answers do without it

        holds = pc.match_substring(self._table.column("text"), part)
        return np.flatnonzero(holds.to_numpy(zero_copy_only=False)).astype(np.int64)

    def words(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], list[str]]:
        """Return the words of all normalised phrases: bounds of each row's run, their numbers, the words.

        Row ``i`` holds the words of the numbers ``[bounds[i]:bounds[i + 1]]``, in order. 30 ms at full size.
        """
        import pyarrow.compute as pc  # noqa: PLC0415 -- mode C opens without it

        lists = pc.split_pattern(self._columns["norm"], " ")
        coded = lists.values.dictionary_encode()
        return (
            lists.offsets.to_numpy().astype(np.int64),
            coded.indices.to_numpy(),
            coded.dictionary.to_pylist(),
        )

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {code: position for position, code in enumerate(self.codes)}

    def rows_of(self, code: str) -> npt.NDArray[np.int64]:
        """Return the rows whose code is ``code``, in index order; empty where there is none."""
        position = self._positions.get(code)
        if position is None:
            return np.empty(0, dtype=np.int64)
        return self.rows_of_numbers(np.array([position]))

    @cached_property
    def _grouped(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return (all rows grouped by code number, where each group begins, the end last)."""
        order = np.argsort(self.code_index, kind="stable")
        bounds = np.searchsorted(self.code_index[order], np.arange(len(self.codes) + 1))
        return order.astype(np.int64), bounds.astype(np.int64)

    def rows_of_numbers(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the rows of codes given by their places in ``codes``, group after group."""
        order, bounds = self._grouped
        groups = [order[bounds[number] : bounds[number + 1]] for number in numbers]
        return np.concatenate(groups) if groups else np.empty(0, dtype=np.int64)
