"""The ranking of corpus rows for one line, as it passes from step to step.

Holds: rows, their scores, and which reading of the line found each. Refuses: any ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


@dataclass(frozen=True)
class RankedRows:
    """Rows of the corpus with their scores (0 to 1), in no order; all of shape (n,).

    ``queries`` is the place, among the texts tried for the line, of the one that found the row best.
    """

    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    queries: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]) -> RankedRows:
        """Return the ranking of a single text."""
        return cls(rows, scores, np.zeros(len(rows), dtype=np.int64))

    def with_row(self, row: int, score: float, query: int) -> RankedRows:
        """Return the ranking with one more row."""
        return RankedRows(
            np.append(self.rows, row), np.append(self.scores, score), np.append(self.queries, query)
        )


def merge(rankings: Sequence[RankedRows], weights: Sequence[float]) -> RankedRows:
    """Return one ranking of several texts tried for one line: a row keeps its best weighted score."""
    if len(rankings) == 1:
        return rankings[0]
    rows = np.concatenate([each.rows for each in rankings])
    scores = np.concatenate([each.scores * weight for each, weight in zip(rankings, weights, strict=True)])
    queries = np.repeat(np.arange(len(rankings)), [len(each.rows) for each in rankings])
    order = np.lexsort((queries, rows, -scores))
    _, first = np.unique(rows[order], return_index=True)
    kept = order[first]
    return RankedRows(rows[kept], scores[kept], queries[kept])
