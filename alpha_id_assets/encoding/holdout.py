"""How good an encoder is on phrases it never saw: drawing them, and the recall of their codes.

Holds: a draw that leaves no twin of a held-out phrase behind, and exact search over what is left. Refuses:
evaluation files of real coders; they are never looked at here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_assets.encoding.settings import TrainingSettings
from alpha_id_runtime.text import twin_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl
    from numpy.typing import NDArray

    from alpha_id_assets.encoding.trained import TrainedEncoder
    from alpha_id_runtime.encoder import FloatArray, IntArray

RANKINGS = ("phrase", "prototype", "sum")
CUTS = (1, 5, 10)
_QUERIES_AT_ONCE = 256


@dataclass(frozen=True)
class Holdout:
    """A draw: ``rows`` of the frame that are asked; ``kept``, one bool a row: may be trained on and found."""

    rows: IntArray
    kept: NDArray[np.bool_]
    seed: int


@dataclass(frozen=True)
class HoldoutReport:
    """Rank of the right code for each held-out phrase (0 is first), by ranking; ties count against it."""

    ranks: Mapping[str, IntArray]
    seed: int

    def recall(self, ranking: str, cut: int) -> float:
        """Return the share of phrases whose code is among the first ``cut``."""
        return float((self.ranks[ranking] < cut).mean())

    def as_metadata(self) -> dict[str, float]:
        """Return every recall by name, as "sum R@10"."""
        return {f"{ranking} R@{cut}": self.recall(ranking, cut) for ranking in self.ranks for cut in CUTS}


def draw_holdout(phrases: pl.DataFrame, *, n: int = 1500, seed: int) -> Holdout:
    """Draw ``n`` phrases to be held out, with all their twins.

    Drawn are valid Alpha-ID phrases (of billable codes, where ``phrases`` has a column ``billable``) whose
    code keeps another phrase. Twins share ``twin_key``; those of a drawn phrase are neither kept nor asked,
    whatever their origin and code. Fewer than ``n`` come back where the corpus has no more.

    Args:
        phrases: columns norm, icd_code, origin, valid; one row a phrase.
        n: how many to hold out.
        seed: of the draw; the same one gives the same rows.
    """
    codes = phrases["icd_code"].to_list()
    eligible = (phrases["origin"] == "alpha_id").to_numpy() & phrases["valid"].to_numpy()
    if "billable" in phrases.columns:
        eligible &= phrases["billable"].to_numpy()
    twins: dict[str, list[int]] = {}
    keys = [twin_key(norm) for norm in phrases["norm"].to_list()]
    left: dict[str, int] = {}
    for row, (key, code) in enumerate(zip(keys, codes, strict=True)):
        twins.setdefault(key, []).append(row)
        left[code] = left.get(code, 0) + 1
    kept = np.ones(len(codes), dtype=bool)
    rows: list[int] = []
    for row in np.random.default_rng(seed).permutation(np.flatnonzero(eligible)).tolist():
        if len(rows) == n:
            break
        group = twins[keys[row]]
        if not kept[row] or not keys[row]:
            continue
        if left[codes[row]] <= sum(codes[twin] == codes[row] for twin in group):
            continue
        # A twin may be the last phrase of another code, or of one drawn before: that one must stay findable.
        after: dict[str, int] = {}
        for twin in group:
            after[codes[twin]] = after.get(codes[twin], left[codes[twin]]) - 1
        if min(after.values()) < 1:
            continue
        left.update(after)
        kept[group] = False
        rows.append(row)
    return Holdout(np.array(rows, dtype=np.int64), kept, seed)


def evaluate_holdout(trained: TrainedEncoder, phrases: pl.DataFrame, holdout: Holdout) -> HoldoutReport:
    """Rank all codes for each held-out phrase, by exact search over the kept phrases.

    A code's phrase score is the cosine with its nearest kept phrase, its prototype score that with its
    prototype; ``sum`` adds both. ``phrases`` is the frame of the draw (columns text, icd_code); ``trained``
    must not have seen the rows that are not kept.
    """
    all_codes = phrases["icd_code"].to_numpy().astype(np.str_)
    names, owner = np.unique(all_codes[holdout.kept], return_inverse=True)
    by_code = np.argsort(owner, kind="stable")
    firsts = np.searchsorted(owner[by_code], np.arange(len(names)))
    texts = phrases["text"].to_list()
    kept_rows = np.flatnonzero(holdout.kept)[by_code]
    candidates = trained.encoder.encode([texts[row] for row in kept_rows])
    queries = trained.encoder.encode([texts[row] for row in holdout.rows])
    prototypes = _prototypes_of(trained, names.tolist())
    gold = np.searchsorted(names, all_codes[holdout.rows])
    ranks: dict[str, list[IntArray]] = {ranking: [] for ranking in RANKINGS}
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        part = slice(start, start + _QUERIES_AT_ONCE)
        phrase = np.maximum.reduceat(queries[part] @ candidates.T, firsts, axis=1)
        prototype = queries[part] @ prototypes.T
        for ranking, scores in zip(RANKINGS, (phrase, prototype, phrase + prototype), strict=True):
            ranks[ranking].append(_rank_of(scores, gold[part]))
    return HoldoutReport({ranking: np.concatenate(parts) for ranking, parts in ranks.items()}, holdout.seed)


def measure_draws(
    phrases: pl.DataFrame,
    *,
    seeds: tuple[int, ...],
    n: int = 1500,
    settings: TrainingSettings | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> list[HoldoutReport]:
    """Draw, train without the drawn phrases, evaluate: once for each of ``seeds``."""
    # The training pulls scipy; who only draws does without.
    from alpha_id_assets.encoding.training import train  # noqa: PLC0415

    reports = []
    for seed in seeds:
        holdout = draw_holdout(phrases, n=n, seed=seed)
        kept = phrases.filter(holdout.kept)
        trained = train(
            kept["text"].to_list(),
            kept["icd_code"].to_list(),
            settings=settings or TrainingSettings(),
            progress=progress,
        )
        reports.append(evaluate_holdout(trained, phrases, holdout))
    return reports


def _prototypes_of(trained: TrainedEncoder, names: list[str]) -> FloatArray:
    place = trained.code_prototypes.place
    matrix = np.zeros((len(names), trained.prototypes.shape[1]), dtype=np.float32)
    for row, name in enumerate(names):
        if name in place:
            matrix[row] = trained.prototypes[place[name]]
    return matrix


def _rank_of(scores: FloatArray, gold: IntArray) -> IntArray:
    right = scores[np.arange(len(gold)), gold][:, None]
    ranks: IntArray = (scores >= right).sum(axis=1) - 1
    return ranks
