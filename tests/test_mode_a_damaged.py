"""Damaged, missing or foreign artefacts of mode A: mode C answers, and says what is wrong with its cure."""

from __future__ import annotations

import io
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hub_server import TOKEN, HubServer

from alpha_id_runtime.config import Config
from alpha_id_runtime.encoder import WEIGHTS_FILE
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.manifest import published_build_id
from alpha_id_runtime.pipeline import Suggester
from alpha_id_runtime.retrieval.dense import CODES, NOTE, PROTOTYPES, VECTORS
from tests.command import alpha_id, complaint
from tests.degraded import TEXT, by_command, check_reason, suggestions_of
from tests.hub_builds import DIMENSION, copy_published, hub_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from alpha_id_runtime.layout import BuildLayout
    from tests.conftest import BuiltIn
    from tests.hub_builds import HubBuild


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub, and the token where it is looked for."""
    monkeypatch.setenv("ALPHA_ID_HUB_TOKEN", TOKEN)
    with HubServer(DIMENSION) as server:
        yield server


def _damage_lance_data(build: BuildLayout) -> None:
    for path in (build.lance / "phrases.lance" / "data").iterdir():
        path.write_bytes(b"\x00" * path.stat().st_size)


def _remove_lance_index(build: BuildLayout) -> None:
    shutil.rmtree(build.lance / "phrases.lance" / "_indices")


def _cut_vectors(build: BuildLayout) -> None:
    whole = (build.lance / VECTORS).read_bytes()
    (build.lance / VECTORS).write_bytes(whole[: len(whole) // 2])


def _empty(folder: str, name: str) -> Callable[[BuildLayout], None]:
    def damage(build: BuildLayout) -> None:
        [path] = (build.root / folder).rglob(name)
        path.write_bytes(b"")

    return damage


def _note_of_nothing(build: BuildLayout) -> None:
    (build.lance / CODES).write_text("3")


def _weights_that_are_no_numbers(build: BuildLayout) -> None:
    [path] = build.encoder.rglob(WEIGHTS_FILE)
    weights = np.load(path)
    buffer = io.BytesIO()
    np.save(buffer, np.full_like(weights, np.nan))
    path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda build: shutil.rmtree(build.lance), "holds no vector index"),
        (lambda build: shutil.rmtree(build.lance / "phrases.lance"), "damaged"),
        (_damage_lance_data, "cannot be searched"),
        (_remove_lance_index, "cannot be searched"),
        (_cut_vectors, "damaged"),
        (_empty("lance", VECTORS), "damaged"),
        (_empty("lance", PROTOTYPES), "damaged"),
        (_empty("lance", NOTE), "damaged"),
        (_note_of_nothing, "damaged"),
        (lambda build: shutil.rmtree(build.encoder), "There is no"),
        (_empty("encoder", WEIGHTS_FILE), "damaged"),
        (_weights_that_are_no_numbers, "damaged"),
    ],
    ids=[
        "no index",
        "no table",
        "rows of zeros",
        "no graph",
        "half the vectors",
        "empty vectors",
        "empty prototypes",
        "empty note",
        "codes that are none",
        "no encoder",
        "empty weights",
        "weights that are no numbers",
    ],
)
def test_damaged_vectors_leave_mode_c(
    built_in: BuiltIn, tmp_path: Path, damage: Callable[[BuildLayout], None], words: str
) -> None:
    """Whatever of mode A's files is gone or damaged, the reader of the build answers, and names the cure."""
    storage = copy_published(built_in.storage, tmp_path / "storage")
    build_id = published_build_id(StorageLayout(storage))
    assert build_id is not None
    damage(StorageLayout(storage).build(build_id))
    result = Suggester.open(Config(storage=storage, mode="a")).suggest(TEXT)

    assert (result.diagnostics.mode, result.diagnostics.degraded) == ("c", True)
    reason = result.diagnostics.degraded_reason
    check_reason(reason, words)
    assert "index build --full" in str(reason)
    lexical = Suggester.open(Config(storage=built_in.storage, mode="c")).suggest(TEXT)
    assert suggestions_of(result) == suggestions_of(lexical)


@pytest.mark.parametrize(
    "damage", [_damage_lance_data, _empty("encoder", WEIGHTS_FILE)], ids=["rows", "encoder"]
)
def test_the_command_answers_from_damaged_vectors(
    built_in: BuiltIn, tmp_path: Path, damage: Callable[[BuildLayout], None]
) -> None:
    """Exit code 0, degraded, and not a word of LanceDB or numpy on standard error."""
    storage = copy_published(built_in.storage, tmp_path / "storage")
    damage(StorageLayout(storage).build(str(published_build_id(StorageLayout(storage)))))
    answer, complaints = by_command(storage, "a", {})

    assert (answer["diagnostics"]["mode"], answer["diagnostics"]["degraded"]) == ("c", True)
    assert complaints == b""


def test_a_lexical_build_answers_in_mode_a(sample_storage: Path) -> None:
    """It holds no vectors, says so, and how to get them."""
    answer, complaints = by_command(sample_storage, "a", {})
    assert (answer["diagnostics"]["mode"], answer["diagnostics"]["degraded"]) == ("c", True)
    check_reason(answer["diagnostics"]["degraded_reason"], "lexical-only")
    assert answer["suggestions"] == by_command(sample_storage, "c", {})[0]["suggestions"]
    assert complaints == b""


def test_vectors_of_another_provider_are_not_asked(
    hub: HubServer, hub_build: HubBuild, built_in: BuiltIn
) -> None:
    """Neither a hub over the encoder's vectors, nor the encoder over a hub's, nor another model."""
    other = hub_config(hub.url, hub_build.storage)
    for config, words in (
        (hub_config(hub.url, built_in.storage), "The published vectors are of builtin"),
        (Config(storage=hub_build.storage, mode="a"), "There is no"),
        (replace(other, hub=replace(other.hub, model_version="2")), "the configured provider is"),
        (replace(other, hub=replace(other.hub, dimension=DIMENSION + 1)), "the configured provider is"),
    ):
        result = Suggester.open(config).suggest(TEXT)
        assert (result.diagnostics.mode, result.diagnostics.degraded) == ("c", True)
        check_reason(result.diagnostics.degraded_reason, words)
        lexical = Suggester.open(replace(config, mode="c")).suggest(TEXT)
        assert suggestions_of(result) == suggestions_of(lexical)
    assert hub.count == 0


def test_only_missing_artefacts_are_fatal(built_in: BuiltIn, tmp_path: Path) -> None:
    """Nothing published, or no code table: exit code 3 and the command that cures it, in mode A as well."""
    nothing = alpha_id("suggest", "--mode", "a", "--storage", tmp_path / "nothing", stdin=TEXT.encode())
    assert "index build" in complaint(nothing, 3)
    storage = copy_published(built_in.storage, tmp_path / "storage")
    StorageLayout(storage).build(str(published_build_id(StorageLayout(storage)))).codes.unlink()
    damaged = alpha_id("suggest", "--mode", "a", "--storage", storage, stdin=TEXT.encode())
    assert "index build" in complaint(damaged, 3)
