"""What a learned reranker looks at: one row of numbers for each candidate code. Pure numpy.

Holds: the features, their names and order, for training and query alike. Refuses: weighing them, and reading
anything but the pool it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

# Raised whenever a feature changes its meaning, here or in ``evidence``: a model of another one is refused.
VERSION = 2
NAMES = (
    "dense", "prototype", "dice", "lexical",
    "dense_gap", "prototype_gap", "dice_gap", "lexical_gap",
    "dense_second", "dense_mean3", "near_phrases", "lexical_phrases",
    "dense_rank", "prototype_rank", "total_rank",
    "query_covered", "phrase_covered", "length_ratio", "query_length",
    "is_title", "phrases_of_code", "unspecified", "secondary",
    "category_gap", "category_size", "same_category",
)  # fmt: skip

_NEAR = 0.15
_NOWHERE = -1.0
_PAIR = 2


@dataclass(frozen=True)
class Pool:
    """The candidates of one phrase, a row each: all arrays of shape (n,).

    ``codes`` are numbers of codes, ``categories`` numbers of their three-character categories; ``lexical`` is
    mode C's score (0 where mode C did not find the row); ``weights`` the idf sum of each phrase's trigrams,
    ``query_weight`` that of the text, ``lengths`` and ``query_length`` numbers of distinct trigrams.
    """

    codes: Ints
    categories: Ints
    dense: Floats
    prototype: Floats
    dice: Floats
    lexical: Floats
    is_title: npt.NDArray[np.bool_]
    weights: Floats
    lengths: Floats
    query_weight: float
    query_length: int


@dataclass(frozen=True)
class CodeFacts:
    """What is known of each code of the corpus, by its number: arrays of shape (codes,)."""

    phrases: Floats
    unspecified: Floats
    secondary: Floats


def code_features(
    pool: Pool, total: Floats, facts: CodeFacts, most: int
) -> tuple[Ints, npt.NDArray[np.float32]]:
    """Return (the place in the pool of each candidate code's best row, (m, len(NAMES)) features).

    Candidates are the ``most`` codes of the largest ``total`` (n,), best first; ties go to the lower number.
    """
    numbers, group = np.unique(pool.codes, return_inverse=True)
    best_total = _largest(total, group, len(numbers))
    chosen = np.lexsort((numbers, -best_total))[:most]
    by_dense = np.lexsort((-pool.dense, group))
    starts = np.searchsorted(group[by_dense], np.arange(len(numbers) + 1))
    dense = _largest(pool.dense, group, len(numbers))
    lexical = _largest(pool.lexical, group, len(numbers))
    dice = _largest(pool.dice, group, len(numbers))
    prototype = _largest(pool.prototype, group, len(numbers))
    sorted_dense = np.append(pool.dense[by_dense], _NOWHERE)
    lengths = np.diff(starts)
    second = np.where(
        lengths >= _PAIR, sorted_dense[np.minimum(starts[:-1] + 1, len(pool.dense))], dense - 2 * _NEAR
    )
    third = np.where(lengths > _PAIR, sorted_dense[np.minimum(starts[:-1] + 2, len(pool.dense))], second)
    # The row that speaks for a code is its best by the total.
    by_total = np.lexsort((-total, group))
    speaker = by_total[np.searchsorted(group[by_total], np.arange(len(numbers)))][chosen]
    shared = pool.dice[speaker] * (pool.query_weight + pool.weights[speaker]) / 2
    category = pool.categories[speaker]
    kinds, kind = np.unique(category, return_inverse=True)
    of_category = _largest(best_total[chosen], kind, len(kinds))[kind]
    columns = [
        dense[chosen],
        prototype[chosen],
        dice[chosen],
        lexical[chosen],
        dense[chosen] - dense.max(),
        prototype[chosen] - prototype.max(),
        dice[chosen] - dice.max(),
        lexical[chosen] - lexical.max(),
        second[chosen],
        ((dense + second + third) / 3)[chosen],
        np.bincount(group, pool.dense > dense.max() - _NEAR, len(numbers))[chosen],
        np.bincount(group, pool.lexical > 0, len(numbers))[chosen],
        _rank(dense)[chosen],
        _rank(prototype)[chosen],
        np.arange(len(chosen), dtype=np.float64),
        shared / max(pool.query_weight, 1e-9),
        shared / np.maximum(pool.weights[speaker], 1e-9),
        np.log((pool.lengths[speaker] + 1) / (pool.query_length + 1)),
        np.full(len(chosen), float(pool.query_length)),
        pool.is_title[speaker].astype(np.float64),
        np.log(facts.phrases[numbers[chosen]]),
        facts.unspecified[numbers[chosen]],
        facts.secondary[numbers[chosen]],
        best_total[chosen] - of_category,
        np.bincount(kind, minlength=len(kinds))[kind].astype(np.float64),
        (category == category[0]).astype(np.float64),
    ]
    return speaker.astype(np.int64), np.column_stack(columns).astype(np.float32)


def _largest(values: Floats, group: Ints, count: int) -> Floats:
    found = np.full(count, -np.inf)
    np.maximum.at(found, group, values)
    return found


def _rank(values: Floats) -> Floats:
    """Return the rank of each value, the largest having 0; equal values share the better rank."""
    ordered = np.sort(-values)
    return np.searchsorted(ordered, -values).astype(np.float64)
