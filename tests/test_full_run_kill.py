"""kill -9 at twenty random points of a full run on the sample, restarted each time: nothing is paid twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from full_run_worker import BATCH, IN_FLIGHT
from hub_server import TOKEN, HubServer

from alpha_id_assets.corpus_vectors import read_corpus_texts
from alpha_id_assets.gate_files import SAMPLE_FILE
from alpha_id_assets.ledger import Ledger, spent
from alpha_id_assets.vectors import VectorCache
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.manifest import published_build_id
from alpha_id_runtime.pipeline import Suggester
from tests.command import environment
from tests.conftest import SAMPLE
from tests.hub_builds import DIMENSION, PRICE, hub_config

if TYPE_CHECKING:
    from tests.hub_builds import HubBuild

KILLS = 20
BY_TIME = 5
LATENCY = 0.1
LOST = BATCH * IN_FLIGHT


class Runner:
    """Starts full runs one after the other and kills each at the moment set."""

    def __init__(self, storage: Path, hub: HubServer) -> None:
        """Start the worker that forks them."""
        self.hub = hub
        arguments = [Path(__file__).with_name("full_run_worker.py"), SAMPLE, storage, hub.url]
        paths = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parent)])
        self.worker = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(ALPHA_ID_HUB_TOKEN=TOKEN, PYTHONPATH=paths),
        )

    def start(self) -> int:
        """Start one run and return its process id."""
        assert self.worker.stdin
        assert self.worker.stdout
        self.worker.stdin.write("\n")
        self.worker.stdin.flush()
        return int(self.worker.stdout.readline())

    def end(self) -> int:
        """Wait for the run and return its exit status."""
        assert self.worker.stdout
        return int(self.worker.stdout.readline())

    def kill_by_time(self, seconds: float) -> int:
        """Kill a run some time after its start, wherever it is; the hub is slow, so that it is not done."""
        latency = threading.Event()
        self.hub.on_request = lambda _: latency.wait(LATENCY)
        run = self.start()
        timer = threading.Timer(seconds, os.kill, (run, signal.SIGKILL))
        timer.start()
        status = self.end()
        timer.cancel()
        self.hub.on_request = None
        return status

    def kill_by_request(self, after: int, moment: str, delay: float) -> int:
        """Kill a run when the hub has seen so many of its requests, as they come in or are answered."""
        target = self.hub.count + after
        known, pause = threading.Event(), threading.Event()
        runs: list[int] = []

        def strike(number: int) -> None:
            if number == target:
                known.wait()
                pause.wait(delay)  # so that the kill also meets the writing, not only the network
                os.kill(runs[0], signal.SIGKILL)

        setattr(self.hub, moment, strike)
        runs.append(self.start())
        known.set()
        status = self.end()
        setattr(self.hub, moment, None)
        return status

    def stop(self) -> str:
        """End the worker; return what it complained of."""
        return self.worker.communicate(timeout=60)[1]


def _on_disk(storage: StorageLayout, texts: dict[str, str], fingerprint: str) -> set[str]:
    cache = VectorCache(storage.vectors)
    missing = set(cache.missing(fingerprint, texts))
    assert cache.warnings == []
    return {text for key, text in texts.items() if key not in missing}


def test_twenty_kills_of_a_full_run(hub_build: HubBuild, tmp_path: Path) -> None:
    """Only what was in flight at a kill is sent again; vectors and build are those of an undisturbed run.

    The one exception: a kill between the sample's last vector and its report costs the one phrase that a
    sample sends anew to see who answers.
    """
    calm = StorageLayout(hub_build.storage)
    corpus = read_corpus_texts(calm)
    storage = StorageLayout(tmp_path / "storage")
    chance = random.Random(11)
    by_time = set(chance.sample(range(KILLS), BY_TIME))
    written: set[str] = set()
    sent: dict[str, int] = {}
    again = 0
    with HubServer(DIMENSION) as hub:
        fingerprint = hub_config(hub.url, storage.root).hub.fingerprint
        runner = Runner(storage.root, hub)
        for turn in range(KILLS):
            sampled = (storage.gate / SAMPLE_FILE).exists()
            if turn in by_time:
                status = runner.kill_by_time(chance.uniform(0.05, 1.0))
            else:
                moment = chance.choice(["on_request", "on_answer"])
                status = runner.kill_by_request(chance.randint(1, 8), moment, chance.uniform(0, 0.01))
            assert status == -signal.SIGKILL, runner.stop()
            before, sent = sent, dict(hub.state()["texts"])
            sent_now = {text for text, count in sent.items() if count > before.get(text, 0)}
            assert len(sent_now & written) <= (0 if sampled else 1)
            again += len(sent_now & written)
            written_before, written = written, _on_disk(storage, corpus.by_hash, fingerprint)
            assert written_before <= written
            assert len(sent_now - written) <= LOST
        assert 0 < len(written) < len(corpus.by_hash)
        runner.start()
        assert runner.end() == 0, runner.stop()
        assert runner.stop() == ""
        sent = dict(hub.state()["texts"])

    assert set(sent) == set(corpus.by_hash.values())
    assert sum(sent.values()) <= len(corpus.by_hash) + KILLS * LOST + again
    assert spent(Ledger(storage.gate).entries(), PRICE).texts >= sum(sent.values())
    disturbed, undisturbed = (
        VectorCache(each.vectors).read(fingerprint, corpus.hashes) for each in (storage, calm)
    )
    np.testing.assert_array_equal(disturbed, undisturbed)
    assert published_build_id(storage) == published_build_id(calm)
    lexical = Suggester.open(hub_config("http://127.0.0.1:9/v1", storage.root, mode="c"))
    assert lexical.suggest("Lumbago").suggestions
