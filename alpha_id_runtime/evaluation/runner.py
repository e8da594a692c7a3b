"""Ask a ranker all cases in batches and turn its answers into figures.

Holds: the run and the assembly of its result. Refuses: knowing the pipeline: a ranker is a callable that
answers a batch of texts, so that a deliberately broken one can be measured as well and must come out as
broken.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from alpha_id_runtime.errors import AlphaIdError, ProviderError
from alpha_id_runtime.evaluation import measures as m
from alpha_id_runtime.evaluation import result as r
from alpha_id_runtime.evaluation.cases import CONTEXT, Case, ListCase, case_rng
from alpha_id_runtime.evaluation.noise import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

BATCH = 256
WORST = 50
OMISSIONS = (0.1, 0.2, 0.3)
_LENGTHS = ((1, "1 word"), (2, "2 words"), (4, "3-4 words"), (8, "5-8 words"), (10**6, "more than 8 words"))
_PHRASES = ((2, "1-2 phrases"), (5, "3-5 phrases"), (10, "6-10 phrases"), (10**6, "more than 10 phrases"))


@dataclass(frozen=True)
class Request:
    """One input for a ranker.

    Args:
        case_id: to be given back in the ``Answer``.
        text: a phrase, or the lines of a list.
        excluded_rows: rows of the corpus that must be out of the candidates before pools are cut.
        top: suggestions wanted at most.
    """

    case_id: str
    text: str
    excluded_rows: frozenset[int] = frozenset()
    top: int = m.PLACES


@dataclass(frozen=True)
class Knowledge:
    """What the code table and the corpus say of codes.

    Args:
        is_terminal: whether a code is terminal in the edition; a gold code that is not counts as its prefix.
        phrases: code -> number of its phrases in the corpus, for the slice by codes with few phrases.
    """

    is_terminal: Callable[[str], bool] = lambda _: True
    phrases: Mapping[str, int] | None = None


def evaluate(
    rankers: Mapping[str, Callable[[list[Request]], Sequence[m.Answer]]],
    cases: Sequence[Case],
    *,
    seed: int,
    lists: Sequence[ListCase] = (),
    knowledge: Knowledge | None = None,
    extraction: r.Extraction | None = None,
    provenance: Mapping[str, Any] | None = None,
    hide_gold: bool = False,
) -> r.EvaluationResult:
    """Return all figures of the rankers on the same cases.

    A batch that raises is asked again one by one, and a request that raises still is an error, hence a miss.
    What the caller must cure (artefacts, configuration, wrong use) is raised.

    Args:
        rankers: mode ("c", "a") -> what answers a batch; answers are matched by ``case_id``.
        cases: all kinds together; ids are unique.
        seed: of the resampling and of the omissions.
        lists: gold lists, each asked as one input.
        knowledge: of codes; without it all codes count as terminal and the slice by phrases is empty.
        extraction: the extractor's ceiling, measured apart.
        provenance: editions, build, version, configuration.
        hide_gold: leave the texts of gold cases out of the result: a file from outside may hold patient data.

    Raises:
        AlphaIdError: other than ``ProviderError``, by a ranker.
        ValueError: two cases share an id.
    """
    known = knowledge or Knowledge()
    if len({case.id for case in cases}) != len(cases):
        raise ValueError("Two cases share an id; the figures of one would be those of the other.")
    blocks, differences, list_blocks, costs = [], [], [], []
    values: dict[tuple[str, str], dict[str, npt.NDArray[np.float64]]] = {}
    for mode, ranker in rankers.items():
        answers = ask(ranker, [Request(c.id, c.text, c.excluded_rows) for c in cases])
        judged = m.judge(cases, answers, known.is_terminal)
        for kind in r.KINDS:
            of_kind = [j for j in judged if j.case.kind == kind]
            if of_kind:
                values[kind, mode] = m.per_case(of_kind)
                blocks.append(
                    _block(
                        kind, mode, of_kind, values[kind, mode], seed=seed, known=known, hide_gold=hide_gold
                    )
                )
        of_lists: list[m.Answer] = []
        if lists:
            list_blocks.append(_lists(mode, ranker, lists, seed=seed, known=known, spent=of_lists))
        costs.append(_cost(mode, answers, of_lists))
    for kind in r.KINDS:
        if (kind, "a") in values and (kind, "c") in values:
            differences += [
                r.Difference(
                    kind, name, m.paired_difference(values[kind, "a"][name], values[kind, "c"][name], seed)
                )
                for name in m.MEASURES
            ]
    return r.EvaluationResult(
        seed=seed,
        provenance=dict(provenance or {}),
        cases=tuple(replace(c, text="") if hide_gold and c.kind == "gold" else c for c in cases),
        blocks=tuple(blocks),
        differences=tuple(differences),
        lists=tuple(list_blocks),
        costs=tuple(costs),
        extraction=extraction,
    )


def ask(ranker: Callable[[list[Request]], Sequence[m.Answer]], requests: Sequence[Request]) -> list[m.Answer]:
    """Return an answer to each request, in order; what raised or was left out is an error."""
    answers: dict[str, m.Answer] = {}
    for start in range(0, len(requests), BATCH):
        batch = list(requests[start : start + BATCH])
        for one in _tried(ranker, batch):
            answers[one.case_id] = one
    given = [answers.get(q.case_id, m.Answer(q.case_id, error="NoAnswer")) for q in requests]
    return [replace(a, codes=tuple(a.codes[: q.top])) for a, q in zip(given, requests, strict=True)]


def _tried(ranker: Callable[[list[Request]], Sequence[m.Answer]], batch: list[Request]) -> list[m.Answer]:
    try:
        return list(ranker(batch))
    except Exception as error:
        if isinstance(error, AlphaIdError) and not isinstance(error, ProviderError):
            raise
        if len(batch) == 1:
            # The class alone: a message could hold the phrase.
            return [m.Answer(batch[0].case_id, error=type(error).__name__)]
    return [answer for request in batch for answer in _tried(ranker, [request])]


def _block(
    kind: str,
    mode: str,
    judged: list[m.Judged],
    values: Mapping[str, npt.NDArray[np.float64]],
    *,
    seed: int,
    known: Knowledge,
    hide_gold: bool,
) -> r.Block:
    scored = [j for j in judged if j.case.gold]
    empty = [j for j in judged if not j.case.gold]
    leading = values[m.LEADING]
    missed = [j for j, value in zip(scored, leading, strict=True) if value < 1]
    missed.sort(key=lambda j: (-(j.answer.codes[0].score if j.answer.codes else -1.0), j.case.id))
    bins, error = m.reliability(scored)
    subsets = {
        "without non-terminal gold": [not j.prefix for j in scored],
        "without cases that need context": [CONTEXT not in j.case.done for j in scored],
    }
    return r.Block(
        kind=kind,
        mode=mode,
        figures={name: m.bootstrap(v, seed) for name, v in values.items()},
        subsets={
            name: {
                measure: m.bootstrap(values[measure][np.array(keep)], seed) for measure in (m.LEADING, "R@10")
            }
            for name, keep in subsets.items()
            if not all(keep)
        },
        coverage=_coverage(scored),
        slices=tuple(_slices(scored, leading, seed, known)),
        bins=bins,
        calibration_error=error,
        no_diagnosis=m.bootstrap(np.array([float(bool(j.answer.codes)) for j in empty]), seed),
        errors=sum(j.answer.error is not None for j in judged),
        misses=tuple(_miss(j, hide=hide_gold and kind == "gold") for j in missed[:WORST]),
        outcomes=tuple(
            r.Outcome(j.case.id, j.billable, tuple(o.icd_code for o in j.answer.codes), j.answer.error)
            for j in judged
        ),
    )


def _miss(j: m.Judged, *, hide: bool) -> r.Miss:
    offered = tuple((o.icd_code, o.score) for o in j.answer.codes)
    return r.Miss(j.case.id, "" if hide else j.case.text, j.case.gold, j.case.done, offered, j.answer.error)


def _coverage(scored: Sequence[m.Judged]) -> dict[str, float]:
    if not scored:
        return {}
    siblings = 0
    for j in scored:
        right = {*j.case.gold, *(code for others in j.case.accept for code in others)}
        near = {code[: m.CATEGORY] for code in j.case.gold}
        siblings += sum(o.icd_code[: m.CATEGORY] in near and o.icd_code not in right for o in j.answer.codes)
    return {
        "distinct codes offered": len({o.icd_code for j in scored for o in j.answer.codes}),
        "siblings of a gold code shown per case": siblings / len(scored),
        "suggestions per case": sum(len(j.answer.codes) for j in scored) / len(scored),
        "share skipped as no diagnosis": sum(j.answer.skipped for j in scored) / len(scored),
    }


def _slices(
    scored: Sequence[m.Judged], values: npt.NDArray[np.float64], seed: int, known: Knowledge
) -> Iterable[r.Slice]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, j in enumerate(scored):
        groups["chapter", j.case.chapter].append(i)
        for kind in dict.fromkeys(kind_of(done) for done in j.case.done):
            groups["what was done", kind].append(i)
        groups["length", _band(len(j.case.text.split()), _LENGTHS)].append(i)
        if known.phrases is not None:
            groups["phrases of the code", _band(known.phrases.get(j.case.gold[0], 0), _PHRASES)].append(i)
        first = j.answer.codes[0].origin if j.answer.codes else ""
        groups["origin of the winning phrase", first or "nothing offered"].append(i)
    order = ["chapter", "what was done", "length", "phrases of the code", "origin of the winning phrase"]
    bands = [name for _, name in (*_LENGTHS, *_PHRASES)]

    def place(key: tuple[str, str]) -> tuple[int, int, str]:
        by, name = key
        rank = _roman(name) if by == "chapter" else bands.index(name) if name in bands else 0
        return order.index(by), rank, name

    for by, name in sorted(groups, key=place):
        yield r.Slice(by, name, m.bootstrap(values[groups[by, name]], seed))


def _lists(
    mode: str,
    ranker: Callable[[list[Request]], Sequence[m.Answer]],
    lists: Sequence[ListCase],
    *,
    seed: int,
    known: Knowledge,
    spent: list[m.Answer],
) -> r.ListBlock:
    def recall(requests: list[Request]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        asked = ask(ranker, [q for q in requests if q.text])
        spent.extend(asked)
        by_id = {a.case_id: a for a in asked}
        pairs = [m.list_recall(c, by_id.get(c.id, m.Answer(c.id)), known.is_terminal) for c in lists]
        found, total = np.array(pairs, dtype=np.float64).T
        return found, total

    def whole(case: ListCase) -> str:
        return "\n".join(line.text for line in case.lines)

    in_ten, total = recall([Request(c.id, whole(c)) for c in lists])
    twice, _ = recall([Request(c.id, whole(c), top=2 * len(c.lines)) for c in lists])
    omissions = []
    for rate in OMISSIONS:
        kept = [_kept(c, rate, seed) for c in lists]
        left, _ = recall([Request(c.id, whole(c)) for c in kept])
        there = np.array([float(sum(len(line.gold) for line in c.lines)) for c in kept])
        omissions.append(
            r.Omission(
                rate,
                kept=m.bootstrap(there, seed, total),
                recall=m.bootstrap(left, seed, total),
                loss=m.bootstrap(in_ten - left, seed, total),
            )
        )
    return r.ListBlock(
        mode, m.bootstrap(in_ten, seed, total), m.bootstrap(twice, seed, total), tuple(omissions)
    )


def _kept(case: ListCase, rate: float, seed: int) -> ListCase:
    """Return the list as an extractor leaves it; a line dropped at one rate is dropped at all higher ones."""
    kept = (line for line in case.lines if case_rng(seed, "omission", case.id, line.id).random() >= rate)
    return ListCase(case.id, tuple(kept))


def _cost(mode: str, cases: Sequence[m.Answer], lists: Sequence[m.Answer]) -> r.Cost:
    answers = [*cases, *lists]
    return r.Cost(
        mode,
        milliseconds=m.percentiles([a.seconds for a in cases or lists]),
        hub_calls=sum(a.hub_calls for a in answers),
        euros=sum(a.euros for a in answers),
        degraded=sum(a.degraded for a in answers) / len(answers) if answers else 0.0,
    )


def _band(size: int, bands: Sequence[tuple[int, str]]) -> str:
    return next(name for limit, name in bands if size <= limit)


def _roman(numeral: str) -> int:
    """Return the number of a chapter, so that IX stands after VIII; 0 for anything else."""
    value = {"I": 1, "V": 5, "X": 10}
    digits = [value.get(c, 0) for c in numeral]
    return sum(-d if d < max(digits[i:], default=0) else d for i, d in enumerate(digits))
