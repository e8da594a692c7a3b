"""Dense retrieval: the nearest phrases by vector (LanceDB) and the nearest codes by prototype (numpy).

Holds: the opened vector index of one build and its file names. Refuses: making vectors, and mixing with
lexical rankings. LanceDB is imported when an index is opened: it takes a second.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]
    Vectors = npt.NDArray[np.float32]


class Allow(Protocol):
    """Which rows may be found; ``excluded`` is how many are left out one by one, whatever the filter."""

    @property
    def excluded(self) -> int:
        """Number of rows left out one by one."""

    def __call__(self, rows: Rows, /) -> npt.NDArray[np.bool_]:
        """Return, for each row, whether it may be found."""


NOTE, VECTORS, PROTOTYPES, CODES, TABLE = (
    "dense.json",
    "vectors.npy",
    "prototypes.npy",
    "prototype_codes.json",
    "phrases",
)
CURE = "Build it with: alpha-id index build --full"
_DEEPEN = 4
_CHECKED = 16
# Vectors are kept in half precision beside the table.
_NEAR_ENOUGH = 0.01
# What numpy and LanceDB raise over files that hold anything but what they wrote.
_DAMAGE = (OSError, ValueError, TypeError, RuntimeError, EOFError, SyntaxError, TokenError)
_AT_ONCE = 64
_DIGITS = 9


@dataclass(frozen=True)
class DenseNote:
    """What a vector index holds and how it is to be searched.

    ``exact`` True: the approximate index missed its recall, every vector is compared. ``recall`` is that of
    the approximate index at 100 against exact search, measured at build time. ``refine_factor``: so many
    times the rows asked for come from the quantised graph and are compared by their vectors.
    """

    fingerprint: str
    dimension: int
    rows: int
    exact: bool
    recall: float
    nprobes: int
    ef: int
    refine_factor: int

    def to_dict(self) -> dict[str, Any]:
        """Return the note as written beside the index."""
        return asdict(self)


class DenseIndex:
    """The vector index of one build, opened for reading."""

    def __init__(
        self, note: DenseNote, table: Any, vectors: Vectors, prototypes: Vectors, codes: list[str]
    ) -> None:
        """Take an opened LanceDB table (None where search is exact) and mapped arrays."""
        self.note = note
        self.codes = codes
        self._table = table
        self._vectors = vectors
        self._prototypes = prototypes

    @classmethod
    def open(cls, folder: Path) -> DenseIndex:
        """Open the vector index of a build.

        Raises:
            ArtefactsMissingError: the build is lexical-only, or a file is gone.
            ArtefactsIncompatibleError: a file is damaged, or the files do not belong together.
        """
        if not (folder / NOTE).is_file():
            raise ArtefactsMissingError(f"The published build holds no vector index. {CURE}")
        try:
            note = DenseNote(**json.loads((folder / NOTE).read_bytes()))
            vectors = np.load(folder / VECTORS, mmap_mode="r").view(np.ndarray)
            prototypes = np.load(folder / PROTOTYPES, mmap_mode="r").view(np.ndarray)
            codes = json.loads((folder / CODES).read_bytes())
            table = None if note.exact else _open_table(folder)
            shapes = (vectors.shape, prototypes.shape, 0 if table is None else table.count_rows())
            wanted = (
                (note.rows, note.dimension),
                (len(codes), note.dimension),
                0 if table is None else note.rows,
            )
        except FileNotFoundError as error:
            raise ArtefactsMissingError(f"{error.filename} is missing. {CURE}") from error
        except _DAMAGE as error:
            raise ArtefactsIncompatibleError(
                f"The vector index in {folder} is damaged ({type(error).__name__}). {CURE}"
            ) from error
        if shapes != wanted:
            raise ArtefactsIncompatibleError(
                f"The vector index in {folder} is damaged: it holds {shapes}, its note says {wanted}. {CURE}"
            )
        return cls(note, table, vectors, prototypes, codes)

    def verify(self) -> None:
        """Let some of the vectors find themselves: opening alone reads neither the graph nor the rows.

        Raises:
            ArtefactsIncompatibleError: the index cannot be searched, or finds something else.
        """
        rows = np.unique(np.linspace(0, self.note.rows - 1, min(_CHECKED, self.note.rows)).astype(np.int64))
        if not len(rows):
            return
        asked = self._vectors[rows].astype(np.float32)
        for own, query, found in zip(rows, asked, self.nearest(asked, 1), strict=True):
            best = self.similarity(query, np.append(found[:1], own))
            if len(found) != 1 or not best[0] >= best[1] - _NEAR_ENOUGH:
                raise ArtefactsIncompatibleError(
                    f"The vector index is damaged: row {own} does not find itself. {CURE}"
                )

    def nearest(
        self, queries: Vectors, pool: int, allows: Sequence[Allow | None] | None = None
    ) -> list[Rows]:
        """Return, for each query (n, dimension), the rows nearest to it, best first, at most ``pool``.

        ``allows`` has one element a query; the pool is cut after it.
        """
        passes = allows or [None] * len(queries)
        found: list[Rows | None] = [None] * len(queries)
        # Room for the rows that are excluded one by one; a filter that bites deeper is searched exactly.
        limit = min(pool + max((allow.excluded for allow in passes if allow), default=0), self.note.rows)
        for limit_now in (limit, limit * _DEEPEN):
            places = [place for place, rows in enumerate(found) if rows is None]
            if not places or limit_now > self.note.rows:
                break
            for place, rows in zip(places, self._search(queries[places], limit_now), strict=True):
                allow = passes[place]
                passing = rows if allow is None else rows[allow(rows)]
                if len(passing) >= pool or limit_now == self.note.rows:
                    found[place] = passing[:pool]
        return [
            self._exactly(queries[place], pool, passes[place]) if rows is None else rows
            for place, rows in enumerate(found)
        ]

    def _exactly(self, query: Vectors, pool: int, allow: Allow | None) -> Rows:
        rows = np.arange(self.note.rows, dtype=np.int64)
        passing = rows if allow is None else rows[allow(rows)]
        return passing[exact_nearest(self._vectors[passing], query[None], pool)[0]]

    def similarity(self, query: Vectors, rows: Rows) -> npt.NDArray[np.float64]:
        """Return the cosine of one query (dimension,) with each of ``rows``.

        In double precision: how BLAS sums up in single differs from run to run, and a score would tell.
        """
        return _cosines(self._vectors, query, rows)

    def prototype_similarity(self, queries: Vectors) -> npt.NDArray[np.float32]:
        """Return the cosine of each query with each code, to find the nearest by: (n, len(codes))."""
        return np.asarray(queries @ self._prototypes.T, dtype=np.float32)

    def similarity_to_codes(self, query: Vectors, places: Rows) -> npt.NDArray[np.float64]:
        """Return the cosine of one query with the prototypes at ``places`` of ``codes``, to rank by.

        The same to the last bit whatever queries were asked with it, as ``similarity`` is.
        """
        return _cosines(self._prototypes, query, places)

    def _search(self, queries: Vectors, limit: int) -> list[Rows]:
        if self._table is None:
            return exact_nearest(self._vectors, queries, limit)
        wanted = min(limit * self.note.refine_factor, self.note.rows)
        try:
            # LanceDB's own refinement reads vectors from the table, for half of a search's time; they are
            # mapped here anyway.
            answer = (
                self._table.search(queries if len(queries) > 1 else queries[0])
                .distance_type("dot")
                .nprobes(self.note.nprobes)
                .ef(max(self.note.ef, wanted))
                .limit(wanted)
                .select(["row", "_distance"])
                .to_arrow()
            )
        except _DAMAGE as error:
            raise ArtefactsIncompatibleError(
                f"The vector index cannot be searched ({type(error).__name__}). {CURE}"
            ) from error
        rows = answer.column("row").to_numpy().astype(np.int64)
        if len(queries) == 1:
            return [self._refined(queries[0], rows, limit)]
        owner = answer.column("query_index").to_numpy()
        return [self._refined(query, rows[owner == place], limit) for place, query in enumerate(queries)]

    def _refined(self, query: Vectors, rows: Rows, limit: int) -> Rows:
        """Return the ``limit`` nearest of ``rows`` by their vectors, best first, ties by row."""
        return rows[np.lexsort((rows, -self.similarity(query, rows)))][:limit]


def _cosines(vectors: npt.NDArray[Any], query: Vectors, places: Rows) -> npt.NDArray[np.float64]:
    cosines = vectors[places].astype(np.float64) @ query.astype(np.float64)
    # Twins of one text are equally near, wherever in the product they stand.
    return np.round(cosines, _DIGITS)


def exact_nearest(vectors: npt.NDArray[Any], queries: Vectors, limit: int) -> list[Rows]:
    """Return, for each query, the rows of the largest dot products, best first, ties by row."""
    found: list[Rows] = []
    plain = vectors.astype(np.float32, copy=False)
    if not len(plain):
        return [np.empty(0, dtype=np.int64) for _ in queries]
    for start in range(0, len(queries), _AT_ONCE):
        # Each vector is read once for all of these: an evaluation asks hundreds at a time.
        for scores in queries[start : start + _AT_ONCE] @ plain.T:
            best = np.argpartition(-scores, min(limit, len(scores)) - 1)[:limit]
            found.append(best[np.lexsort((best, -scores[best]))].astype(np.int64))
    return found


def _open_table(folder: Path) -> Any:
    import lancedb  # noqa: PLC0415 -- takes a second, and only mode A needs it

    return lancedb.connect(str(folder)).open_table(TABLE)
