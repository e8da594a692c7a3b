"""``index build --sample`` and ``--full`` as processes: the estimate, the yes, the limit, nothing twice."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from hub_server import TOKEN, HubServer

from alpha_id_assets.corpus_vectors import read_corpus_texts
from alpha_id_assets.full_build import Confirmation, Told, build_full
from alpha_id_assets.gate import read_sample_report
from alpha_id_assets.ledger import Ledger, spent
from alpha_id_runtime.config import Config
from alpha_id_runtime.errors import GateError
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.manifest import Manifest, published_build_id, read_manifest
from alpha_id_runtime.pipeline import Suggester
from tests.command import alpha_id, complaint
from tests.conftest import SAMPLE
from tests.hub_builds import DIMENSION, PRICE, hub_config, hub_variables

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import BuiltIn
    from tests.hub_builds import HubBuild

QUIET = Told(lambda _: None, lambda _: None, lambda *_: None)
ALPHA_ID = "icd10gm2026_alphaidse_edvtxt_sample.txt"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub, and the token where it is looked for."""
    monkeypatch.setenv("ALPHA_ID_HUB_TOKEN", TOKEN)
    with HubServer(DIMENSION) as server:
        yield server


def _build(
    storage: Path, *options: str, url: str | None = None, data: Path = SAMPLE, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    arguments = ["index", "build", *options, "--data", data, "--storage", storage]
    return alpha_id(*arguments, variables=hub_variables(url, **variables) if url else {})


def _steps(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """Return the names at the beginning of the lines that the command wrote."""
    assert done.stdout == b""
    return [line.split("  ")[0] for line in done.stderr.decode().splitlines() if not line.startswith(" ")]


def _published(storage: Path) -> Manifest:
    layout = StorageLayout(storage)
    return read_manifest(layout.build(str(published_build_id(layout))))


def _no_phrase_in(storage: Path, text: str) -> bool:
    texts = read_corpus_texts(StorageLayout(storage)).by_hash.values()
    return not [each for each in texts if len(each) > 12 and each in text]


def test_a_full_run_shows_the_estimate_before_it_embeds(hub_build: HubBuild) -> None:
    """One line a step; the estimate comes before the sample and the run; every text is sent once."""
    assert hub_build.done.returncode == 0, hub_build.done.stderr.decode()
    steps = _steps(hub_build.done)
    wanted = ["published_index", "full run", "embeddings_sample", "embedding_approval", "embeddings"]
    assert [step for step in steps if step in wanted] == [*wanted, "published_index"]
    assert steps[-2:] == ["lance_index", "published_index"]
    assert "0 of them cached" in hub_build.done.stderr.decode()
    assert " euros" in hub_build.done.stderr.decode()
    assert _no_phrase_in(hub_build.storage, hub_build.done.stderr.decode())

    texts = read_corpus_texts(StorageLayout(hub_build.storage)).by_hash.values()
    assert hub_build.texts == dict.fromkeys(texts, 1)
    account = spent(Ledger(StorageLayout(hub_build.storage).gate).entries(), PRICE)
    assert account.texts == len(texts)
    assert "test-hub" in str(_published(hub_build.storage).fingerprint)


def test_without_confirm_nothing_is_sent(hub: HubServer, tmp_path: Path) -> None:
    """Exit code 2 with what it would take, and mode C is published and answers."""
    done = _build(tmp_path, "--full", url=hub.url)
    words = complaint(done, 2)

    assert "--confirm" in words
    assert "Nothing was sent" in words
    assert "full run" in _steps(done)
    assert hub.count == 0
    assert _published(tmp_path).lexical_only
    assert Suggester.open(Config(storage=tmp_path, mode="c")).suggest("Lumbago").suggestions


def test_an_unreachable_hub_does_not_keep_an_edition_from_mode_c(tmp_path: Path) -> None:
    """Confirmed, but nobody answers: one paragraph, no traceback, and mode C is published."""
    with HubServer(DIMENSION) as hub:
        hub.set_fault("refuse")
        done = _build(tmp_path, "--full", "--confirm", url=hub.url, HUB_RETRIES="0")
    assert "cannot be reached" in complaint(done, 3)
    assert TOKEN.encode() not in done.stderr
    assert _published(tmp_path).lexical_only


def test_a_limit_that_is_too_small_is_refused_before_anything_is_sent(hub: HubServer, tmp_path: Path) -> None:
    """Not even a sample leaves."""
    done = _build(tmp_path, "--full", "--confirm", "--limit-euros", "0.0001", url=hub.url)
    assert "The limit of 0.0001 euros is below the estimate" in complaint(done, 2)
    assert hub.count == 0


@pytest.mark.parametrize(
    ("price", "limits", "words"),
    [
        (PRICE, Confirmation(limit_euros=float("nan")), "is no amount"),
        (PRICE, Confirmation(limit_euros=float("inf")), "is no amount"),
        (PRICE, Confirmation(limit_euros=-1.0), "is no amount"),
        (PRICE, Confirmation(limit_euros=0.0), "below the estimate"),
        (PRICE, Confirmation(limit_tokens=10), "10 tokens is below the estimate"),
        (PRICE, Confirmation(limit_euros=9.0, limit_tokens=10), "10 tokens is below the estimate"),
        (None, Confirmation(limit_euros=9.0), "cannot be held: no price"),
        (None, Confirmation(limit_tokens=10), "10 tokens is below the estimate"),
    ],
)
def test_no_limit_is_ignored(
    hub: HubServer,
    tmp_path: Path,
    price: float | None,
    limits: Confirmation,
    words: str,
) -> None:
    """Whatever was named is held, or refused in words; the hub has seen nothing."""
    config = _with_price(hub_config(hub.url, tmp_path / "storage", data=SAMPLE), price)
    with pytest.raises(GateError, match=words):
        build_full(StorageLayout(config.storage), config, QUIET, limits)
    assert hub.count == 0


def _with_price(config: Config, price: float | None) -> Config:
    hub = {**vars(config.hub), "price_per_million_tokens": price}
    return Config(**{**vars(config), "hub": type(config.hub)(**hub)})


def test_a_limit_in_tokens_serves_where_no_price_is_known(hub: HubServer, tmp_path: Path) -> None:
    """Without a limit the estimate in tokens is the limit; the amount is said to be unknown."""
    done = _build(
        tmp_path,
        "--full",
        "--confirm",
        "--limit-tokens",
        "100000",
        url=hub.url,
        HUB_PRICE_PER_MILLION_TOKENS="",
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"an unknown price" in done.stderr
    assert set(hub.texts.values()) == {1}
    assert not _published(tmp_path).lexical_only


def test_a_sample_sends_so_many_phrases_and_estimates_the_rest(hub: HubServer, tmp_path: Path) -> None:
    """Twenty go out unasked; their examples are shown, and what the full run would take."""
    done = _build(tmp_path, "--sample", "20", url=hub.url)
    assert done.returncode == 0, done.stderr.decode()
    assert _steps(done)[-2:] == ["embeddings_sample", "full run"]
    assert (hub.texts.total(), len(hub.texts)) == (20, 20)
    assert "20 of them cached" in done.stderr.decode()
    report = read_sample_report(StorageLayout(tmp_path).gate)
    assert report is not None
    assert report.passed
    for example in report.details["examples"]:
        assert f"{example['asked']}: {example['cosine']:.3f}" in done.stderr.decode()


def test_a_second_build_trains_and_embeds_nothing(built_in: BuiltIn, tmp_path: Path) -> None:
    """With the built-in encoder: nothing trained, nothing embedded, the same build."""
    storage = tmp_path / "storage"
    shutil.copytree(built_in.storage, storage)
    done = _build(storage, "--full")
    assert done.returncode == 0, done.stderr.decode()
    assert "trained 0" in done.stderr.decode()
    assert "to embed: 0" in done.stderr.decode()
    assert "built 0" in done.stderr.decode()
    assert "embeddings" not in _steps(done)
    assert _published(storage).build_id == _published(built_in.storage).build_id


def test_the_cure_cures(built_in: BuiltIn, tmp_path: Path) -> None:
    """What a degraded answer names as the cure mends an index that opening alone finds whole."""
    storage = tmp_path / "storage"
    shutil.copytree(built_in.storage, storage)
    build = StorageLayout(storage).build(_published(storage).build_id)
    for path in (build.lance / "phrases.lance" / "data").iterdir():
        path.write_bytes(b"\x00" * path.stat().st_size)
    config = Config(data=SAMPLE, storage=storage, mode="a")
    assert Suggester.open(config).suggest("Beinbruch").diagnostics.degraded

    build_full(StorageLayout(storage), config, QUIET)
    assert not Suggester.open(config).suggest("Beinbruch").diagnostics.degraded


def test_a_new_edition_embeds_only_its_new_texts(hub: HubServer, hub_build: HubBuild, tmp_path: Path) -> None:
    """Nothing without a new yes, though mode C has it at once; then one text, and one to see who answers."""
    storage, data = tmp_path / "storage", tmp_path / "data"
    shutil.copytree(hub_build.storage, storage)
    shutil.copytree(SAMPLE, data)
    rows = (data / ALPHA_ID).read_text(encoding="utf-8")
    assert "|Lumbago\n" in rows
    (data / ALPHA_ID).write_text(rows.replace("|Lumbago\n", "|Lumbago nach Gartenarbeit\n"), encoding="utf-8")
    known = read_corpus_texts(StorageLayout(storage)).by_hash

    complaint(_build(storage, "--full", url=hub.url, data=data), 2)
    assert hub.count == 0
    answer = Suggester.open(Config(storage=storage, mode="c")).suggest("Lumbago nach Gartenarbeit")
    assert answer.suggestions[0].score == 1.0

    done = _build(storage, "--full", "--confirm", "--limit-euros", "1", url=hub.url, data=data)
    assert done.returncode == 0, done.stderr.decode()
    new = read_corpus_texts(StorageLayout(storage)).by_hash.keys() - known.keys()
    assert len(new) == 1
    assert hub.texts["Lumbago nach Gartenarbeit"] == 1
    assert hub.texts.total() <= 2
    assert not _published(storage).lexical_only

    hub.reset()
    again = _build(storage, "--full", url=hub.url, data=data)
    assert again.returncode == 0, again.stderr.decode()
    assert "to embed: 0" in again.stderr.decode()
    assert hub.count == 0
