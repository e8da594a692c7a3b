"""The learned reranker: its features, its trees, and that both only reorder what retrieval found."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from alpha_id_assets.reranking.examples import Examples
from alpha_id_assets.reranking.training import CONSTRAINTS, BoostingSettings, mixed_loss, train_trees
from alpha_id_runtime.boosting import JUDGED, MODEL, BoostedTrees
from alpha_id_runtime.errors import ConfigError
from alpha_id_runtime.features import NAMES, CodeFacts, Pool, code_features
from alpha_id_runtime.rerank import places_of_largest

if TYPE_CHECKING:
    from pathlib import Path

SMALL = BoostingSettings(trees=30, leaves=6, min_leaf=5)


def _examples(count: int = 600) -> Examples:
    rng = np.random.default_rng(3)
    # Three decimals, so that no two values lie nearer than the digits of a threshold in the file.
    features = rng.normal(size=(count, len(JUDGED))).round(3).astype(np.float32)
    right = features[:, 0] + 0.5 * features[:, 1] > rng.normal(size=count) * 0.3
    return Examples(features, right, np.arange(count))


def _pool(
    codes: list[int], dense: list[float], lexical: list[float] | None = None, text: int = 0
) -> tuple[Pool, np.ndarray]:
    n = len(codes)
    pool = Pool(
        texts=np.full(n, text),
        rows=np.arange(n),
        codes=np.array(codes),
        categories=np.array(codes) // 10,
        dense=np.array(dense),
        prototype=np.full(n, 0.5),
        dice=np.full(n, 0.4),
        lexical=np.array(lexical or [0.0] * n),
        is_title=np.zeros(n, dtype=np.bool_),
        weights=np.full(n, 10.0),
        lengths=np.full(n, 9.0),
        text_weights=np.full(text + 1, 10.0),
        text_lengths=np.full(text + 1, 9.0),
    )
    return pool, pool.dense + pool.prototype


def _facts(codes: int) -> CodeFacts:
    return CodeFacts(np.full(codes, 3.0), np.zeros(codes), np.zeros(codes))


def test_the_trees_give_what_their_trainer_gives(tmp_path: Path) -> None:
    """Applied by numpy alone, every probability is LightGBM's own, to the digits the file keeps."""
    try:
        import lightgbm  # noqa: PLC0415 -- the reference
    except OSError as error:  # its wheel leaves the OpenMP library to the system
        pytest.skip(f"LightGBM does not load here: {error}")

    examples = _examples()
    file = tmp_path / "model.json"
    file.write_text(json.dumps(train_trees(examples, replace(SMALL, listwise=0.0), {})))
    share = examples.right.mean()
    baseline = np.log(share / (1 - share))
    reference = lightgbm.train(
        {
            "objective": "binary",
            "boost_from_average": False,
            "learning_rate": SMALL.rate,
            "num_leaves": SMALL.leaves,
            "max_depth": SMALL.depth,
            "min_data_in_leaf": SMALL.min_leaf,
            "lambda_l2": SMALL.l2,
            "monotone_constraints": CONSTRAINTS,
            "seed": SMALL.seed,
            "verbose": -1,
        },
        lightgbm.Dataset(
            examples.features, examples.right, init_score=np.full(len(examples.right), baseline)
        ),
        num_boost_round=SMALL.trees,
    )
    raw = np.asarray(reference.predict(examples.features, raw_score=True)) + baseline
    found = BoostedTrees.load(file).probability(examples.features)
    assert np.allclose(found, 1 / (1 + np.exp(-raw)), atol=1e-3)


def test_the_loss_compares_the_candidates_of_a_phrase() -> None:
    """Wholly listwise, a phrase's candidates pull against each other; none right, none pulls."""

    class Data:
        def get_label(self) -> np.ndarray:
            return np.array([0.0, 1.0, 0.0, 0.0, 0.0])

    gradient, curve = mixed_loss(np.array([4, 4, 4, 9, 9]), 1.0)(np.zeros(5), Data())
    assert np.allclose(gradient, [1 / 3, -2 / 3, 1 / 3, 0, 0])
    assert (curve > 0).all()


def test_one_seed_gives_one_model() -> None:
    """Training twice on the same examples writes the same file."""
    assert train_trees(_examples(), SMALL, {}) == train_trees(_examples(), SMALL, {})


def test_a_model_for_other_features_is_refused(tmp_path: Path) -> None:
    """A file of another version, or no model at all, ends in one clear error that names the cure."""
    model = json.loads(MODEL.read_text())
    for broken in ({**model, "version": -1}, {**model, "features": ["dense"]}, {"version": 1}):
        file = tmp_path / "model.json"
        file.write_text(json.dumps(broken))
        with pytest.raises(ConfigError, match=r"reranking|Install"):
            BoostedTrees.load(file)


def test_the_shipped_model_prefers_the_nearer_of_two_codes() -> None:
    """All else being equal, the code whose phrase and prototype are nearer is the likelier one."""
    pool, total = _pool([11, 25], [0.9, 0.5])
    _, features = code_features(pool, total, _facts(30), most=10)
    features = np.hstack([features, np.zeros((2, len(JUDGED) - len(NAMES)), dtype=np.float32)])
    near, far = BoostedTrees.load().probability(features)
    assert 0 <= far < near <= 1


def test_each_code_is_judged_once_by_its_best_row() -> None:
    """A code of three rows is one candidate; the row with the largest sum speaks for it."""
    pool, total = _pool([7, 7, 7, 12], [0.2, 0.8, 0.5, 0.6])
    speakers, features = code_features(pool, total, _facts(20), most=10)
    assert speakers.tolist() == [1, 3]
    dense = features[:, NAMES.index("dense")]
    assert np.allclose(dense, [0.8, 0.6])
    assert np.allclose(features[0, NAMES.index("dense_second")], 0.5)
    assert np.allclose(features[0, NAMES.index("dense_mean3")], 0.5)


def test_only_the_best_codes_are_judged() -> None:
    """``most`` bounds the work, best sums first; equal sums go by the number of the code."""
    pool, total = _pool([30, 20, 10], [0.5, 0.5, 0.4])
    speakers, _ = code_features(pool, total, _facts(40), most=2)
    assert pool.codes[speakers].tolist() == [20, 30]


def test_a_text_is_judged_alike_whatever_texts_come_with_it() -> None:
    """Pools of several texts are judged at once, each as if it were alone; one without candidates is none."""
    first, second = _pool([7, 7, 12, 15], [0.2, 0.8, 0.6, 0.6]), _pool([3, 12, 12], [0.9, 0.1, 0.4], text=2)
    together = Pool(
        *(
            second[0].text_weights if name == "text_weights"
            else second[0].text_lengths if name == "text_lengths"
            else np.concatenate([getattr(first[0], name), getattr(second[0], name)])
            for name in (each.name for each in fields(Pool))
        )
    )  # fmt: skip
    speakers, features = code_features(together, np.concatenate([first[1], second[1]]), _facts(20), most=2)
    alone = [code_features(pool, total, _facts(20), most=2) for pool, total in (first, second)]
    assert speakers.tolist() == [*alone[0][0].tolist(), *(4 + place for place in alone[1][0].tolist())]
    assert np.array_equal(features, np.vstack([own for _, own in alone]))


@pytest.mark.parametrize("size", [5, 64, 1600, 1601, 13917])
def test_the_largest_values_are_found_in_blocks(size: int) -> None:
    """Exactly those that sorting all of them would give, whatever the size."""
    values = np.random.default_rng(size).random(size).astype(np.float32)
    for count in (1, 5):
        assert set(places_of_largest(values, count)) == set(np.argsort(-values)[:count])
    if size > 25:
        assert set(places_of_largest(values, 25)) == set(np.argsort(-values)[:25])
