"""Mode C's ranking of corpus rows for one phrase: exact match first, then fused BM25 and shared trigrams.

Holds: the score of mode C, 0 to 1, comparable across phrases. Refuses: codes, filters' meaning, lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from alpha_id_runtime.ranked import RankedRows
from alpha_id_runtime.retrieval.fusion import reciprocal_rank_fusion
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import LexicalConfig
    from alpha_id_runtime.retrieval.lexical import Allow

EXACT_SCORE = 1.0
# The same words in another order, or an entry named by its code in the line.
TWIN_SCORE = 0.985
# What a code's second and third best phrase count for beside its best.
_AGREEMENT = np.array([0.0, 1 / 2, 1 / 3])
# Texts scored together: their trigrams take a few MB.
_AT_ONCE = 32
# Whatever is merely alike stays below what is the same.
ALIKE_CEILING = 0.97


def rank_rows(
    build: Build, texts: Sequence[str], settings: LexicalConfig, allows: Sequence[Allow | None]
) -> list[RankedRows]:
    """Return, for each text, the rows that may stand for it, scored.

    The score of a merely alike row is the weighted mean of its fused rank (1 = first by words and trigrams)
    and its idf-weighted Dice coefficient, joined by those of the next best rows of the same code: where
    several phrases of a code are like the text, the code is the likelier. A text's ranking depends on no
    other text.
    """
    normalised = [normalise(text) for text in texts]
    ranked = []
    for text, allow, alike in zip(
        normalised, allows, alike_rows(build, normalised, settings, allows), strict=True
    ):
        rows, scores = alike.rows, ALIKE_CEILING * alike.joined
        twins = build.lexical.twins(text, allow)
        if len(twins):  # an exact match is a twin, too
            rows, scores = _raise_to(rows, scores, twins, TWIN_SCORE)
            rows, scores = _raise_to(rows, scores, build.lexical.exact(text, allow), EXACT_SCORE)
        ranked.append(RankedRows.of(rows, scores))
    return ranked


class Alike(NamedTuple):
    """The rows that are like a text; all but the two rankings of shape (n,), 0 to 1.

    ``trigram_rows`` and ``word_rows`` are each arm's own, best first. ``joined`` is the mean of ``fused``
    (rank) and ``dice`` with ``agreement`` added, divided by what that can be at most.
    """

    rows: npt.NDArray[np.int64]
    trigram_rows: npt.NDArray[np.int64]
    word_rows: npt.NDArray[np.int64]
    fused: npt.NDArray[np.float64]
    dice: npt.NDArray[np.float64]
    agreement: npt.NDArray[np.float64]
    joined: npt.NDArray[np.float64]


def alike_rows(
    build: Build, normalised: Sequence[str], settings: LexicalConfig, allows: Sequence[Allow | None]
) -> list[Alike]:
    """Return, for each normalised text, the rows like it with each part of their scores."""
    found: list[Alike] = []
    for start in range(0, len(normalised), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        found += _alike(build, normalised[part], settings, allows[part])
    return found


def _alike(
    build: Build, normalised: Sequence[str], settings: LexicalConfig, allows: Sequence[Allow | None]
) -> list[Alike]:
    """Search text by text, then score what all of them found at once."""
    size, asked = len(build.phrases), list(zip(normalised, allows, strict=True))
    by_trigrams = [build.lexical.trigrams(text, settings.pool, allow) for text, allow in asked]
    by_words = [build.lexical.words(text, settings.pool, allow) for text, allow in asked]
    keys, fused = reciprocal_rank_fusion(
        [
            (_keys(by_trigrams, size), settings.trigram_weight),
            (_keys(by_words, size), settings.word_weight),
        ],
        k=settings.rrf_k,
        group_size=size,
    )
    owner, rows = np.divmod(keys, size)
    dice = build.units.dice([build.units.of_text(text) for text in normalised], rows, owner)
    own = (1 - settings.similarity_weight) * fused + settings.similarity_weight * dice
    codes = owner * len(build.phrases.codes) + build.phrases.code_index[rows].astype(np.int64)
    agreement = _agreement(codes, own)
    weight = settings.agreement_weight
    joined = (own + weight * agreement) / (1 + weight * _AGREEMENT.sum())
    bounds = np.searchsorted(owner, np.arange(1, len(normalised)))
    parts = (np.split(each, bounds) for each in (rows, fused, dice, agreement, joined))
    return [
        Alike(of_rows, *arms, *scores)
        for of_rows, arms, *scores in zip(
            next(parts), zip(by_trigrams, by_words, strict=True), *parts, strict=True
        )
    ]


def _keys(found: Sequence[npt.NDArray[np.int64]], size: int) -> npt.NDArray[np.int64]:
    """Return the rows found for each text as one array: text * size + row."""
    return np.concatenate([place * size + rows for place, rows in enumerate(found)])


def _agreement(codes: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return, for each row, half its code's second best score and a third of its third best, in sum."""
    if not len(codes):
        return np.zeros(0)
    order = np.lexsort((-scores, codes))
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_codes[1:] != sorted_codes[:-1])))
    lengths = np.diff(np.append(starts, len(codes)))
    place = np.arange(len(codes)) - np.repeat(starts, lengths)
    shares = np.where(place < len(_AGREEMENT), np.take(_AGREEMENT, place, mode="clip"), 0.0)
    agreement = np.empty(len(codes))
    agreement[order] = np.repeat(np.add.reduceat(shares * scores[order], starts), lengths)
    return agreement


def _raise_to(
    rows: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], same: npt.NDArray[np.int64], score: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Give the rows ``same`` this score, those that no pool held included."""
    if not len(same):
        return rows, scores
    is_same = rows[:, None] == same
    scores = np.where(is_same.any(axis=1), score, scores)
    new = same[~is_same.any(axis=0)]
    return np.concatenate([rows, new]), np.concatenate([scores, np.full(len(new), score)])
