"""Rerankers: the order of candidates that retrieval found. They only reorder; no candidate is made here.

Holds: the fused pool with its two local rankings (``fusion``: a weighted, calibrated sum; ``learned``: trees
on top of it) and the ``hub`` reranker. Refuses: retrieval.
"""

from __future__ import annotations

from functools import cached_property
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

    def __call__(self, text: str, lexical: RankedRows, near: Neighbours, allow: Allow | None) -> RankedRows:
        """Return the fused pool of one phrase, scored; what is the same as the phrase keeps its score."""
        settings = self._settings
        rows, pool, total = self.pool(text, lexical, near, allow)
        if not len(rows):
            return RankedRows.of(rows, total)
        scores = 1 / (1 + np.exp(-(settings.slope * total + settings.intercept)))
        if self._trees is not None:
            speakers, features = self.judged(text, rows, pool, total, allow)
            learned = self._trees.probability(features)
            # A code is judged as a whole: its other rows, and codes beyond the judged, stay below.
            scores *= learned.min()
            scores[speakers] = learned
        scores = ALIKE_CEILING * scores
        is_same = lexical.scores >= TWIN_SCORE
        scores[np.searchsorted(rows, lexical.rows[is_same])] = lexical.scores[is_same]
        return RankedRows.of(rows, scores)

    def pool(
        self, text: str, lexical: RankedRows, near: Neighbours, allow: Allow | None
    ) -> tuple[npt.NDArray[np.int64], Pool, Scores]:
        """Return (the rows of the fused pool, ascending; what is known of each; their weighted sums)."""
        settings, units = self._settings, self._build.units
        by_score = lexical.rows[np.lexsort((lexical.rows, -lexical.scores))]
        rows, _ = reciprocal_rank_fusion(
            [
                (by_score, settings.lexical_rank_weight),
                (near.rows, settings.semantic_rank_weight),
                (self._rows_of_near_codes(near, allow), settings.prototype_rank_weight),
            ],
            k=settings.rrf_k,
        )
        rows = np.union1d(rows[: settings.pool], lexical.rows[lexical.scores >= TWIN_SCORE])
        own = np.zeros(len(rows))
        place = np.searchsorted(rows, lexical.rows)
        found = np.flatnonzero((place < len(rows)) & (rows[np.minimum(place, len(rows) - 1)] == lexical.rows))
        own[place[found]] = lexical.scores[found]
        normalised = normalise(text)
        weight, length = units.weight_of(normalised)
        numbers = self._build.phrases.code_index[rows].astype(np.int64)
        pool = Pool(
            codes=numbers,
            categories=self._categories[numbers],
            dense=self._index.similarity(near.vector, rows),
            prototype=self._prototype_scores(near, numbers),
            dice=units.dice(normalised, rows),
            lexical=own,
            is_title=self._build.phrases.is_title[rows],
            weights=units.weight[rows].astype(np.float64),
            lengths=(units.indptr[rows + 1] - units.indptr[rows]).astype(np.float64),
            query_weight=weight,
            query_length=length,
        )
        total = (
            settings.lexical_weight * pool.dice
            + settings.dense_weight * pool.dense
            + settings.prototype_weight * pool.prototype
        )
        return rows, pool, total

    def judged(
        self, text: str, rows: npt.NDArray[np.int64], pool: Pool, total: Scores, allow: Allow | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return what the trees judge: (the place in the pool of each code's best row, its features)."""
        speakers, features = code_features(pool, total, self.facts, self._settings.learned_pool)
        evidence = self._evidence.of_codes(
            text, pool.codes[speakers], rows[speakers], pool.categories[speakers], allow
        )
        return speakers, np.hstack([features, evidence])

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
        places = self._place_of_code[numbers]
        return np.where(places >= 0, near.prototypes[places], 0.0).astype(np.float64)

    def _rows_of_near_codes(self, near: Neighbours, allow: Allow | None) -> npt.NDArray[np.int64]:
        """Return all rows of the codes whose prototypes are nearest, the nearest code's first."""
        count = min(self._settings.prototype_pool, len(near.prototypes))
        best = np.argpartition(-near.prototypes, count - 1)[:count]
        best = best[np.lexsort((best, -near.prototypes[best]))]
        numbers = self._code_of_place[best]
        rows = self._build.phrases.rows_of_numbers(numbers[numbers >= 0])
        return rows if allow is None else rows[allow(rows)]


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
