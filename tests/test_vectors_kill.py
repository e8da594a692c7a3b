"""A full run against a hub, killed and restarted: nothing is paid for twice, nothing is lost."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from embed_worker import CORPUS_HASH, PRICE, corpus, embed_all, settings_of
from hub_server import HubServer

from alpha_id_assets.gate import SampleReport, approve, estimate, write_sample_report
from alpha_id_assets.ledger import Ledger, spent
from alpha_id_assets.vectors import VectorCache
from alpha_id_runtime.layout import StorageLayout

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLS = 20


@dataclass
class Killer:
    """Kills a process once the hub has seen so many requests, at one of two moments of a request."""

    hub: HubServer
    process: subprocess.Popen[bytes] | None = None

    def arm(self, after: int, moment: str, delay: float) -> threading.Event:
        """Set the moment; return the event that lets the hub know the process is there."""
        ready = threading.Event()
        target = self.hub.count + after
        waiter = threading.Event()

        def strike(number: int) -> None:
            if number >= target:
                ready.wait()
                waiter.wait(delay)  # so that the kill also meets the writing, not only the network
                if self.process:
                    self.process.send_signal(signal.SIGKILL)

        self.hub.on_request = strike if moment == "request" else None
        self.hub.on_answer = strike if moment == "answer" else None
        return ready


@pytest.fixture
def approved(tmp_path: Path) -> Iterator[tuple[HubServer, Path, dict[str, str]]]:
    """A hub, a storage folder with a valid approval, and 600 texts."""
    texts = corpus(600)
    with HubServer(dimension=16) as hub:
        settings = settings_of(hub.url)
        order = estimate(texts, list(texts), settings.pricing)
        gate = StorageLayout(tmp_path / "storage").gate
        report = SampleReport(settings.fingerprint, CORPUS_HASH, passed=True, estimate=order, at="")
        write_sample_report(gate, report)
        approve(
            gate,
            confirm=True,
            fingerprint=settings.fingerprint,
            corpus_hash=CORPUS_HASH,
            by="test",
            limit_euros=1,
        )
        yield hub, tmp_path / "storage", texts


def on_disk(storage: Path, texts: dict[str, str], fingerprint: str) -> set[str]:
    """Return the texts that have a vector."""
    cache = VectorCache(StorageLayout(storage).vectors)
    missing = set(cache.missing(fingerprint, texts))
    assert cache.warnings == []
    return {text for key, text in texts.items() if key not in missing}


def test_twenty_kills_cost_no_more_than_what_was_in_flight(
    approved: tuple[HubServer, Path, dict[str, str]], tmp_path: Path
) -> None:
    """Killed at twenty random points and restarted: nothing on disk is sent again, the end is the same.

    Of a killed run at most the batches in flight (two of five texts) are lost; the ledger never says less
    than was sent; all vectors are there and equal to those of an undisturbed run.
    """
    hub, storage, texts = approved
    fingerprint = settings_of(hub.url).fingerprint
    corpus_file = tmp_path / "corpus.json"
    corpus_file.write_text(json.dumps(texts))
    worker = Path(__file__).with_name("embed_worker.py")
    command: list[Any] = [sys.executable, worker, storage, corpus_file, hub.url]
    chance, killer = random.Random(3), Killer(hub)
    written: set[str] = set()
    sent: dict[str, int] = {}
    for _ in range(KILLS):
        ready = killer.arm(
            chance.randint(1, 6), chance.choice(["request", "answer"]), chance.uniform(0, 0.01)
        )
        killer.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        ready.set()
        assert killer.process.wait(timeout=60) == -signal.SIGKILL
        before, sent = sent, hub.state()["texts"]
        sent_now = {text for text, count in sent.items() if count > before.get(text, 0)}
        assert not sent_now & written
        assert written <= (written := on_disk(storage, texts, fingerprint))
        assert len(sent_now - written) <= 10
    hub.on_request = hub.on_answer = None
    assert subprocess.run(command, check=False).returncode == 0

    sent = hub.state()["texts"]
    assert set(sent) == set(texts.values())
    assert sum(sent.values()) <= len(texts) + KILLS * 10
    account = spent(Ledger(StorageLayout(storage).gate).entries(), PRICE)
    assert account.texts >= sum(sent.values())
    disturbed = VectorCache(StorageLayout(storage).vectors).read(fingerprint, list(texts))

    calm = tmp_path / "calm"
    (calm / "gate").mkdir(parents=True)
    for name in ("sample.json", "approval.json"):
        (calm / "gate" / name).write_bytes((storage / "gate" / name).read_bytes())
    hub.reset()
    embed_all(calm, texts, hub.url)
    assert set(hub.state()["texts"].values()) == {1}
    undisturbed = VectorCache(StorageLayout(calm).vectors).read(fingerprint, list(texts))
    np.testing.assert_array_equal(disturbed, undisturbed)


def test_a_second_run_sends_nothing(approved: tuple[HubServer, Path, dict[str, str]]) -> None:
    """With every vector in the cache, a run reports all as reused and the hub sees no request."""
    hub, storage, texts = approved
    embed_all(storage, texts, hub.url)
    assert set(hub.texts.values()) == {1}
    hub.reset()
    reports = embed_all(storage, texts, hub.url)
    assert sum(report.reused for report in reports) == len(texts)
    assert {(report.embedded, report.tokens, report.euros) for report in reports} == {(0, 0, 0.0)}
    assert hub.count == 0
