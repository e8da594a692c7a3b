"""Rerankers: the order of candidates that retrieval found. They only reorder; no candidate is made here.

Holds: the fused pool with its two local rankings (``fusion``: a weighted, calibrated sum; ``learned``: trees
on top of it) and the ``hub`` reranker. Refuses: retrieval.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from alpha_id_runtime.evidence import Evidence
from alpha_id_runtime.features import CodeFacts, Pool, code_features
from alpha_id_runtime.hierarchy import says_unspecified
from alpha_id_runtime.lexical_ranking import ALIKE_CEILING, TWIN_SCORE
from alpha_id_runtime.ranked import RankedRows
from alpha_id_runtime.retrieval.fusion import reciprocal_rank_fusion
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from alpha_id_runtime.boosting import BoostedTrees
    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import FusionConfig
    from alpha_id_runtime.retrieval.dense import Allow, DenseIndex
    from alpha_id_runtime.semantic import Neighbours

    Scores = npt.NDArray[np.float64]


# So many prototypes more than wanted are looked at closely.
_ROUGHLY = 5
_BLOCK = 64
# Texts judged together: what is known of their pools takes a few MB.
_AT_ONCE = 32


class TextReranker(Protocol):
    """What the ``hub`` reranker needs of a hub."""

    def rerank_many(
        self, pairs: Sequence[tuple[str, Sequence[str]]], *, deadline: float | None = None
    ) -> list[list[float]]:
        """Return the relevance of each document to its query; higher is better."""


class FusionReranker:
    """Mixes the arms into one pool and ranks it: by a calibrated sum, or by learned trees on top of it.

    ``fusion`` is the sum alone. ``learned`` lets boosted trees judge the best codes of that sum.
    """

    def __init__(
        self, build: Build, index: DenseIndex, settings: FusionConfig, trees: BoostedTrees | None
    ) -> None:
        """Match the prototypes' codes with those of the corpus. ``trees`` None: the sum alone."""
        self._build = build
        self._index = index
        self._settings = settings
        self._trees = trees
        self._evidence = Evidence(build)
        names = build.phrases.codes
        places = {code: place for place, code in enumerate(index.codes)}
        self._place_of_code = np.array([places.get(code, -1) for code in names], dtype=np.int64)
        numbers = {code: number for number, code in enumerate(names)}
        self._code_of_place = np.array([numbers.get(code, -1) for code in index.codes], dtype=np.int64)

    def __call__(
        self,
        texts: Sequence[str],
        lexical: Sequence[RankedRows],
        near: Sequence[Neighbours],
        allows: Sequence[Allow | None],
    ) -> list[RankedRows]:
        """Return the fused pool of each text, scored; what is the same as the text keeps its score."""
        ranked: list[RankedRows] = []
        for start in range(0, len(texts), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            ranked += self._rank(texts[part], lexical[part], near[part], allows[part])
        return ranked

    def _rank(
        self,
        texts: Sequence[str],
        lexical: Sequence[RankedRows],
        near: Sequence[Neighbours],
        allows: Sequence[Allow | None],
    ) -> list[RankedRows]:
        settings = self._settings
        pool, total = self.pools(texts, lexical, near, allows)
        scores = 1 / (1 + np.exp(-(settings.slope * total + settings.intercept)))
        if self._trees is not None and len(total):
            speakers, features = self.judged(texts, pool, total, allows)
            owner = pool.texts[speakers]
            firsts = np.flatnonzero(np.diff(owner, prepend=-1))
            # Trees compare candidates: of a text that none is like, one is still the best. Each text's best
            # comes first.
            trust = np.zeros(len(texts))
            trust[owner[firsts]] = total[speakers[firsts]]
            trust = 1 / (1 + np.exp(-(settings.trust_slope * trust + settings.trust_intercept)))
            learned = self._trees.probability(features) * trust[owner]
            # A code is judged as a whole: its other rows, and codes beyond the judged, stay below.
            least = np.zeros(len(texts))
            least[owner[firsts]] = np.minimum.reduceat(learned, firsts)
            scores *= least[pool.texts]
            scores[speakers] = learned
        scores = ALIKE_CEILING * scores
        # What is the same as a text is in its pool.
        scores = np.where(pool.lexical >= TWIN_SCORE, pool.lexical, scores)
        bounds = np.searchsorted(pool.texts, np.arange(len(texts) + 1))
        return [
            RankedRows.of(pool.rows[first:end], scores[first:end]) for first, end in pairwise(bounds.tolist())
        ]

    def pools(
        self,
        texts: Sequence[str],
        lexical: Sequence[RankedRows],
        near: Sequence[Neighbours],
        allows: Sequence[Allow | None],
    ) -> tuple[Pool, Scores]:
        """Return (what is known of each row of each text's fused pool; their weighted sums)."""
        settings, units, phrases = self._settings, self._build.units, self._build.phrases
        keys, found, scores = self._fused(lexical, near, allows)
        owner, rows = np.divmod(keys, len(phrases))
        own = np.zeros(len(keys))
        if len(keys):
            place = np.minimum(np.searchsorted(keys, found), len(keys) - 1)
            is_in = keys[place] == found
            own[place[is_in]] = scores[is_in]
        numbers = phrases.code_index[rows].astype(np.int64)
        bounds = np.searchsorted(owner, np.arange(len(texts) + 1)).tolist()
        dense, prototype = np.empty(len(keys)), np.empty(len(keys))
        for around, (first, end) in zip(near, pairwise(bounds), strict=True):
            dense[first:end] = self._index.similarity(around.vector, rows[first:end])
            prototype[first:end] = self._prototype_scores(around, numbers[first:end])
        known = [units.of_text(normalise(text)) for text in texts]
        pool = Pool(
            texts=owner,
            rows=rows,
            codes=numbers,
            categories=self._categories[numbers],
            dense=dense,
            prototype=prototype,
            dice=units.dice(known, rows, owner),
            lexical=own,
            is_title=phrases.is_title[rows],
            weights=units.weight[rows].astype(np.float64),
            lengths=(units.indptr[rows + 1] - units.indptr[rows]).astype(np.float64),
            text_weights=np.array([each.weight for each in known]),
            text_lengths=np.array([float(each.size) for each in known]),
        )
        total = (
            settings.lexical_weight * pool.dice
            + settings.dense_weight * pool.dense
            + settings.prototype_weight * pool.prototype
        )
        return pool, total

    def _fused(
        self, lexical: Sequence[RankedRows], near: Sequence[Neighbours], allows: Sequence[Allow | None]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Scores]:
        """Return (the keys of all pools, ascending; the keys that mode C found; its scores of these).

        A key is text * rows of the corpus + row.
        """
        settings, size = self._settings, len(self._build.phrases)
        owner = np.repeat(np.arange(len(lexical)), [len(each.rows) for each in lexical])
        scores = np.concatenate([each.scores for each in lexical])
        found = owner * size + np.concatenate([each.rows for each in lexical])
        by_score = found[np.lexsort((found, -scores, owner))]
        nearest = np.concatenate([place * size + each.rows for place, each in enumerate(near)])
        of_codes = np.concatenate(
            [
                place * size + self._rows_of_near_codes(each, allow)
                for place, (each, allow) in enumerate(zip(near, allows, strict=True))
            ]
        )
        keys, _ = reciprocal_rank_fusion(
            [
                (by_score, settings.lexical_rank_weight),
                (nearest, settings.semantic_rank_weight),
                (of_codes, settings.prototype_rank_weight),
            ],
            k=settings.rrf_k,
            group_size=size,
        )
        place = np.arange(len(keys)) - np.searchsorted(keys // size, keys // size)
        same = found[scores >= TWIN_SCORE]
        return np.union1d(keys[place < settings.pool], same), found, scores

    def judged(
        self, texts: Sequence[str], pool: Pool, total: Scores, allows: Sequence[Allow | None]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return what the trees judge: (the place in the pool of each code's best row, its features)."""
        speakers, features = code_features(pool, total, self.facts, self._settings.learned_pool)
        bounds = np.searchsorted(pool.texts[speakers], np.arange(len(texts) + 1))
        evidence = [
            self._evidence.of_codes(text, pool.codes[own], pool.rows[own], pool.categories[own], allow)
            for text, allow, own in zip(texts, allows, np.split(speakers, bounds[1:-1]), strict=True)
        ]
        return speakers, np.hstack([features, np.vstack(evidence)])

    @cached_property
    def facts(self) -> CodeFacts:
        """What is known of each code of the corpus."""
        phrases, codes = self._build.phrases, self._build.codes
        return CodeFacts(
            phrases=np.bincount(phrases.code_index, minlength=len(phrases.codes)).astype(np.float64),
            unspecified=np.array(
                [says_unspecified(title) for title in codes.titles(phrases.codes)], dtype=np.float64
            ),
            secondary=np.array(
                [usage in ("aster", "optional") for usage in codes.usages(phrases.codes)], dtype=np.float64
            ),
        )

    @cached_property
    def _categories(self) -> npt.NDArray[np.int64]:
        _, categories = np.unique([code[:3] for code in self._build.phrases.codes], return_inverse=True)
        return categories.astype(np.int64)

    def _prototype_scores(self, near: Neighbours, numbers: npt.NDArray[np.int64]) -> Scores:
        distinct, place = np.unique(numbers, return_inverse=True)
        return self._prototype_scores_of(near, distinct)[place]

    def _prototype_scores_of(self, near: Neighbours, numbers: npt.NDArray[np.int64]) -> Scores:
        places = self._place_of_code[numbers]
        similar = self._index.similarity_to_codes(near.vector, np.maximum(places, 0))
        return np.where(places >= 0, similar, 0.0)

    def _rows_of_near_codes(self, near: Neighbours, allow: Allow | None) -> npt.NDArray[np.int64]:
        """Return all rows of the codes whose prototypes are nearest, the nearest code's first."""
        rough = min(self._settings.prototype_pool + _ROUGHLY, len(near.prototypes))
        best = places_of_largest(near.prototypes, rough)
        exact = self._index.similarity_to_codes(near.vector, best)
        best = best[np.lexsort((best, -exact))][: self._settings.prototype_pool]
        numbers = self._code_of_place[best]
        rows = self._build.phrases.rows_of_numbers(numbers[numbers >= 0])
        return rows if allow is None else rows[allow(rows)]


def places_of_largest(values: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.int64]:
    """Return the places of the ``count`` largest values, in no order.

    They lie in the blocks of the largest maxima: a tenth of the work of parting all values.
    """
    blocks = len(values) // _BLOCK
    if blocks <= count:
        return np.argpartition(values, len(values) - count)[-count:]
    maxima = values[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
    chosen = np.argpartition(maxima, blocks - count)[-count:]
    within = (chosen[:, None] * _BLOCK + np.arange(_BLOCK)).reshape(-1)
    places = np.concatenate([within, np.arange(blocks * _BLOCK, len(values))])
    return places[np.argpartition(values[places], len(places) - count)[-count:]]


def rerank_by_hub(
    hub: TextReranker,
    texts: Sequence[str],
    documents: Sequence[Sequence[str]],
    scores: Sequence[Scores],
    deadline: float | None,
) -> list[Scores]:
    """Return new scores for each text's documents: their own scores, dealt out in the hub's order.

    So a score keeps its meaning, whatever scale the hub's model has. One request a text, all at once.

    Raises:
        ProviderError: not all were answered by ``deadline``.
    """
    answers = hub.rerank_many(list(zip(texts, documents, strict=True)), deadline=deadline)
    dealt = []
    for own, relevance in zip(scores, answers, strict=True):
        order = np.argsort(-np.asarray(relevance), kind="stable")
        new = np.empty(len(own))
        new[order] = np.sort(own)[::-1]
        dealt.append(new)
    return dealt
