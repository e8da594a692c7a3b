"""The vector index, built aside: a LanceDB table with IVF_HNSW_SQ, the vectors, the code prototypes. Pure.

Holds: the build and its check against exact search. Refuses: making vectors, and publishing.
"""

from __future__ import annotations

import io
import json
import shutil
from typing import TYPE_CHECKING

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import HnswSq

from alpha_id_runtime.errors import ArtefactsIncompatibleError
from alpha_id_runtime.files import write_atomically, write_json
from alpha_id_runtime.retrieval.dense import (
    CODES,
    NOTE,
    PROTOTYPES,
    TABLE,
    VECTORS,
    DenseIndex,
    DenseNote,
    exact_nearest,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

MIN_RECALL = 0.99
CHECKED_QUERIES = 200
CHECKED_DEPTH = 100
# One graph: at this size partitions only lose neighbours. ef is set explicitly, since the default depends on
# the limit; it is never below the rows fetched, twice those asked for, which are compared unquantised.
_M, _EF_CONSTRUCTION, _EF, _REFINE = 20, 200, 128, 2
# Below this a graph is no gain, and LanceDB cannot train the quantiser on a handful of rows.
MIN_ROWS = 256


def build_vector_index(
    folder: Path,
    vectors: Vectors,
    *,
    fingerprint: str,
    codes: Sequence[str],
    prototypes: Vectors,
    seed: int = 0,
) -> DenseNote:
    """Write the index of ``vectors`` (rows, dimension; unit length, row order) into ``folder``.

    ``prototypes`` is (len(codes), dimension). The approximate index is compared with exact search at 100 on
    200 drawn rows; below ``MIN_RECALL`` the note says ``exact`` and queries compare every vector.

    Raises:
        ArtefactsIncompatibleError: a vector is not finite, or the shapes do not fit.
    """
    rows, dimension = vectors.shape
    if prototypes.shape != (len(codes), dimension) or not np.isfinite(vectors).all():
        raise ArtefactsIncompatibleError(
            f"Vectors {vectors.shape} and prototypes {prototypes.shape} of {len(codes)} codes cannot be "
            "indexed: shapes that do not fit, or a value that is not finite."
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_atomically(folder / VECTORS, _npy(vectors.astype(np.float16)))
    write_atomically(folder / PROTOTYPES, _npy(prototypes.astype(np.float32)))
    write_atomically(folder / CODES, json.dumps(list(codes)).encode())
    note = DenseNote(
        fingerprint=fingerprint,
        dimension=dimension,
        rows=rows,
        exact=rows < MIN_ROWS,
        recall=1.0,
        nprobes=1,
        ef=_EF,
        refine_factor=_REFINE,
    )
    if not note.exact:
        _build_table(folder, vectors)
        write_json(folder / NOTE, note.to_dict())
        recall = measure_recall(DenseIndex.open(folder), vectors, seed)
        note = DenseNote(**{**note.to_dict(), "recall": recall, "exact": recall < MIN_RECALL})
    write_json(folder / NOTE, note.to_dict())
    return note


def mean_prototypes(vectors: Vectors, code_of_row: Sequence[str]) -> tuple[list[str], Vectors]:
    """Return (codes, sorted; their mean vectors at unit length) for a provider that trains none."""
    codes, place = np.unique(np.asarray(code_of_row), return_inverse=True)
    sums = np.zeros((len(codes), vectors.shape[1]), dtype=np.float32)
    np.add.at(sums, place, vectors)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return [str(code) for code in codes], sums / np.maximum(lengths, 1e-12)


def measure_recall(index: DenseIndex, vectors: Vectors, seed: int) -> float:
    """Return the share of the exact 100 nearest that the index finds, over 200 rows drawn by ``seed``.

    A row as near as the hundredth counts as found: twins of one text are the same answer.
    """
    drawn = np.random.default_rng(seed).choice(
        len(vectors), min(CHECKED_QUERIES, len(vectors)), replace=False
    )
    depth = min(CHECKED_DEPTH, len(vectors))
    shares = []
    for row, found in zip(drawn, index.nearest(vectors[drawn], depth), strict=True):
        exact = exact_nearest(vectors, vectors[row : row + 1], depth)[0]
        floor = vectors[exact[-1]] @ vectors[row] - 1e-6
        shares.append(float((vectors[found] @ vectors[row] >= floor).sum()) / depth)
    return round(float(np.mean(shares)), 4)


def _build_table(folder: Path, vectors: Vectors) -> None:
    rows, dimension = vectors.shape
    flat = pa.array(vectors.astype(np.float32).reshape(-1))
    table = lancedb.connect(str(folder)).create_table(
        TABLE,
        pa.table(
            {
                "row": pa.array(np.arange(rows, dtype=np.int32)),
                "vector": pa.FixedSizeListArray.from_arrays(flat, dimension),
            }
        ),
    )
    table.create_index(
        "vector",
        config=HnswSq(distance_type="dot", num_partitions=1, m=_M, ef_construction=_EF_CONSTRUCTION),
    )


def _npy(array: NDArray[np.generic]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
