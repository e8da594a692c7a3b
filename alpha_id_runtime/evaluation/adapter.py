"""Between the harness and the pipeline: a build as a corpus, a Suggester as a ranker.

Holds: translation in both directions. Refuses: any way to an answer other than ``Suggester.suggest_many``,
the very one that users take, and any figure.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alpha_id_runtime.evaluation.measures import Answer, Offered
from alpha_id_runtime.evaluation.runner import Knowledge
from alpha_id_runtime.model import Filter
from alpha_id_runtime.pipeline import Request as Input

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.evaluation.runner import Request
    from alpha_id_runtime.model import SuggestResult
    from alpha_id_runtime.pipeline import Suggester

    Ranker = Callable[[list[Request]], Sequence[Answer]]

# Whatever filter the configuration sets for daily use, an evaluation lets everything pass.
UNFILTERED = Filter()


@dataclass(frozen=True)
class CorpusColumns:
    """The phrases of a build as equally long columns in index order: a ``cases.Corpus``."""

    text: list[str]
    norm: list[str]
    origin: list[str]
    valid: list[bool]
    icd_code: list[str]
    billable: list[bool]
    chapter: list[str]


def corpus_of(build: Build) -> CorpusColumns:
    """Return the phrases of a build with what its code table says of their codes. A second at full size."""
    codes = build.phrases.column("icd_code")
    tags = {code: build.codes.tags(code, valid=True) for code in set(codes)}
    return CorpusColumns(
        text=build.phrases.column("text"),
        norm=build.phrases.column("norm"),
        origin=build.phrases.column("origin"),
        valid=build.phrases.column("valid"),
        icd_code=codes,
        billable=[tags[code].billable for code in codes],
        chapter=[tags[code].chapter for code in codes],
    )


def knowledge_of(build: Build) -> Knowledge:
    """Return what code table and corpus of a build say of codes, for the figures and their slices."""
    counts = {code: len(build.phrases.rows_of(code)) for code in build.phrases.codes}
    return Knowledge(is_terminal=build.codes.is_terminal, phrases=counts)


def chapter_of(build: Build) -> Callable[[str], str]:
    """Return the function from a code to its chapter; "" for a code that the edition lacks."""

    def chapter(code: str) -> str:
        return str(build.codes.value(code, "chapter") or "") if code in build.codes else ""

    return chapter


def ranker_of(suggester: Suggester) -> Ranker:
    """Return what answers a batch of requests by one call of ``suggest_many``.

    Each answer carries an equal share of the batch's seconds; the hub calls of a batch, which cannot be told
    apart, stand at its first answer. Euros are estimated from the texts sent for embedding, 0 where the price
    is not configured.
    """

    def rank(requests: list[Request]) -> list[Answer]:
        started = time.perf_counter()
        results = suggester.suggest_many(
            [Input(q.text, UNFILTERED, q.top, excluded_rows=q.excluded_rows) for q in requests]
        )
        share = (time.perf_counter() - started) / max(len(requests), 1)
        answers = []
        for place, (request, result) in enumerate(zip(requests, results, strict=True)):
            calls = result.diagnostics.ionos_calls
            answers.append(
                Answer(
                    request.case_id,
                    tuple(_offered(result)),
                    seconds=share,
                    degraded=result.diagnostics.degraded,
                    skipped=not result.suggestions and bool(result.diagnostics.skipped),
                    hub_calls=0 if place else calls,
                    euros=_euros(suggester, request.text) if calls else 0.0,
                )
            )
        return answers

    return rank


def routed(plain: Ranker, held_out: Ranker) -> Ranker:
    """Return a ranker that asks ``held_out`` where rows are excluded, ``plain`` otherwise."""

    def rank(requests: list[Request]) -> list[Answer]:
        answers: list[Answer] = []
        for ranker, part in (
            (plain, [q for q in requests if not q.excluded_rows]),
            (held_out, [q for q in requests if q.excluded_rows]),
        ):
            if part:
                answers.extend(ranker(part))
        return answers

    return rank


def told(ranker: Ranker, tell: Callable[[int], None]) -> Ranker:
    """Return ``ranker``, with ``tell`` told how many requests it has answered so far."""
    answered = 0

    def rank(requests: list[Request]) -> Sequence[Answer]:
        nonlocal answered
        answers = ranker(requests)
        answered += len(requests)
        tell(answered)
        return answers

    return rank


def _offered(result: SuggestResult) -> list[Offered]:
    return [
        Offered(
            each.icd_code,
            tuple(complement.icd_code for complement in each.complements),
            each.score,
            each.origin,
            billable=each.tags.billable,
        )
        for each in result.suggestions
    ]


def _euros(suggester: Suggester, text: str) -> float:
    if suggester.config.provider != "hub":
        return 0.0
    pricing = suggester.config.hub.pricing
    return pricing.euros(pricing.tokens(text.splitlines())) or 0.0
