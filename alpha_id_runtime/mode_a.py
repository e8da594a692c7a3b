"""Mode A on top of mode C's rankings: embed, search, fuse, rerank; and what is left when a part fails.

Holds: the order of these steps and the words for what failed. Refuses: letting a failure out: whatever goes
wrong with provider, vectors or reranker, there is a ranking, and it says what it was made of.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from alpha_id_runtime.boosting import BoostedTrees
from alpha_id_runtime.errors import AlphaIdError, ArtefactsIncompatibleError
from alpha_id_runtime.lexical_ranking import TWIN_SCORE
from alpha_id_runtime.matching import best_of_each_code, merge_queries
from alpha_id_runtime.ranked import RankedRows
from alpha_id_runtime.rerank import FusionReranker, rerank_by_hub
from alpha_id_runtime.retrieval.dense import CURE
from alpha_id_runtime.semantic import Semantic, open_hub

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.hub import HubClient
    from alpha_id_runtime.matching import Allow, Task
    from alpha_id_runtime.semantic import Neighbours


@dataclass(frozen=True)
class Outcome:
    """A ranking for each task and how it came about.

    ``semantic`` False: nothing semantic was left, the rankings are mode C's. ``problem``: what failed, in
    words, None where nothing did. ``calls``: requests that went to a hub. ``near`` and ``fusion``: what lies
    near each text of each task, and what ranked it, for whoever wants to know why.
    """

    ranked: Sequence[RankedRows]
    semantic: bool
    problem: str | None = None
    calls: int = 0
    milliseconds: float = 0.0
    near: Sequence[Sequence[Neighbours]] = ()
    fusion: FusionReranker | None = None


_CALLERS = 8


@dataclass(frozen=True)
class Begun:
    """A search under way: what will lie near each text, until when, and what was counted when it began."""

    near: Future[list[Neighbours]]
    deadline: float
    started: float
    calls_before: int


@dataclass
class ModeA:
    """The semantic side of one build and one configuration; opened at the first request, then kept.

    ``semantic``: vectors to use instead of the build's own (held-out evaluation).
    """

    build: Build
    config: Config
    semantic: Semantic | None = None
    _fusion: FusionReranker | None = field(default=None, init=False)
    _hub: HubClient | None = field(default=None, init=False)
    _beside: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        """Rerank by the hub that the given vectors are of, so that all its requests are counted."""
        # A hub is waited for, by as many callers as there are; the built-in encoder works one by one.
        workers = _CALLERS if self.config.provider == "hub" else 1
        self._beside = ThreadPoolExecutor(workers, thread_name_prefix="alpha-id-semantic")
        if self.semantic is not None and self.config.provider == "hub":
            self._hub = cast("HubClient", self.semantic.provider)

    def begin(self, tasks: Sequence[Task]) -> Begun:
        """Set out to find what lies near the texts of ``tasks``, beside whatever the caller does meanwhile.

        The budget of the request runs from here. Never raises: what fails is told by ``rank``.
        """
        started, calls_before = time.perf_counter(), self._calls()
        deadline = time.monotonic() + self.config.semantic.budget_seconds
        asked = [(query.text, task.allow) for task in tasks for query in task.queries]
        near: Future[list[Neighbours]]
        try:
            near = self._beside.submit(self._neighbours, asked, deadline)
        except RuntimeError as error:  # no thread can be started, as at the interpreter's end
            near = Future()
            near.set_exception(error)
        return Begun(near, deadline, started, calls_before)

    def rank(self, tasks: Sequence[Task], lexical: Sequence[Sequence[RankedRows]], begun: Begun) -> Outcome:
        """Return the ranking of all tasks; never raises for anything a provider or its vectors can do.

        ``lexical`` holds, for each task, mode C's ranking of each of its queries.
        """
        started, deadline, calls_before = begun.started, begun.deadline, begun.calls_before
        try:
            ranked, near = self._fused(tasks, lexical, begun.near.result())
        except Exception as error:  # noqa: BLE001 -- what LanceDB raises is no closed list, and mode C is there
            return Outcome(
                [merge_queries(task, own) for task, own in zip(tasks, lexical, strict=True)],
                semantic=False,
                problem=f"Answered without the semantic part (mode C): {_in_words(error)}",
                calls=self._calls() - calls_before,
                milliseconds=_since(started),
            )
        problem = None
        if self.config.reranker == "hub":
            try:
                ranked = self._reranked(tasks, ranked, deadline)
            except Exception as error:  # noqa: BLE001 -- as above: the fused ranking is there
                problem = f"Answered with the local reranker instead of the hub's: {_in_words(error)}"
        return Outcome(
            ranked,
            semantic=True,
            problem=problem,
            calls=self._calls() - calls_before,
            milliseconds=_since(started),
            near=near,
            fusion=self._fusion,
        )

    def _neighbours(self, asked: Sequence[tuple[str, Allow | None]], deadline: float) -> list[Neighbours]:
        if self.semantic is None:
            hub = self._open_hub() if self.config.provider == "hub" else None
            self.semantic = Semantic.open(self.build, hub)
        if self._fusion is None:
            trees = None if self.config.reranker == "fusion" else BoostedTrees.load()
            self._fusion = FusionReranker(self.build, self.semantic.index, self.config.fusion, trees)
        if not asked:
            return []
        return self.semantic.neighbours(
            [text for text, _ in asked], self.config.semantic.pool, [allow for _, allow in asked], deadline
        )

    def _fused(
        self,
        tasks: Sequence[Task],
        lexical: Sequence[Sequence[RankedRows]],
        near: Sequence[Neighbours],
    ) -> tuple[list[RankedRows], list[list[Neighbours]]]:
        fusion = cast("FusionReranker", self._fusion)
        fused = fusion(
            [query.text for task in tasks for query in task.queries],
            [ranked for rankings in lexical for ranked in rankings],
            near,
            [task.allow for task in tasks for _ in task.queries],
        )
        if not all(np.isfinite(ranked.scores).all() for ranked in fused):
            raise ArtefactsIncompatibleError(f"The vectors of the build are damaged: no numbers. {CURE}")
        each, around = iter(fused), iter(near)
        return (
            [merge_queries(task, [next(each) for _ in task.queries]) for task in tasks],
            [[next(around) for _ in task.queries] for task in tasks],
        )

    def _reranked(
        self, tasks: Sequence[Task], ranked: Sequence[RankedRows], deadline: float
    ) -> list[RankedRows]:
        """Let the hub order each phrase's best codes; what is the same as the phrase keeps its place."""
        pools = []
        for own in ranked:
            best = best_of_each_code(self.build, own)
            alike = np.flatnonzero(best.scores < TWIN_SCORE - _NEAR)[: self.config.fusion.hub_pool]
            pools.append(RankedRows(best.rows[alike], best.scores[alike], best.queries[alike]))
        dealt = rerank_by_hub(
            self._open_hub(),
            [task.reading.core for task in tasks],
            [self.build.phrases.texts(pool.rows.tolist()) for pool in pools],
            [pool.scores for pool in pools],
            deadline,
        )
        result = []
        for own, pool, scores in zip(ranked, pools, dealt, strict=True):
            # Rows beyond the hub's pool keep their scores, below the pool's own.
            codes = self.build.phrases.code_index
            others = ~np.isin(codes[own.rows], codes[pool.rows])
            result.append(
                RankedRows(
                    np.concatenate([pool.rows, own.rows[others]]),
                    np.concatenate([scores, own.scores[others]]),
                    np.concatenate([pool.queries, own.queries[others]]),
                )
            )
        return result

    def _open_hub(self) -> HubClient:
        if self._hub is None:
            self._hub = open_hub(self.config)
        return self._hub

    def _calls(self) -> int:
        return self._hub.calls if self._hub is not None else 0


# What best_of_each_code takes off a phrase of validity 0.
_NEAR = 0.005


def _in_words(error: Exception) -> str:
    """Return an error of our own as it is; of any other its kind alone, as its text may hold a phrase."""
    return str(error) if isinstance(error, AlphaIdError) else f"an unexpected {type(error).__name__}. {CURE}"


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
