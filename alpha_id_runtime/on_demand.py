"""What is added to an answer only where it is asked for: explanations and related codes.

Holds: the way from the pipeline's steps to what explains them. Refuses: changing the list. Loaded at the
first request that asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alpha_id_runtime.explain import Trace, with_explanations
from alpha_id_runtime.related import with_related
from alpha_id_runtime.score_parts import LexicalParts, SemanticParts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alpha_id_runtime.assembly import PhraseHits
    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.matching import Task
    from alpha_id_runtime.model import Suggestion
    from alpha_id_runtime.pipeline import Prepared, Ranking
    from alpha_id_runtime.score_parts import Parts


def with_demanded(  # noqa: PLR0917 -- one answer and all that led to it
    build: Build,
    config: Config,
    prepared: Prepared,
    ranking: Ranking,
    phrases: Sequence[PhraseHits],
    suggestions: tuple[Suggestion, ...],
) -> tuple[Suggestion, ...]:
    """Return the same list with explanations and what is related, as the request asks."""
    request = prepared.request
    if request.explain:
        # A line may list several diagnoses: its index alone does not tell them apart.
        hits = {phrase.segment: phrase for phrase in phrases}
        traces = {
            (task.segment.index, task.segment.text): _trace(build, config, task, hits[task.segment], ranking)
            for task in prepared.tasks
            if task.segment in hits
        }
        suggestions = with_explanations(suggestions, traces)
    if request.related > 0:
        suggestions = with_related(
            build, suggestions, prepared.passing, request.related, excluded=request.excluded_rows
        )
    return suggestions


def _trace(build: Build, config: Config, task: Task, phrase: PhraseHits, ranking: Ranking) -> Trace:
    """Return what became of one line, in the mode that answered."""
    place, outcome = ranking.place_of.get(id(task)), ranking.outcome
    parts: Parts = LexicalParts(build, task, config.lexical)
    if place is not None and outcome is not None and outcome.fusion is not None and outcome.near:
        parts = SemanticParts(task, outcome.fusion, ranking.lexical[place], outcome.near[place])
    return Trace(build, task, phrase.hits, None if place is None else ranking.merged[place], parts)
