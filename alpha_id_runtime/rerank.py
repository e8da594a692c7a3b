"""Rerankers: the order of candidates that retrieval found. They only reorder; no candidate is made here.

Holds: the ``fusion`` reranker (a weighted, calibrated sum) and the ``hub`` reranker. Refuses: retrieval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from alpha_id_runtime.lexical_ranking import ALIKE_CEILING, TWIN_SCORE
from alpha_id_runtime.ranked import RankedRows
from alpha_id_runtime.retrieval.fusion import reciprocal_rank_fusion
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

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
    """Lexical, dense and prototype similarity as one probability: the default of mode A."""

    def __init__(self, build: Build, index: DenseIndex, settings: FusionConfig) -> None:
        """Match the prototypes' codes with those of the corpus."""
        self._build = build
        self._index = index
        self._settings = settings
        places = {code: place for place, code in enumerate(index.codes)}
        self._place_of_code = np.array([places.get(code, -1) for code in build.phrases.codes], dtype=np.int64)
        numbers = {code: number for number, code in enumerate(build.phrases.codes)}
        self._code_of_place = np.array([numbers.get(code, -1) for code in index.codes], dtype=np.int64)

    def __call__(self, text: str, lexical: RankedRows, near: Neighbours, allow: Allow | None) -> RankedRows:
        """Return the fused pool of one phrase, scored; what is the same as the phrase keeps its score."""
        settings = self._settings
        by_score = lexical.rows[np.lexsort((lexical.rows, -lexical.scores))]
        rows, _ = reciprocal_rank_fusion(
            [
                (by_score, settings.lexical_rank_weight),
                (near.rows, settings.semantic_rank_weight),
                (self._rows_of_near_codes(near, allow), settings.prototype_rank_weight),
            ],
            k=settings.rrf_k,
        )
        is_same = lexical.scores >= TWIN_SCORE
        rows = np.union1d(rows[: settings.pool], lexical.rows[is_same])
        total = (
            settings.lexical_weight * self._build.units.dice(normalise(text), rows)
            + settings.dense_weight * self._index.similarity(near.vector, rows)
            + settings.prototype_weight * self._prototype_scores(near, rows)
        )
        scores = ALIKE_CEILING / (1 + np.exp(-(settings.slope * total + settings.intercept)))
        scores[np.searchsorted(rows, lexical.rows[is_same])] = lexical.scores[is_same]
        return RankedRows.of(rows, scores)

    def _prototype_scores(self, near: Neighbours, rows: npt.NDArray[np.int64]) -> Scores:
        places = self._place_of_code[self._build.phrases.code_index[rows]]
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
