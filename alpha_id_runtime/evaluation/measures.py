"""From answers to figures: ranks of a case, recall, intervals, differences, calibration.

Holds: what a hit is, the standard measures (by ir-measures) and the bootstrap. Refuses: leaving a judged case
out. A case without an answer, or with an error, is a miss, so that no system looks better by not answering.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from alpha_id_runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from alpha_id_runtime.evaluation.cases import Case, ListCase

    Floats = npt.NDArray[np.float64]

RESAMPLES = 1000
LEVEL = 0.95
PLACES = 10
CUTS = (1, 5, 10)
LEADING = "BillableRecall@10"
BINS = 10
CATEGORY = 3  # characters


class Offered(NamedTuple):
    """One suggestion of an answer: its code, the codes that complement it, where it came from."""

    icd_code: str
    complements: tuple[str, ...] = ()
    score: float = 0.0
    origin: str = ""
    billable: bool = True


@dataclass(frozen=True)
class Answer:
    """What a ranker answered to one case.

    Args:
        case_id: the case.
        codes: suggestions, best first.
        error: class of the error instead of an answer; never input text.
        seconds: its share of the time of its batch.
        degraded: answered by mode C for want of vectors or provider.
        skipped: the line was taken to hold no diagnosis.
        hub_calls: requests to a provider for it.
        euros: spent on them.
    """

    case_id: str
    codes: tuple[Offered, ...] = ()
    error: str | None = None
    seconds: float = 0.0
    degraded: bool = False
    skipped: bool = False
    hub_calls: int = 0
    euros: float = 0.0


Rank = int | None  # counted from 1


@dataclass(frozen=True)
class Judged:
    """A case with its answer. The tuples hold one rank for each gold code, in the order of ``case.gold``.

    Args:
        ranks: of the first suggestion that has the code as ``icd_code`` or among its complements.
        strict: ``icd_code`` only.
        billable: as ``ranks``, counted among the billable suggestions alone.
        category: as ``ranks``, the first three characters being enough.
        prefix: some gold code is not terminal, and counts as a prefix.
    """

    case: Case
    answer: Answer
    ranks: tuple[Rank, ...]
    strict: tuple[Rank, ...]
    billable: tuple[Rank, ...]
    category: tuple[Rank, ...]
    prefix: bool


@dataclass(frozen=True)
class Figure:
    """A mean with its bootstrap interval. All None where there is no case."""

    value: float | None
    low: float | None
    high: float | None
    n: int


def judge(
    cases: Iterable[Case], answers: Iterable[Answer], is_terminal: Callable[[str], bool] = lambda _: True
) -> list[Judged]:
    """Return every case with its ranks, in the order of the cases; a case without an answer is an error.

    Args:
        cases: what was asked.
        answers: in any order.
        is_terminal: whether a code is terminal in the edition; a gold code that is not counts as its prefix.
    """
    by_id = {answer.case_id: answer for answer in answers}
    return [
        _judged(case, by_id.get(case.id, Answer(case.id, error="NoAnswer")), is_terminal) for case in cases
    ]


def per_case(judged: Sequence[Judged]) -> dict[str, Floats]:
    """Return each measure's value for each case that has a gold code, in order.

    ``R@k`` is the share of a case's gold codes found within k; ``RR@10`` the reciprocal rank of the first
    found. ``Strict...`` counts ``icd_code`` alone, ``BillableRecall@k`` ranks among billable suggestions
    alone, ``R@10 (3)`` compares three characters. R@k and RR@k come from ir-measures.

    Raises:
        UsageError: ir-measures is not installed.
    """
    scored = [j for j in judged if j.case.gold]
    values: dict[str, Floats] = {}
    for name, pick in _NAMES.items():
        recall, reciprocal = _standard([pick(j) for j in scored])
        for cut in CUTS:
            values[name.format(k=cut)] = recall[cut]
        if name == "R@{k}":
            values["RR@10"] = reciprocal
    values["R@10 (3)"] = _standard([j.category for j in scored])[0][PLACES]
    return {name: values[name] for name in MEASURES}


_NAMES: dict[str, Callable[[Judged], tuple[Rank, ...]]] = {
    "BillableRecall@{k}": lambda j: j.billable,
    "R@{k}": lambda j: j.ranks,
    "StrictR@{k}": lambda j: j.strict,
}
MEASURES = (
    "BillableRecall@10", "BillableRecall@5", "BillableRecall@1", "R@10", "R@5", "R@1", "RR@10",
    "StrictR@10", "StrictR@5", "StrictR@1", "R@10 (3)",
)  # fmt: skip


def bootstrap(values: Floats, seed: int, weights: Floats | None = None) -> Figure:
    """Return the mean of ``values`` (n,) with its 95 % percentile interval from 1,000 resamples of the cases.

    Args:
        values: one number a case.
        seed: of the resampling.
        weights: denominators (n,): the figure is then sum(values) / sum(weights), resampled together.
    """
    n = len(values)
    below = np.ones(n) if weights is None else weights
    if not n or below.sum() == 0:
        return Figure(None, None, None, n)
    counts = _resamples(n, seed)
    means = (counts @ values) / np.maximum(counts @ below, 1e-12)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(float(values.sum() / below.sum()), float(low), float(high), n)


def paired_difference(better: Floats, base: Floats, seed: int) -> Figure:
    """Return the mean of ``better - base`` on the same cases (n,), with its interval."""
    if len(better) != len(base):
        raise ValueError(f"A paired difference needs the same cases: {len(better)} against {len(base)}.")
    return bootstrap(better - base, seed)


def unpaired_difference(one: Floats, other: Floats, seed: int) -> Figure:
    """Return the difference of the means of two independent draws, each resampled by itself."""
    if not len(one) or not len(other):
        return Figure(None, None, None, 0)
    means = _resamples(len(one), seed) @ one / len(one) - _resamples(len(other), seed + 1) @ other / len(
        other
    )
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(float(one.mean() - other.mean()), float(low), float(high), min(len(one), len(other)))


@dataclass(frozen=True)
class Bin:
    """One bin of the reliability plot: mean score of the first suggestion, share of them that hit."""

    score: float
    hit: float
    n: int


def reliability(judged: Iterable[Judged]) -> tuple[tuple[Bin, ...], float | None]:
    """Return the reliability plot of the first suggestions (ten bins) and the expected calibration error.

    The error is None where nothing was offered or a score lies outside 0 to 1: then it is no probability.
    """
    pairs = [
        (j.answer.codes[0].score, float(1 in j.ranks))
        for j in judged
        if j.case.gold and j.answer.codes and j.answer.error is None
    ]
    if not pairs or any(not 0 <= score <= 1 for score, _ in pairs):
        return (), None
    score, hit = np.array(pairs).T
    index = np.minimum((score * BINS).astype(int), BINS - 1)
    bins = tuple(
        Bin(float(score[index == b].mean()), float(hit[index == b].mean()), int((index == b).sum()))
        for b in range(BINS)
        if (index == b).any()
    )
    return bins, sum(b.n * abs(b.score - b.hit) for b in bins) / len(pairs)


def list_recall(case: ListCase, answer: Answer, is_terminal: Callable[[str], bool]) -> tuple[int, int]:
    """Return how many gold codes of a list its one answer holds, and how many there are.

    A code that two lines ask for counts for each of them. An error finds none.
    """
    found = total = 0
    for line in case.lines:
        ranks = _judged(line, answer, is_terminal).ranks
        found += sum(rank is not None for rank in ranks)
        total += len(ranks)
    return found, total


def rank_hits(
    case: Case, codes: Sequence[Offered], matches: Callable[[Offered, str], bool]
) -> tuple[Rank, ...]:
    """Return, for each gold code, the rank of the first suggestion that matches it or an accepted equal."""
    accept = case.accept or ((),) * len(case.gold)
    equals = [(gold, *others) for gold, others in zip(case.gold, accept, strict=True)]
    return tuple(
        next((at for at, o in enumerate(codes, 1) if any(matches(o, code) for code in alike)), None)
        for alike in equals
    )


def _judged(case: Case, answer: Answer, is_terminal: Callable[[str], bool]) -> Judged:
    codes = () if answer.error is not None else answer.codes
    terminal = {
        code: is_terminal(code) for code in (*case.gold, *(c for others in case.accept for c in others))
    }

    def same(offered: str, gold: str) -> bool:
        return offered == gold or (not terminal[gold] and offered.startswith(gold))

    def hit(o: Offered, gold: str) -> bool:
        return any(same(code, gold) for code in (o.icd_code, *o.complements))

    return Judged(
        case=case,
        answer=answer,
        ranks=rank_hits(case, codes, hit),
        strict=rank_hits(case, codes, lambda o, gold: same(o.icd_code, gold)),
        billable=rank_hits(case, [o for o in codes if o.billable], hit),
        category=rank_hits(
            case,
            codes,
            lambda o, gold: any(c[:CATEGORY] == gold[:CATEGORY] for c in (o.icd_code, *o.complements)),
        ),
        prefix=not all(terminal[code] for code in case.gold),
    )


def _resamples(n: int, seed: int) -> Floats:
    """Return how often each of ``n`` cases is drawn in each resample, (RESAMPLES, n).

    The same seed and n give the same resamples, so that figures of one set of cases move together.
    """
    drawn = np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))
    flat = drawn + np.arange(RESAMPLES)[:, None] * n
    return np.bincount(flat.ravel(), minlength=RESAMPLES * n).reshape(RESAMPLES, n).astype(np.float64)


def _standard(ranks: Sequence[tuple[Rank, ...]]) -> tuple[dict[int, Floats], Floats]:
    """Return R@k and RR@10 by ir-measures for cases given as the ranks of their gold codes.

    Each gold code is a query with one relevant document: R@k of a case is the mean over them, RR the best of
    them. So two codes that one suggestion holds share its rank.
    """
    try:
        import ir_measures  # noqa: PLC0415 (an extra: only evaluation needs it)
    except ImportError as error:
        raise UsageError(
            'Evaluation needs ir-measures: install it with pip install "alpha-id[eval]".'
        ) from error
    measures = {k: ir_measures.R @ k for k in CUTS}
    reciprocal = ir_measures.RR @ PLACES
    queries = [(case, slot, rank) for case, slots in enumerate(ranks) for slot, rank in enumerate(slots)]
    if not queries:
        return {k: np.zeros(0) for k in CUTS}, np.zeros(0)
    qrels = [ir_measures.Qrel(f"{case}/{slot}", "hit", 1) for case, slot, _ in queries]
    # What stands before the hit decides the rank and nothing else: the fillers' names do not matter.
    run = [
        ir_measures.ScoredDoc(f"{case}/{slot}", "hit" if at == rank else f"miss {at}", -float(at))
        for case, slot, rank in queries
        for at in range(1, (rank or 1) + 1)
    ]
    found: dict[tuple[object, str], float] = {
        (metric.measure, metric.query_id): metric.value
        for metric in ir_measures.iter_calc([*measures.values(), reciprocal], qrels, run)
    }
    recall = {
        k: np.array(
            [np.mean([found[m, f"{i}/{s}"] for s in range(len(slots))]) for i, slots in enumerate(ranks)]
        )
        for k, m in measures.items()
    }
    best = np.array(
        [max(found[reciprocal, f"{i}/{s}"] for s in range(len(slots))) for i, slots in enumerate(ranks)]
    )
    return recall, best


def percentiles(seconds: Sequence[float], at: Sequence[int] = (50, 95)) -> Mapping[str, float]:
    """Return percentiles of times in milliseconds, named ``p50``; empty without a time."""
    if not seconds:
        return {}
    return {f"p{p}": float(np.percentile(seconds, p)) * 1000 for p in at}
