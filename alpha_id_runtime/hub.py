"""Client of an OpenAI-compatible endpoint: embeddings and rerank, in batches, with retry and a deadline.

Holds: ``HubClient``. Settings and token are in ``hub_settings.py``, one request in ``hub_transport.py``, the
reading of answers in ``hub_answers.py``. Refuses: a half answer (all of a batch or a ``ProviderError``), and
input texts or the token in any message.
"""

from __future__ import annotations

import json
import queue
import random
import threading
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

import numpy as np

from alpha_id_runtime.errors import ProviderError, UsageError
from alpha_id_runtime.hub_answers import (
    AnswerError,
    billed_tokens,
    read_embeddings,
    read_json_object,
    read_rerank,
)
from alpha_id_runtime.hub_settings import HubSettings, find_token
from alpha_id_runtime.hub_transport import AttemptError, Transport
from alpha_id_runtime.text import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from numpy.typing import NDArray

    from alpha_id_runtime.provider import Pricing, SpendWatch

__all__ = ["HubClient", "HubSettings", "find_token"]

FIRST_WAIT = 0.5
"""Seconds before the first further attempt; doubled each time."""
LONGEST_WAIT = 30.0
LONGEST_RETRY_AFTER = 600.0
"""A hub that asks to wait longer is taken as down."""
THREAD_NAME = "hub-request"

T = TypeVar("T")


@dataclass(frozen=True)
class _Job(Generic[T]):
    """One request with its way to be read, and the texts it stands for."""

    path: str
    payload: dict[str, Any]
    texts: int
    read: Callable[[dict[str, Any]], T]
    batch: slice


@dataclass(frozen=True)
class _Outcome(Generic[T]):
    """What became of a job: its answer, or why there is none."""

    answer: T | None = None
    error: BaseException | None = None


class HubClient:
    """An embedding provider and reranker behind HTTP. Safe to use from several threads.

    Args:
        settings: which hub and under which limits.
        token: from ``find_token``; None sends none.
        sleep, clock, now, jitter: ``time.sleep``, ``time.monotonic``, ``time.time``, ``random.random`` or
            stand-ins.
    """

    def __init__(
        self,
        settings: HubSettings,
        token: str | None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Open nothing yet: the first request does."""
        self.settings = settings
        self.calls = 0
        """Requests sent, repeated ones included."""
        self.texts = 0
        """Texts and documents sent, repeated ones included."""
        self._sleep, self._clock, self._jitter = sleep, clock, jitter
        self._lock = threading.Lock()
        self._transport = Transport(settings, token, clock, now)

    @property
    def fingerprint(self) -> str:
        """See ``HubSettings.fingerprint``."""
        return self.settings.fingerprint

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.settings.dimension

    @property
    def pricing(self) -> Pricing:
        """What texts cost."""
        return self.settings.pricing

    @property
    def costs_money(self) -> bool:
        """True unless the price is configured as 0."""
        return self.pricing.costs_money

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> NDArray[np.float32]:
        """Return the unit vectors of ``texts``: (n, dimension), float32, all or nothing.

        Args:
            texts: sent as ``prefix + canonical(text)``.
            deadline: a reading of ``clock`` by which this returns or raises, whatever hangs.

        Raises:
            ProviderError: no complete, valid answer in time.
            UsageError: an empty text.
        """
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for job, answer in self._run(self._embedding_jobs(texts), deadline=deadline):
            vectors[job.batch] = answer
        return vectors

    def embed_batches(
        self, texts: Sequence[str], *, watch: SpendWatch | None = None
    ) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Yield (place in ``texts``, unit vectors) of each batch as it is answered, in any order.

        At most ``concurrency`` batches are in flight; a further one is sent only when the caller comes back
        and nothing answered is waiting, so what was yielded can be on disk first. After a failure nothing
        more is sent, what is in flight is still yielded, then the error is raised.

        Raises:
            ProviderError: a batch got no valid answer.
            UsageError: an empty text; nothing was sent.
        """
        for job, answer in self._run(self._embedding_jobs(texts), watch=watch):
            yield job.batch, answer

    def rerank(self, query: str, documents: Sequence[str], *, deadline: float | None = None) -> list[float]:
        """Return the relevance of each document to ``query``, in order; higher is better.

        The scale is the model's (see ``hub_answers.scale_of``): scores of one model compare, others do not.

        Raises:
            ProviderError: no complete, valid answer in time.
        """
        return self.rerank_many([(query, documents)], deadline=deadline)[0]

    def rerank_many(
        self, pairs: Sequence[tuple[str, Sequence[str]]], *, deadline: float | None = None
    ) -> list[list[float]]:
        """Return ``rerank`` of each (query, documents), sent concurrently; no documents, no request.

        Raises:
            ProviderError: not all were answered validly in time.
        """
        jobs = [
            _Job(
                self.settings.rerank_path,
                {
                    "model": self.settings.rerank_model,
                    "query": query,
                    "documents": list(documents),
                    "top_n": len(documents),
                },
                len(documents),
                partial(read_rerank, count=len(documents)),
                slice(place, place + 1),
            )
            for place, (query, documents) in enumerate(pairs)
            if documents
        ]
        scores: list[list[float]] = [[] for _ in pairs]
        for job, answer in self._run(jobs, deadline=deadline):
            scores[job.batch.start] = answer
        return scores

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self._transport.close()

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def _embedding_jobs(self, texts: Sequence[str]) -> list[_Job[NDArray[np.float32]]]:
        prepared = [canonical(text) for text in texts]
        if not all(prepared):
            raise UsageError(f"Text {prepared.index('')} of those to embed is empty. Leave empty lines out.")
        size = self.settings.batch_size
        batches = [slice(start, min(start + size, len(texts))) for start in range(0, len(texts), size)]
        return [
            _Job(
                "/embeddings",
                {
                    "model": self.settings.embedding_model,
                    "input": [self.settings.prefix + text for text in prepared[batch]],
                    "encoding_format": "float",
                },
                batch.stop - batch.start,
                partial(read_embeddings, count=batch.stop - batch.start, dimension=self.dimension),
                batch,
            )
            for batch in batches
        ]

    def _run(
        self, jobs: Sequence[_Job[T]], *, deadline: float | None = None, watch: SpendWatch | None = None
    ) -> Iterator[tuple[_Job[T], T]]:
        answers: queue.SimpleQueue[tuple[_Job[T], _Outcome[T]]] = queue.SimpleQueue()
        stop = threading.Event()
        waiting = deque(jobs)
        flying = 0
        failure: BaseException | None = None

        def work(job: _Job[T]) -> None:
            try:
                answers.put((job, _Outcome(answer=self._request(job, deadline, watch, stop))))
            except BaseException as error:  # noqa: BLE001 -- raised again in the caller's thread
                answers.put((job, _Outcome(error=error)))

        try:
            while flying or (waiting and failure is None):
                if waiting and failure is None and flying < self.settings.concurrency and answers.empty():
                    # A daemon thread, not an executor: a deadline must hold even where the client cannot be
                    # interrupted (name lookup has no timeout), and no thread left behind may keep the
                    # process from ending.
                    threading.Thread(
                        target=work, args=(waiting.popleft(),), name=THREAD_NAME, daemon=True
                    ).start()
                    flying += 1
                    continue
                job, outcome = self._next(answers, deadline)
                flying -= 1
                if outcome.error is None:
                    yield job, cast("T", outcome.answer)
                    continue
                failure = failure or outcome.error
                stop.set()
                if deadline is not None:
                    break
        finally:
            stop.set()
        if failure is not None:
            raise failure

    def _next(
        self, answers: queue.SimpleQueue[tuple[_Job[T], _Outcome[T]]], deadline: float | None
    ) -> tuple[_Job[T], _Outcome[T]]:
        try:
            return answers.get(timeout=None if deadline is None else max(0.0, deadline - self._clock()))
        except queue.Empty:
            raise self._error("did not answer within the time allowed") from None

    def _request(
        self, job: _Job[T], deadline: float | None, watch: SpendWatch | None, stop: threading.Event
    ) -> T:
        body = json.dumps(job.payload).encode()
        for attempt in range(self.settings.retries + 1):
            if stop.is_set():
                raise self._error("was not asked, as another request had failed")
            key = watch.reserve(job.batch) if watch else None
            with self._lock:
                self.calls += 1
                self.texts += job.texts
            try:
                answer = read_json_object(self._transport.post(job.path, body, deadline))
                if watch and key is not None:
                    watch.settle(key, billed_tokens(answer))
                return job.read(answer)
            except AnswerError as error:
                raise self._error(str(error)) from None
            except AttemptError as failed:
                if watch and key is not None and not failed.billed:
                    watch.release(key)
                if not failed.again:
                    raise self._error(str(failed)) from None
                if attempt == self.settings.retries:
                    raise self._error(f"{failed}, {attempt + 1} times") from None
                self._pause(failed, attempt, deadline)
        raise AssertionError  # the last attempt has returned or raised

    def _pause(self, failed: AttemptError, attempt: int, deadline: float | None) -> None:
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * (0.5 + self._jitter() / 2)
        if failed.wait is not None:
            # Never earlier than asked; the jitter comes on top, lest all clients return at one moment.
            wait = failed.wait + wait
            if failed.wait > LONGEST_RETRY_AFTER:
                raise self._error(f"{failed} and asks to wait {failed.wait:.0f} s") from None
        if deadline is not None and self._clock() + wait >= deadline:
            raise self._error(f"{failed}; no time is left for another attempt") from None
        self._sleep(wait)

    def _error(self, reason: str) -> ProviderError:
        return ProviderError(f"The hub at {self.settings.host} {reason}.")
