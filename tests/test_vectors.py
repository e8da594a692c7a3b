"""The vector cache: what is on disk stays, what is damaged is set aside, and nothing is sent twice."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from embed_worker import PRICE, corpus, settings_of
from hub_server import TOKEN, HubServer, vector_of

from alpha_id_assets.gate import (
    Estimate,
    GateDecision,
    check_sample,
)
from alpha_id_assets.ledger import Ledger, spent
from alpha_id_assets.vectors import (
    PARTITIONS,
    QUARANTINE,
    EmbedReport,
    VectorCache,
    embed_missing,
    pack,
    vector_files,
)
from alpha_id_runtime.errors import ArtefactsMissingError, GateError, ProviderError, StorageError
from alpha_id_runtime.hub import HubClient
from alpha_id_runtime.provider import BuiltinProvider
from alpha_id_runtime.text import content_hash

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

MODEL = "some-model_1_4"


def free_pass(_: Estimate) -> GateDecision:
    """Allow everything, as the gate does for a provider that costs nothing."""
    return GateDecision(allowed=True, reason="free")


def of_partition(partition: str, count: int) -> list[str]:
    """Return content hashes of one partition."""
    hashes = (content_hash(str(number)) for number in range(100_000))
    return [key for key, _ in zip((key for key in hashes if key[0] == partition), range(count), strict=False)]


def some_vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Return vectors of dimension 4."""
    return np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)


@pytest.fixture
def cache(tmp_path: Path) -> VectorCache:
    """An empty cache."""
    return VectorCache(tmp_path / "vectors")


@dataclass(frozen=True)
class LengthEncoder:
    """An encoder whose vectors show which text they are of."""

    fingerprint: str = MODEL
    dimension: int = 4

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the length of each text four times."""
        return np.array([[len(text)] * 4 for text in texts], dtype=np.float32).reshape(len(texts), 4)


def test_what_was_written_is_read_back(cache: VectorCache) -> None:
    """Vectors come back bit by bit, in the order asked for, from several files and partitions."""
    first, second = of_partition("3", 4), of_partition("a", 3)
    ours, theirs = some_vectors(4), some_vectors(3, seed=1)
    with cache.writer(MODEL, "3", 4) as writer:
        writer.write_batch(first[:2], ours[:2])
        writer.write_batch(first[2:], ours[2:])
    with cache.writer(MODEL, "a", 4) as writer:
        writer.write_batch(second, theirs)
    asked = [second[2], first[3], first[0], second[2]]
    np.testing.assert_array_equal(cache.read(MODEL, asked), [theirs[2], ours[3], ours[0], theirs[2]])


def test_missing_lists_what_was_never_written(cache: VectorCache) -> None:
    """Missing keys come once each, in their order; another fingerprint has none of them."""
    keys = of_partition("3", 4)
    with cache.writer(MODEL, "3", 4) as writer:
        writer.write_batch(keys[:2], some_vectors(2))
    assert cache.missing(MODEL, [keys[3], keys[0], keys[2], keys[3]]) == [keys[3], keys[2]]
    assert cache.missing("other", keys) == keys
    with pytest.raises(ArtefactsMissingError, match=r"2 of 4 vectors of some-model_1_4"):
        cache.read(MODEL, keys)


def test_merging_keeps_every_vector_in_one_file(cache: VectorCache) -> None:
    """After a run a partition is one file with the same vectors; merging again changes nothing."""
    keys, vectors = of_partition("3", 5), some_vectors(5)
    with cache.writer(MODEL, "3", 4) as writer:
        for row in range(5):
            writer.write_batch([keys[row]], vectors[row : row + 1])
        writer.compact()
        files = vector_files(cache.folder(MODEL) / "3")
        writer.compact()
    assert len(files) == 1
    assert vector_files(cache.folder(MODEL) / "3") == files
    np.testing.assert_array_equal(cache.read(MODEL, keys), vectors)


DAMAGE = {
    "empty": lambda data: data[:0],
    "cut": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "magic": lambda data: b"X" + data[1:],
    "hash": lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:],
    "vector": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
    "count": lambda data: data[:40] + b"\xff\xff\xff\x7f" + data[44:],
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_set_aside_and_its_vectors_are_missing(cache: VectorCache, kind: str) -> None:
    """One flipped bit is enough: the file moves to quarantine with a warning, its neighbours stay in use."""
    keys, vectors = of_partition("3", 4), some_vectors(4)
    with cache.writer(MODEL, "3", 4) as writer:
        writer.write_batch(keys[:2], vectors[:2])
        damaged = vector_files(cache.folder(MODEL) / "3")[0]
        writer.write_batch(keys[2:], vectors[2:])
    data = DAMAGE[kind](damaged.read_bytes())
    damaged.write_bytes(data)
    assert cache.missing(MODEL, keys) == keys[:2]
    assert [path.read_bytes() for path in (cache.folder(MODEL) / QUARANTINE).iterdir()] == [data]
    assert len(cache.warnings) == 1
    assert "quarantine" in cache.warnings[0]
    np.testing.assert_array_equal(cache.read(MODEL, keys[2:]), vectors[2:])


def test_a_file_of_another_fingerprint_is_not_believed(cache: VectorCache) -> None:
    """A sound file copied into the folder of another model counts as damaged."""
    keys = of_partition("3", 2)
    with cache.writer(MODEL, "3", 4):
        (cache.folder(MODEL) / "3" / "copied.vectors").write_bytes(pack("other", keys, some_vectors(2)))
    assert cache.missing(MODEL, keys) == keys


def test_what_a_kill_left_half_written_is_cleared_away(cache: VectorCache) -> None:
    """A temporary file is no vector of anything; the next writer removes it."""
    keys = of_partition("3", 2)
    with cache.writer(MODEL, "3", 4) as writer:
        writer.write_batch(keys[:1], some_vectors(1))
    left = cache.folder(MODEL) / "3" / ".0123.vectors.abcd"
    left.write_bytes(pack(MODEL, keys[1:], some_vectors(1))[:50])
    assert cache.missing(MODEL, keys) == keys[1:]
    with cache.writer(MODEL, "3", 4):
        assert not left.exists()
    assert cache.warnings == []


@pytest.mark.parametrize(
    ("keys", "vectors"),
    [
        (of_partition("4", 1), some_vectors(1)),
        (["3" * 63], some_vectors(1)),
        (of_partition("3", 2), some_vectors(1)),
        (of_partition("3", 1), some_vectors(1)[:, :3]),
        (of_partition("3", 1), np.full((1, 4), np.nan, dtype=np.float32)),
    ],
)
def test_what_does_not_belong_is_not_written(
    cache: VectorCache, keys: list[str], vectors: NDArray[np.float32]
) -> None:
    """Keys of another partition, wrong shapes and undefined values are refused before anything is on disk."""
    with cache.writer(MODEL, "3", 4) as writer, pytest.raises(ValueError, match=r"partition|shape|finite"):
        writer.write_batch(keys, vectors)
    assert vector_files(cache.folder(MODEL) / "3") == []


def test_any_fingerprint_makes_a_folder_below_the_root(cache: VectorCache) -> None:
    """Slashes, dots and the quarantine's name cannot lead elsewhere; no two share a folder."""
    names = ["a/b", "a_b", "a b", "../up", ".", "", QUARANTINE, "x" * 300, "x" * 301]
    folders = [cache.folder(name) for name in names]
    assert {folder.parent for folder in folders} == {cache.root}
    assert len(set(folders)) == len(names)
    assert not {".", "..", QUARANTINE} & {folder.name for folder in folders}


def test_storage_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """The error names the folder and the cure."""
    (tmp_path / "vectors").write_text("a file where the folder should be")
    with (
        pytest.raises(StorageError, match="ALPHA_ID_STORAGE"),
        VectorCache(tmp_path / "vectors").writer(MODEL, "3", 4),
    ):
        pass


def test_only_missing_texts_are_embedded(cache: VectorCache, tmp_path: Path) -> None:
    """A new edition embeds its new texts only; the report counts what was reused."""
    old, new = corpus(40), corpus(60)
    provider = BuiltinProvider(LengthEncoder())
    ledger = Ledger(tmp_path / "gate")
    reports: list[EmbedReport] = []
    for texts in (old, new, new):
        for partition in PARTITIONS:
            report = embed_missing(cache, provider, texts, partition, gate_check=free_pass, ledger=ledger)
            reports.append(report)
    runs = [reports[:16], reports[16:32], reports[32:]]
    assert [sum(report.embedded for report in run) for run in runs] == [40, 20, 0]
    assert [sum(report.reused for report in run) for run in runs] == [0, 40, 60]
    assert [sum(report.total for report in run) for run in runs] == [40, 60, 60]
    assert {report.euros for report in reports} == {0.0}
    vectors = cache.read(MODEL, list(new))
    assert vectors[:, 0].tolist() == [len(text) for text in new.values()]
    assert not ledger.path.exists()


def test_a_damaged_file_costs_only_its_own_texts(cache: VectorCache, tmp_path: Path) -> None:
    """After damage exactly the lost vectors are made again."""
    texts = corpus(60)
    provider = BuiltinProvider(LengthEncoder())

    def run() -> int:
        return sum(
            embed_missing(
                cache, provider, texts, partition, gate_check=free_pass, ledger=Ledger(tmp_path / "gate")
            ).embedded
            for partition in PARTITIONS
        )

    assert run() == 60
    lost = [key for key in texts if key[0] == "7"]
    [file] = vector_files(cache.folder(MODEL) / "7")
    file.write_bytes(file.read_bytes()[:100])
    assert lost
    assert run() == len(lost)
    assert cache.missing(MODEL, texts) == []


def test_a_refusal_of_the_gate_sends_nothing(cache: VectorCache, tmp_path: Path) -> None:
    """The gate's reason becomes the error; the hub's counter stays at zero."""
    with HubServer(dimension=16) as hub, HubClient(settings_of(hub.url), TOKEN) as client:
        for partition in PARTITIONS:
            with pytest.raises(GateError, match="not today"):
                embed_missing(
                    cache,
                    client,
                    corpus(100),
                    partition,
                    gate_check=lambda _: GateDecision(allowed=False, reason="not today"),
                    ledger=Ledger(tmp_path / "gate"),
                )
        assert hub.count == 0


def test_a_partition_being_written_is_left_alone(cache: VectorCache, tmp_path: Path) -> None:
    """A second writer of one partition is refused before any request, naming the first; others go on."""
    with HubServer(dimension=16) as hub, HubClient(settings_of(hub.url), TOKEN) as client:
        ledger = Ledger(tmp_path / "gate")
        with cache.writer(client.fingerprint, "3", 16):
            with pytest.raises(StorageError, match=rf"by another process \({os.getpid()}\)"):
                embed_missing(cache, client, corpus(100), "3", gate_check=free_pass, ledger=ledger)
            assert hub.count == 0
            embed_missing(cache, client, corpus(100), "4", gate_check=free_pass, ledger=ledger)
            assert hub.count > 0
        embed_missing(cache, client, corpus(100), "3", gate_check=free_pass, ledger=ledger)
    assert cache.missing(client.fingerprint, [key for key in corpus(100) if key[0] in "34"]) == []


def test_answered_batches_outlive_a_failure_of_the_hub(cache: VectorCache, tmp_path: Path) -> None:
    """What was answered before the hub failed is on disk, and only the rest is sent by the next run."""
    texts = {key: text for key, text in corpus(400).items() if key[0] == "3"}
    ledger = Ledger(tmp_path / "gate")
    with HubServer(dimension=16) as hub:
        settings = replace(settings_of(hub.url), retries=0, concurrency=1)
        with HubClient(settings, TOKEN) as client:

            def fail_after_two(done: int, _: int) -> None:
                if done == 10:
                    hub.set_fault("500")

            with pytest.raises(ProviderError):
                embed_missing(
                    cache, client, texts, "3", gate_check=free_pass, ledger=ledger, progress=fail_after_two
                )
            assert len(cache.missing(client.fingerprint, texts)) == len(texts) - 10
            hub.clear_fault()
            hub.reset()
            report = embed_missing(cache, client, texts, "3", gate_check=free_pass, ledger=ledger)
            assert (report.reused, report.embedded) == (10, len(texts) - 10)
            assert sum(hub.texts.values()) == len(texts) - 10
            vectors = cache.read(client.fingerprint, list(texts))
    np.testing.assert_allclose(vectors, [vector_of(text, 16) for text in texts.values()], atol=1e-6)


def test_the_report_and_the_ledger_say_what_was_billed(cache: VectorCache, tmp_path: Path) -> None:
    """Tokens are those that the hub reports, euros follow from the price, and the ledger holds the same."""
    ledger = Ledger(tmp_path / "gate")
    with HubServer(dimension=16) as hub, HubClient(settings_of(hub.url), TOKEN) as client:
        report = embed_missing(cache, client, corpus(100), "3", gate_check=free_pass, ledger=ledger)
        billed = hub.tokens
    assert report.tokens == billed > 0
    assert report.euros == pytest.approx(billed * PRICE / 1e6)
    account = spent(ledger.entries(), PRICE)
    assert (account.tokens, account.texts) == (billed, report.embedded)
    assert account.euros == pytest.approx(report.euros)
    assert {entry.state for entry in ledger.entries()} == {"settled"}


def test_samples_end_at_their_own_limit(cache: VectorCache, tmp_path: Path) -> None:
    """No series of samples passes for a full run: after a thousand texts of one model none more leaves."""
    gate, texts = tmp_path / "gate", corpus(1200)
    with (
        HubServer(dimension=16) as hub,
        HubClient(replace(settings_of(hub.url), batch_size=40), TOKEN) as client,
    ):

        def sample_check(order: Estimate) -> GateDecision:
            return check_sample(gate, fingerprint=client.fingerprint, costs_money=True, to_spend=order)

        with pytest.raises(GateError, match="1000 texts without an approval"):
            [
                embed_missing(cache, client, texts, partition, gate_check=sample_check, ledger=Ledger(gate))
                for partition in PARTITIONS
            ]
        assert 900 < sum(hub.texts.values()) <= 1000
