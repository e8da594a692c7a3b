"""What a learned reranker looks at: one row of numbers for each candidate code. Pure numpy.

Holds: the features, their names and order, for training and query alike. Refuses: weighing them, and reading
anything but the pool it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

# Raised whenever a feature changes its meaning, here or in ``evidence``: a model of another one is refused.
VERSION = 3
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
    """The candidates of several texts, a row each: arrays of shape (n,), ordered by text and corpus row.

    ``texts``: which text a row is a candidate for; ``rows`` of the corpus; ``codes`` are numbers of codes,
    ``categories`` numbers of their three-character categories; ``lexical`` is mode C's score (0 where mode C
    did not find the row); ``weights`` the idf sum of each phrase's trigrams, ``text_weights`` those of the
    texts, ``lengths`` and ``text_lengths`` numbers of distinct trigrams.
    """

    texts: Ints
    rows: Ints
    codes: Ints
    categories: Ints
    dense: Floats
    prototype: Floats
    dice: Floats
    lexical: Floats
    is_title: npt.NDArray[np.bool_]
    weights: Floats
    lengths: Floats
    text_weights: Floats
    text_lengths: Floats


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

    Candidates are each text's ``most`` codes of the largest ``total`` (n,), best first, text after text; ties
    go to the lower number. A code's features depend on no other text.
    """
    count = len(facts.phrases)
    keys, group = np.unique(pool.texts * count + pool.codes, return_inverse=True)
    owner, numbers = np.divmod(keys, count)
    text = _Groups.of(owner)
    # Within a code: its rows by similarity, and the row that speaks for it, its best by the total.
    by_dense = np.lexsort((-pool.dense, group))
    starts = np.searchsorted(group[by_dense], np.arange(len(keys)))
    lengths = np.diff(np.append(starts, len(group)))
    speaker = np.lexsort((-total, group))[starts]
    best_total = total[speaker]
    dense = pool.dense[by_dense[starts]]
    by_code = _Groups(starts, lengths)
    members = np.argsort(group, kind="stable")
    lexical = by_code.largest(pool.lexical[members])
    dice = by_code.largest(pool.dice[members])
    prototype = pool.prototype[speaker]
    second = np.where(
        lengths >= _PAIR, pool.dense[by_dense[np.minimum(starts + 1, len(group) - 1)]], dense - 2 * _NEAR
    )
    third = np.where(lengths > _PAIR, pool.dense[by_dense[np.minimum(starts + 2, len(group) - 1)]], second)
    near_from = text.spread(text.largest(dense)) - _NEAR

    order = np.lexsort((numbers, -best_total, owner))
    place = np.arange(len(order)) - text.spread(text.starts)
    chosen = order[place < most]
    of_text = _Groups.of(owner[chosen])
    speaker = speaker[chosen]
    weight = pool.text_weights[owner[chosen]]
    shared = pool.dice[speaker] * (weight + pool.weights[speaker]) / 2
    category = pool.categories[speaker]
    kinds, kind = np.unique(owner[chosen] * (category.max(initial=0) + 1) + category, return_inverse=True)
    by_kind = np.argsort(kind, kind="stable")
    of_kind = _Groups.of(kind[by_kind])
    of_category = of_kind.largest(best_total[chosen][by_kind])[kind]

    def gap(values: Floats) -> Floats:
        below: Floats = values - text.spread(text.largest(values))
        return np.asarray(below[chosen], dtype=np.float64)

    columns = [
        dense[chosen],
        prototype[chosen],
        dice[chosen],
        lexical[chosen],
        gap(dense),
        gap(prototype),
        gap(dice),
        gap(lexical),
        second[chosen],
        ((dense + second + third) / 3)[chosen],
        np.bincount(group, pool.dense > near_from[group], len(keys))[chosen],
        np.bincount(group, pool.lexical > 0, len(keys))[chosen],
        text.ranks(dense)[chosen],
        text.ranks(prototype)[chosen],
        place[place < most].astype(np.float64),
        shared / np.maximum(weight, 1e-9),
        shared / np.maximum(pool.weights[speaker], 1e-9),
        np.log((pool.lengths[speaker] + 1) / (pool.text_lengths[owner[chosen]] + 1)),
        pool.text_lengths[owner[chosen]],
        pool.is_title[speaker].astype(np.float64),
        np.log(facts.phrases[numbers[chosen]]),
        facts.unspecified[numbers[chosen]],
        facts.secondary[numbers[chosen]],
        best_total[chosen] - of_category,
        np.bincount(kind, minlength=len(kinds))[kind].astype(np.float64),
        (category == of_text.spread(category[of_text.starts])).astype(np.float64),
    ]
    return speaker.astype(np.int64), np.column_stack(columns).astype(np.float32)


class _Groups(NamedTuple):
    """Runs of an array: where each begins, and how long it is."""

    starts: Ints
    lengths: Ints

    @classmethod
    def of(cls, ascending: Ints) -> _Groups:
        """Return the runs of equal values."""
        starts = np.flatnonzero(np.diff(ascending, prepend=-1))
        return cls(starts, np.diff(np.append(starts, len(ascending))))

    def largest(self, values: Floats) -> Floats:
        """Return the largest value of each run."""
        return np.asarray(np.maximum.reduceat(values, self.starts)) if len(self.starts) else values

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each element the value of its run."""
        return np.repeat(values, self.lengths)

    def ranks(self, values: Floats) -> Floats:
        """Return the rank of each value in its run, the largest having 0; equal values share the better."""
        run = self.spread(np.arange(len(self.starts)))
        order = np.lexsort((-values, run))
        ordered = values[order]
        is_new = np.ones(len(values), dtype=np.bool_)
        is_new[1:] = (ordered[1:] != ordered[:-1]) | (run[1:] != run[:-1])
        firsts = np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))
        ranks = np.empty(len(values))
        ranks[order] = firsts - self.spread(self.starts)
        return ranks
