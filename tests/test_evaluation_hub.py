"""Evaluation of vectors that a hub made: nothing is trained, yet nothing held out may leak either."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from alpha_id_assets.building import build_lexical, make_published
from alpha_id_assets.embedding import make_embeddings, make_lance
from alpha_id_assets.evaluating import holdout_semantic
from alpha_id_assets.evaluation_steps import make_eval_report
from alpha_id_runtime.build import Build, open_published
from alpha_id_runtime.config import Config
from alpha_id_runtime.evaluation.adapter import corpus_of
from alpha_id_runtime.evaluation.cases import draw_cases, held_out_rows
from alpha_id_runtime.evaluation.session import Plan, run_plan
from alpha_id_runtime.hub_settings import HubSettings
from alpha_id_runtime.layout import StorageLayout
from tests.evaluation_builds import DATA
from tests.hub_server import HubServer, vector_of

if TYPE_CHECKING:
    from collections.abc import Iterator

DIMENSION = 32


@pytest.fixture(scope="module")
def hub() -> Iterator[HubServer]:
    """A hub on loopback."""
    with HubServer(DIMENSION, token=None) as server:
        yield server


@pytest.fixture(scope="module")
def config(hub: HubServer, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Return the configuration of a sample build with the hub's vectors."""
    settings = HubSettings(
        base_url=hub.url, dimension=DIMENSION, token_required=False, price_per_million_tokens=0.0
    )
    root = tmp_path_factory.mktemp("hub")
    made = Config(data=DATA, storage=root / "storage", mode="a", provider="hub", hub=settings)
    storage = StorageLayout(made.storage)
    build_lexical(storage, made, lambda _: None)
    make_embeddings(storage, made)
    make_lance(storage, made)
    make_published(storage, made)
    return made


@pytest.fixture(scope="module")
def build(config: Config) -> Build:
    """Return that build, opened."""
    return open_published(StorageLayout(config.storage))


def test_prototypes_leave_out_what_is_held_out(build: Build, config: Config) -> None:
    """A code's prototype is the mean of the rows that stay; the vectors themselves are the published ones."""
    cases = draw_cases(corpus_of(build), "held_out", 30, 1)
    gone = held_out_rows(cases)
    semantic = holdout_semantic(build, cases, config)
    code = cases[0].gold[0]
    left = [row for row in build.phrases.rows_of(code).tolist() if row not in gone]
    mean = np.mean([vector_of(text, DIMENSION) for text in build.phrases.texts(left)], axis=0)
    similar = semantic.index.prototype_similarity(np.array([mean / np.linalg.norm(mean)], dtype=np.float32))
    assert similar[0][semantic.index.codes.index(code)] == pytest.approx(1, abs=0.01)
    everything = np.mean(
        [vector_of(text, DIMENSION) for text in build.phrases.texts(build.phrases.rows_of(code).tolist())],
        axis=0,
    )
    other = semantic.index.prototype_similarity(
        np.array([everything / np.linalg.norm(everything)], dtype=np.float32)
    )
    assert other[0][semantic.index.codes.index(code)] < 0.999


def test_requests_to_the_hub_are_counted(build: Build, config: Config, hub: HubServer) -> None:
    """Held-out cases and the others go to it in batches; it is announced before and counted."""
    told: list[str] = []
    before = hub.count
    result = run_plan(
        build,
        config,
        Plan(modes=("a",), cases=10, holdout=True),
        held_out=lambda cases: holdout_semantic(build, cases, config),
        progress=told.append,
    )
    [cost] = result.costs
    assert cost.hub_calls == hub.count - before > 0
    assert (cost.degraded, cost.euros) == (0.0, 0.0)
    assert any("to the hub" in line for line in told)
    block = result.block("held_out", "a")
    assert block is not None
    assert len(block.outcomes) == 10


def test_unattended_evaluation_asks_no_hub_that_may_cost(config: Config, hub: HubServer) -> None:
    """Without a configured price the nightly report leaves mode A out and says so; nothing is sent."""
    unpriced = replace(config, hub=replace(config.hub, price_per_million_tokens=None))
    before = hub.count
    step = make_eval_report(StorageLayout(config.storage), unpriced, cases=5)
    assert hub.count == before
    assert "may cost money" in step.warnings[0]
    assert not any(" a " in name for name in step.details["leading"])
