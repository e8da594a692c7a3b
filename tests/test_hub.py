"""The hub client against a real server on loopback: what it sends, what it accepts, how it fails."""

from __future__ import annotations

import logging
import threading
import time
from email.utils import formatdate
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hub_server import TOKEN, HubServer, relevance_of, vector_of

from alpha_id_runtime.errors import ProviderError, UsageError
from alpha_id_runtime.hub import THREAD_NAME, HubClient, HubSettings
from alpha_id_runtime.hub_answers import retry_after_seconds, scale_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXTS = [
    "Diabetes mellitus Typ 2",
    "Otitis media",
    "Fraktur der Hand",
    "Asthma bronchiale",
    "Angina pectoris",
]
SECRET = "Geheimphrase des Patienten"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A hub of dimension 32, stopped at the end."""
    with HubServer() as server:
        yield server


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        """Start at some time."""
        self.time = 1000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        """Return the time."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.waits.append(seconds)
        self.time += seconds


def client_of(
    hub: HubServer, clock: Clock | None = None, token: str | None = TOKEN, **options: Any
) -> HubClient:
    """Return a client with batches of two, two retries and waits that take no time."""
    settings = HubSettings(base_url=hub.url, **{"dimension": 32, "batch_size": 2, "retries": 2, **options})
    clock = clock or Clock()
    return HubClient(settings, token, sleep=clock.sleep, clock=clock, now=lambda: 0.0, jitter=lambda: 1.0)


def expected(texts: list[str]) -> Any:
    """Return the vectors that the hub has for ``texts``."""
    return np.array([vector_of(text, 32) for text in texts], dtype=np.float32)


def test_vectors_come_back_in_the_order_of_the_texts(hub: HubServer) -> None:
    """Several batches in flight at once are put together in the order asked for, unit length, float32."""
    with client_of(hub) as client:
        vectors = client.embed(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected(TEXTS), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert (client.calls, client.texts) == (3, 5)
    assert hub.requests == {"embeddings": 3}


def test_what_is_sent_is_the_canonical_text_after_the_prefix(hub: HubServer) -> None:
    """The string sent is the one that the content hash is made of, with nothing before it but the prefix."""
    client_of(hub, prefix="query: ").embed(["  Otitis \t media "])
    assert dict(hub.texts) == {"query: Otitis media": 1}


def test_nothing_to_embed_sends_nothing(hub: HubServer) -> None:
    """No texts make an empty matrix of the right width; an empty text is refused before anything leaves."""
    assert client_of(hub).embed([]).shape == (0, 32)
    with pytest.raises(UsageError, match="Text 1"):
        client_of(hub).embed(["Otitis", "  "])
    assert hub.count == 0


def test_answered_batches_are_handed_out_before_the_next_is_sent(hub: HubServer) -> None:
    """With one request at a time, the server has seen exactly as many batches as were taken."""
    seen = [hub.count for _ in client_of(hub, concurrency=1).embed_batches(TEXTS)]
    assert seen == [1, 2, 3]


def test_what_is_answered_is_handed_out_before_more_is_sent(hub: HubServer) -> None:
    """Of two batches answered at once, both are handed out (and can be on disk) before a third leaves."""

    def settle_down() -> None:
        for thread in threading.enumerate():
            if thread.name == THREAD_NAME:
                thread.join()

    batches = client_of(hub, concurrency=2).embed_batches(TEXTS)
    taken = [next(batches)[0]]
    settle_down()
    taken.append(next(batches)[0])
    settle_down()
    assert hub.count == 2
    taken.append(next(batches)[0])
    assert hub.count == 3
    assert sorted(batch.start for batch in taken) == [0, 2, 4]


def test_no_more_requests_are_in_flight_than_allowed(hub: HubServer) -> None:
    """Requests sent never run ahead of batches taken by more than the concurrency."""
    texts = [f"Befund {number}" for number in range(40)]
    taken = 0
    for _ in client_of(hub, concurrency=3).embed_batches(texts):
        assert hub.count <= taken + 3
        taken += 1
    assert taken == 20


@pytest.mark.parametrize("kind", ["429", "500", "cut", "hang", "refuse"])
def test_a_passing_fault_is_outlived(hub: HubServer, kind: str) -> None:
    """After a fault of the moment the same batch is sent again, and the answer is whole."""
    clock = Clock()
    client = client_of(hub, clock, timeout=1.0 if kind == "hang" else 30.0)
    hub.set_fault(kind)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        hub.clear_fault()

    client._sleep = sleep
    np.testing.assert_allclose(client.embed(TEXTS[:2]), expected(TEXTS[:2]), atol=1e-6)
    assert len(clock.waits) == 1


@pytest.mark.parametrize("kind", ["429", "500", "cut", "hang", "refuse"])
def test_a_lasting_fault_ends_after_the_retries(hub: HubServer, kind: str) -> None:
    """One attempt and two more, waits growing, then an error with host and reason but no text, no token."""
    clock = Clock()
    hub.set_fault(kind)
    client = client_of(hub, clock, timeout=0.1 if kind == "hang" else 30.0)
    with pytest.raises(ProviderError, match="3 times") as caught:
        client.embed([SECRET])
    assert clock.waits == [0.5, 1.0]
    assert client.calls == 3
    assert hub.count == (0 if kind == "refuse" else 3)
    assert f"127.0.0.1:{hub.port}" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("401", "refused the token"),
        ("404", "no such path or model"),
        ("echo_400", r"did not accept the request \(400\)"),
        ("not_json", "not JSON"),
        ("wrong_count", "answered 1 items for 2 texts"),
        ("wrong_index", "two items for one text"),
        ("wrong_dimension", "dimension 33, not 32"),
        ("nan", "not finite"),
        ("zero", "without length"),
    ],
)
def test_a_fault_that_will_not_pass_is_not_retried(
    hub: HubServer, caplog: pytest.LogCaptureFixture, kind: str, reason: str
) -> None:
    """A refusal or a wrong answer ends at once: one request, an error in words, nothing of the text."""
    caplog.set_level(logging.DEBUG)
    hub.set_fault(kind)
    client = client_of(hub)
    with pytest.raises(ProviderError, match=reason) as caught:
        client.embed([SECRET, "Otitis"])
    assert hub.count == 1
    shown = str(caught.value) + caplog.text
    assert SECRET not in shown
    assert TOKEN not in shown
    assert caught.value.__cause__ is None


def test_items_in_another_order_are_put_right_by_their_index(hub: HubServer) -> None:
    """The index of an item counts, not its place."""
    hub.set_fault("wrong_order")
    np.testing.assert_allclose(client_of(hub).embed(TEXTS), expected(TEXTS), atol=1e-6)


def test_retry_after_in_seconds_is_honoured(hub: HubServer) -> None:
    """The wait is what the server asks for, the jittered backoff on top."""
    clock = Clock()
    hub.set_fault("429", times=1, retry_after="7")
    client_of(hub, clock).embed(TEXTS[:1])
    assert clock.waits == [7.5]


def test_retry_after_as_a_date_is_honoured(hub: HubServer) -> None:
    """A date counts from now; one that is past asks for no wait."""
    clock = Clock()
    hub.set_fault("429", times=1, retry_after=formatdate(20, usegmt=True))
    client_of(hub, clock).embed(TEXTS[:1])
    assert clock.waits == [20.5]
    assert retry_after_seconds(formatdate(20, usegmt=True), now=50.0) == 0
    assert retry_after_seconds("soon", now=0.0) is None
    assert retry_after_seconds(None, now=0.0) is None


def test_retry_after_beyond_the_deadline_is_not_waited_for(hub: HubServer) -> None:
    """Where the wait asked for does not fit into the time left, the error comes at once."""
    clock = Clock()
    hub.set_fault("429", retry_after="9")
    with pytest.raises(ProviderError, match="no time is left"):
        client_of(hub, clock).embed(TEXTS[:1], deadline=clock() + 8)
    assert clock.waits == []
    assert hub.count == 1


def test_retry_after_of_hours_means_down(hub: HubServer) -> None:
    """Without a deadline too, a hub that asks to come back tomorrow is an error now."""
    clock = Clock()
    hub.set_fault("429", retry_after="86400")
    with pytest.raises(ProviderError, match="asks to wait 86400 s"):
        client_of(hub, clock).embed(TEXTS[:1])
    assert clock.waits == []


def test_a_hanging_hub_is_left_at_the_deadline(hub: HubServer) -> None:
    """A server that never answers costs no more than the deadline, though the timeout is far longer."""
    hub.set_fault("hang")
    client = HubClient(HubSettings(base_url=hub.url, dimension=32, timeout=3600.0), TOKEN)
    with pytest.raises(ProviderError, match=r"within the time allowed|did not answer in time"):
        client.embed(TEXTS[:1], deadline=time.monotonic() + 0.2)


def test_a_deadline_that_has_passed_sends_nothing(hub: HubServer) -> None:
    """No request leaves that could not be waited for."""
    clock = Clock()
    with pytest.raises(ProviderError, match="within the time allowed"):
        client_of(hub, clock).embed(TEXTS[:1], deadline=clock() - 1)
    assert hub.count == 0


def test_after_a_failure_answered_batches_are_still_handed_out(hub: HubServer) -> None:
    """What was answered and paid for before a failure reaches the caller; then the error, no more sent."""
    batches = client_of(hub, concurrency=1, retries=0).embed_batches(TEXTS)
    assert next(batches)[0] == slice(0, 2)
    hub.set_fault("500")
    with pytest.raises(ProviderError, match="fault of its own"):
        next(batches)
    assert hub.count == 2


class Watch:
    """Writes down what it is told, in order."""

    def __init__(self) -> None:
        """Start with nothing told."""
        self.told: list[tuple[str, Any]] = []

    def reserve(self, batch: slice) -> str:
        """Note the batch."""
        self.told.append(("reserve", batch))
        return str(len(self.told))

    def settle(self, key: str, tokens: int | None) -> None:  # noqa: ARG002 -- as the protocol names it
        """Note the tokens."""
        self.told.append(("settle", tokens))

    def release(self, key: str) -> None:
        """Note the key."""
        self.told.append(("release", key))


@pytest.mark.parametrize(("kind", "fate"), [("500", "release"), ("refuse", "release"), ("cut", "lost")])
def test_each_attempt_is_announced_and_its_fate_told(hub: HubServer, kind: str, fate: str) -> None:
    """What was surely not billed is released, what may have been stays reserved, an answer is settled."""
    clock, watch = Clock(), Watch()
    client = client_of(hub, clock)
    hub.set_fault(kind)

    def sleep(_: float) -> None:
        hub.clear_fault()

    client._sleep = sleep
    list(client.embed_batches(["Otitis media"], watch=watch))
    kinds = [kind for kind, _ in watch.told]
    assert kinds == [step for step in ["reserve", fate, "reserve", "settle"] if step != "lost"]
    assert watch.told[-1] == ("settle", 4)


def test_what_the_watch_refuses_is_not_sent(hub: HubServer) -> None:
    """An error raised by the watch keeps this batch and all later ones unsent, and reaches the caller."""

    class Refusing(Watch):
        def reserve(self, batch: slice) -> str:
            if batch.start:
                raise UsageError("no more")
            return super().reserve(batch)

    batches = client_of(hub, concurrency=1).embed_batches(TEXTS, watch=Refusing())
    assert next(batches)[0] == slice(0, 2)
    with pytest.raises(UsageError, match="no more"):
        next(batches)
    assert hub.count == 1


@pytest.mark.parametrize("shape", ["results", "data"])
def test_both_shapes_of_a_rerank_answer_are_read(shape: str) -> None:
    """Scores come back in the order of the documents, whichever shape and order they were answered in."""
    query, documents = "Otitis media", ["Fraktur", "Otitis media", "Otitis externa"]
    with HubServer(rerank_shape=shape) as hub, client_of(hub) as client:
        scores = client.rerank(query, documents)
    assert scores == [relevance_of(query, document) for document in documents]
    assert scale_of(scores) == "probability"
    assert scale_of([-3.2, 4.1]) == "logit"
    assert (client.calls, client.texts) == (1, 3)


def test_many_queries_are_reranked_together(hub: HubServer) -> None:
    """Scores stand at the place of their query; a query without documents costs no request."""
    pairs = [("Otitis", ["Otitis", "Asthma"]), ("Asthma", []), ("Asthma", ["Asthma"])]
    scores = client_of(hub).rerank_many(pairs)
    assert scores == [[1.0, 0.0], [], [1.0]]
    assert hub.requests == {"rerank": 2}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("wrong_count", "1 items for 2"), ("wrong_index", "two items"), ("nan", "not a finite")],
)
def test_a_wrong_rerank_answer_is_refused(hub: HubServer, kind: str, reason: str) -> None:
    """Missing, doubled or undefined scores make an error, never a guess."""
    hub.set_fault(kind, path="rerank")
    with pytest.raises(ProviderError, match=reason):
        client_of(hub).rerank("Otitis", ["Otitis", "Asthma"])


def test_a_failing_reranker_leaves_embeddings_alone(hub: HubServer) -> None:
    """The two endpoints fail apart."""
    hub.set_fault("500", path="rerank")
    client = client_of(hub)
    with pytest.raises(ProviderError):
        client.rerank("Otitis", ["Otitis"])
    assert client.embed(["Otitis"]).shape == (1, 32)


def test_the_environment_redirects_nothing(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Proxies and .netrc of the environment change neither the way nor the token."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(netrc))
    assert client_of(hub).embed(["Otitis"]).shape == (1, 32)
    assert hub.headers[0]["Authorization"] == f"Bearer {TOKEN}"


def test_a_server_without_a_token_is_sent_none() -> None:
    """A server of one's own works without a token, and no such header leaves."""
    with HubServer(token=None) as hub:
        client_of(hub, token=None).embed(["Otitis"])
        assert "Authorization" not in hub.headers[0]


def test_waits_grow_to_a_bound(hub: HubServer) -> None:
    """Each wait is at most twice the last, and none is longer than half a minute."""
    clock = Clock()
    hub.set_fault("500")
    with pytest.raises(ProviderError):
        client_of(hub, clock, retries=9).embed(["Otitis"])
    assert clock.waits[0] == 0.5
    assert all(earlier <= later <= 2 * earlier for earlier, later in pairwise(clock.waits))
    assert clock.waits[-1] == 30.0
