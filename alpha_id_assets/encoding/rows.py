"""Phrases as sparse rows for training.

Holds: which features are kept, their weights, and fast slicing of rows. Refuses: the features themselves,
which the runtime spells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.encoder import feature_keys, feature_rows, is_word_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from alpha_id_runtime.encoder import FloatArray, HashArray, IntArray


def build_vocabulary(
    normalised: Sequence[str], *, min_count: int, word_weight: float
) -> tuple[HashArray, FloatArray]:
    """Return the features kept, ascending, and the weight of each: IDF, times ``word_weight`` for words."""
    owners, keys = feature_keys(normalised)
    order = np.lexsort((owners, keys))
    owners, keys = owners[order], keys[order]
    first = np.ones(len(keys), dtype=bool)
    first[1:] = (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1])
    vocabulary, counts = np.unique(keys[first], return_counts=True)
    # A corpus of a few lines repeats nothing: then what it repeats most will do.
    kept = counts >= min(min_count, counts.max(initial=0))
    vocabulary, counts = vocabulary[kept], counts[kept]
    inverse = np.log((1 + len(normalised)) / (1 + counts)) + 1
    weights = np.where(is_word_key(vocabulary), word_weight, 1.0) * inverse
    return vocabulary, weights.astype(np.float32)


@dataclass(frozen=True)
class Rows:
    """Sparse rows (CSR): ``indptr`` (n + 1), ``indices`` and ``values``, each row at unit length."""

    indptr: IntArray
    indices: NDArray[np.int32]
    values: FloatArray

    @classmethod
    def of(cls, normalised: Sequence[str], vocabulary: HashArray, weights: FloatArray) -> Rows:
        """Return the weighted features of ``normalised``; a text without any is an empty row."""
        indptr, indices, values = feature_rows(normalised, vocabulary)
        values = values * weights[indices]
        sums = np.concatenate(([0.0], np.cumsum(values.astype(np.float64) ** 2)))
        lengths = np.sqrt(np.maximum(sums[indptr[1:]] - sums[indptr[:-1]], 1e-12))
        values = (values / np.repeat(lengths, np.diff(indptr))).astype(np.float32)
        return cls(indptr, indices.astype(np.int32), values)

    def followed_by(self, other: Rows) -> Rows:
        """Return these rows with those of ``other`` behind them."""
        return Rows(
            np.concatenate((self.indptr, self.indptr[-1] + other.indptr[1:])),
            np.concatenate((self.indices, other.indices)),
            np.concatenate((self.values, other.values)),
        )

    def take(self, rows: IntArray) -> Rows:
        """Return the given rows, in their order."""
        lengths = self.indptr[rows + 1] - self.indptr[rows]
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        return Rows(indptr, self.indices[places], self.values[places])

    def without(self, share: float, rng: np.random.Generator) -> Rows:
        """Return the rows with ``share`` of their features dropped at random."""
        kept = rng.random(len(self.indices), dtype=np.float32) >= share
        places = np.concatenate(([0], np.cumsum(kept)))
        return Rows(places[self.indptr], self.indices[kept], self.values[kept])
