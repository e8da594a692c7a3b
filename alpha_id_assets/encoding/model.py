"""The weights under training and one step of it.

Holds: forward, loss, gradient and row-wise Adagrad for a batch, on numpy and scipy. Refuses: the choice of
batches.

Determinism: each matrix is cut at fixed places, whatever runs in parallel, and random numbers are drawn in
one thread; so the result depends neither on how threads are scheduled nor on how many BLAS has. Another
processor may round otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from alpha_id_assets.encoding.rows import Rows
    from alpha_id_runtime.encoder import FloatArray, IntArray

BLOCKS = 2
_TINY = np.float32(1e-8)
_INNER = 256
_FAMILY_SHARE = np.float32(0.5)


@dataclass(frozen=True)
class Batch:
    """Pairs of phrases of one code: row i belongs with row (i + n / 2) mod n.

    ``owner``: place of each row's code. ``paired``: False where a code has one phrase, paired with itself.
    ``against``: places of the codes, sorted, that stand against the rows; their own are among them.
    ``shift``: added to the score of each of ``against``: codes drawn to stand for more than themselves count
    as many times.
    """

    rows: Rows
    owner: IntArray
    paired: NDArray[np.bool_]
    against: IntArray
    shift: FloatArray


@dataclass(frozen=True)
class Table:
    """A matrix under training, (rows, dimension), and what the squares of each row's gradients sum up to."""

    matrix: FloatArray
    sums: FloatArray

    @classmethod
    def random(cls, rows: int, dimension: int, rng: np.random.Generator) -> Table:
        """Return rows drawn at random, of length one or so."""
        drawn = rng.standard_normal((rows, dimension), dtype=np.float32)
        return cls(drawn * np.float32(dimension**-0.5), np.zeros(rows, dtype=np.float32))

    def descend(self, rows: IntArray, before: FloatArray, gradient: FloatArray, rate: float) -> None:
        """Row-wise Adagrad: the steps of a row shrink as its gradients sum up."""
        sums = self.sums[rows] + np.einsum("ij,ij->i", gradient, gradient) / np.float32(gradient.shape[1])
        self.sums[rows] = sums
        self.matrix[rows] = before - gradient * (np.float32(rate) / (np.sqrt(sums) + _TINY))[:, None]


@dataclass(frozen=True)
class Model:
    """Weights of the features and prototypes of the codes.

    A prototype is a part of its own plus half of one shared by its family (the three-character category), so
    that codes with few phrases lean on their siblings. ``family``: the family of each code, ascending from 0.
    """

    weights: Table
    prototypes: Table
    families: Table
    family: IntArray
    code_temperature: float
    phrase_temperature: float

    def code_vectors(self) -> FloatArray:
        """Return all prototypes with their families' part, (codes, dimension), not at unit length."""
        vectors: FloatArray = self.prototypes.matrix + _FAMILY_SHARE * self.families.matrix[self.family]
        return vectors

    def step(self, batch: Batch, rate: float, pool: Executor) -> float:
        """Take one step down the loss of ``batch``; return the loss against the codes."""
        touched, rows = _compact(batch.rows, len(self.weights.matrix))
        before = self.weights.matrix[touched]
        raw: FloatArray = np.concatenate(list(pool.map(lambda part: part @ before, _blocks(rows))))
        lengths = _lengths(raw)
        units = raw / lengths
        family = self.family[batch.against]
        own = self.prototypes.matrix[batch.against]
        codes: FloatArray = own + _FAMILY_SHARE * self.families.matrix[family]
        code_lengths = _lengths(codes)
        code_units: FloatArray = codes / code_lengths
        loss, towards, code_gradient = self._against_codes(batch, units, code_units)
        towards += self._against_phrases(batch, units)
        gradient = _through_length(towards, units, lengths)
        columns = rows.T.tocsr()

        def update(part: slice) -> None:
            self.weights.descend(touched[part], before[part], columns[part] @ gradient, rate)

        list(pool.map(update, _cuts(len(touched))))
        code_gradient = _through_length(code_gradient, code_units, code_lengths)
        self.prototypes.descend(batch.against, own, code_gradient, rate)
        # Codes are sorted, so the members of a family stand together.
        starts = np.flatnonzero(np.diff(family, prepend=-1))
        families = family[starts]
        shared: FloatArray = np.add.reduceat(code_gradient, starts) * _FAMILY_SHARE
        self.families.descend(families, self.families.matrix[families], shared, rate)
        return loss

    def _against_codes(
        self, batch: Batch, units: FloatArray, code_units: FloatArray
    ) -> tuple[float, FloatArray, FloatArray]:
        """Cross-entropy of each row against the prototypes: loss, gradient of rows, of prototypes."""
        n = len(units)
        share = np.float32(1 / (self.code_temperature * n))
        everyone = np.arange(n)
        right = np.searchsorted(batch.against, batch.owner)
        # Cosines are bounded: at these temperatures exp stays far from overflow.
        scores: FloatArray = _product(units, code_units.T) / np.float32(self.code_temperature)
        scores += batch.shift
        said = scores[everyone, right]
        np.exp(scores, out=scores)
        sums = scores.sum(axis=1)
        loss = float((np.log(sums) - said).mean())
        scores *= (share / sums)[:, None]
        scores[everyone, right] -= share
        return loss, _product(scores, code_units), _product(scores.T, units)

    def _against_phrases(self, batch: Batch, units: FloatArray) -> FloatArray:
        """Cross-entropy of each row's partner against the other rows; more of the same code are masked."""
        n = len(units)
        share = np.float32(1 / (self.phrase_temperature * n))
        everyone = np.arange(n)
        partner = (everyone + n // 2) % n
        scores: FloatArray = _product(units, units.T) / np.float32(self.phrase_temperature)
        same = batch.owner[:, None] == batch.owner[None, :]
        same[everyone, partner] = False
        scores[same] = -np.inf
        np.exp(scores, out=scores)
        scores *= (share / scores.sum(axis=1))[:, None]
        scores[everyone, partner] -= share
        scores[~batch.paired] = 0
        return _product(np.add(scores, scores.T, dtype=np.float32), units)


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the matrix product, summed up in the same order whatever the number of BLAS threads.

    OpenBLAS cuts a long inner dimension by the number of its threads, and rounding follows the cut; blocks of
    256 it leaves whole.
    """
    result: FloatArray = left[:, :_INNER] @ right[:_INNER]
    for start in range(_INNER, left.shape[1], _INNER):
        result += left[:, start : start + _INNER] @ right[start : start + _INNER]
    return result


def _compact(rows: Rows, features: int) -> tuple[IntArray, sparse.csr_matrix]:
    """Return the features that ``rows`` touch, and the rows over those alone."""
    flags = np.zeros(features, dtype=bool)
    flags[rows.indices] = True
    touched = np.flatnonzero(flags)
    column = np.empty(features, dtype=np.int32)
    column[touched] = np.arange(len(touched), dtype=np.int32)
    parts = (rows.values, column[rows.indices], rows.indptr.astype(np.int32))
    return touched, sparse.csr_matrix(parts, shape=(len(rows.indptr) - 1, len(touched)))


def _cuts(length: int) -> list[slice]:
    bounds = [length * i // BLOCKS for i in range(BLOCKS + 1)]
    return [slice(first, last) for first, last in pairwise(bounds)]


def _blocks(matrix: sparse.csr_matrix) -> list[sparse.csr_matrix]:
    return [matrix[part] for part in _cuts(matrix.shape[0])]


def _lengths(matrix: FloatArray) -> FloatArray:
    lengths: FloatArray = np.maximum(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), np.float32(1e-6))[
        :, None
    ]
    return lengths


def _through_length(gradient: FloatArray, units: FloatArray, lengths: FloatArray) -> FloatArray:
    """Return the gradient before the scaling to unit length."""
    along = np.einsum("ij,ij->i", units, gradient)[:, None]
    result: FloatArray = (gradient - units * along) / lengths
    return result
