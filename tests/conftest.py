"""Builds that many tests ask: the sample's, without and with vectors, and the only full-size one (mode C)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from alpha_id_assets.building import build_lexical
from alpha_id_runtime.config import Config
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.pipeline import Suggester
from tests.command import COMMAND
from tests.evaluation_builds import build_with_vectors
from tests.hub_builds import HubBuild, build_with_hub
from tests.offline import Offline, run_offline
from tests.reference import SHARED

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "sample"


def _built(data: Path, storage: Path) -> Path:
    build_lexical(StorageLayout(storage), Config(data=data, storage=storage), lambda _: None)
    return storage


@pytest.fixture(scope="session")
def sample_storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a storage with a lexical build of ``data/sample``; not to be written to."""
    return _built(SAMPLE, tmp_path_factory.mktemp("sample") / "storage")


@pytest.fixture(scope="session")
def sample(sample_storage: Path) -> Suggester:
    """Return a mode C suggester over the sample."""
    return Suggester.open(Config(storage=sample_storage, mode="c"))


@pytest.fixture(scope="session")
def semantic_config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Return the configuration of a sample build with vectors, quickly trained; it may take reports."""
    return build_with_vectors(tmp_path_factory.mktemp("semantic"))


@pytest.fixture(scope="session")
def full_storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a storage with a lexical build of the full-size reference data; not to be written to."""
    if not SHARED.is_dir():
        pytest.skip("the reference data ../shared/data is not beside the checkout")
    return _built(SHARED / "full", tmp_path_factory.mktemp("full") / "storage")


@pytest.fixture(scope="session")
def full(full_storage: Path) -> Suggester:
    """Return a mode C suggester over Alpha-ID 2023 and ClaML 2025."""
    return Suggester.open(Config(storage=full_storage, mode="c"))


@dataclass(frozen=True)
class BuiltIn:
    """A build of the sample with the built-in encoder, by the measured recipe, and how its making went."""

    storage: Path
    run: Offline


@pytest.fixture(scope="session")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> BuiltIn:
    """Return what ``index build --full`` makes of the sample, offline; not to be written to."""
    root = tmp_path_factory.mktemp("built_in")
    places = ["--data", str(SAMPLE), "--storage", str(root / "storage")]
    run = run_offline([*COMMAND, "index", "build", "--full", *places], root / "guard")
    return BuiltIn(root / "storage", run)


@pytest.fixture(scope="session")
def hub_build(tmp_path_factory: pytest.TempPathFactory) -> HubBuild:
    """Return what ``index build --full --confirm`` makes of the sample with the test hub; read only."""
    return build_with_hub(SAMPLE, tmp_path_factory.mktemp("hub_build") / "storage")
