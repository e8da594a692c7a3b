"""Mixing rankings of corpus rows. Pure: arrays in, arrays out.

Holds: reciprocal rank fusion. Refuses: scores; a rank is all that is comparable between two retrievers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def reciprocal_rank_fusion(
    rankings: Sequence[tuple[npt.NDArray[np.int64], float]], *, k: int, group_size: int | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return (rows, scores), best first: each ranking gives ``weight / (k + rank)``, rank from 0.

    Scores are divided by the best possible one, so that 1 means first in every ranking of weight above 0.
    Ties are broken by row. With ``group_size`` many groups are ranked at once: each ranking holds ``group *
    group_size + row``, group after group, and so does the result. Source: Cormack, Clarke, Büttcher 2009,
    "Reciprocal rank fusion".
    """
    best = sum(weight for _, weight in rankings) / k
    if best <= 0 or not any(len(rows) for rows, _ in rankings):
        return np.empty(0, dtype=np.int64), np.empty(0)
    rows = np.concatenate([ranking for ranking, _ in rankings])
    shares = np.concatenate([weight / (k + _ranks(ranking, group_size)) for ranking, weight in rankings])
    distinct, place = np.unique(rows, return_inverse=True)
    scores = np.bincount(place, weights=shares, minlength=len(distinct)) / best
    groups = () if group_size is None else (distinct // group_size,)
    order = np.lexsort((distinct, -scores, *groups))
    return distinct[order], scores[order]


def _ranks(ranking: npt.NDArray[np.int64], group_size: int | None) -> npt.NDArray[np.int64]:
    ranks = np.arange(len(ranking))
    if group_size is None:
        return ranks
    groups = ranking // group_size
    return ranks - np.searchsorted(groups, groups)
