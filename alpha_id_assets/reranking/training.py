"""Boosted trees from examples, and their file form. LightGBM trains; the runtime needs none of it.

Holds: the loss, the fit, the conversion. Refuses: drawing examples.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alpha_id_runtime.boosting import JUDGED
from alpha_id_runtime.features import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from alpha_id_assets.reranking.examples import Examples

    Floats = npt.NDArray[np.float64]
    Loss = Callable[[Floats, Any], tuple[Floats, Floats]]

_DIGITS = 8
# More of these is never worse, more of those never better, so on lines unlike all examples, too.
_BETTER = ("dense", "prototype", "dice", "lexical", "dense_gap", "prototype_gap", "dice_gap", "lexical_gap",
           "union_covered", "union_words", "union_gap", "weakest_word")  # fmt: skip
_WORSE = ("words_open", "worst_open", "new_words", "new_words_gap", "unheard_word", "unheard_words")
CONSTRAINTS = [(name in _BETTER) - (name in _WORSE) for name in JUDGED]
"""Of each feature: 1 where more of it may only raise a score, -1 where it may only lower it."""

_FOLDS = 3
_STEPS = 25
_LEAST_CURVE = 1e-6


@dataclass(frozen=True)
class BoostingSettings:
    """Measured on calibration phrases kept apart; small trees: 23,000 phrases hold no more.

    ``listwise``: share of the loss that compares the candidates of a phrase with each other (cross-entropy of
    the right one against all); the rest judges each by itself, so that the result stays a probability.
    ``used``: share of the features that a tree may look at.
    """

    trees: int = 600
    rate: float = 0.06
    leaves: int = 15
    depth: int = 8
    min_leaf: int = 150
    l2: float = 5.0
    listwise: float = 0.9
    used: float = 1.0
    seed: int = 0


def train_trees(examples: Examples, settings: BoostingSettings, note: dict[str, Any]) -> dict[str, Any]:
    """Return the trained model as written to ``reranker.json``. Deterministic for a seed.

    The listwise part of the loss overstates: slope and intercept of the scores are fitted to the best code of
    each phrase in a third that trees of the other two thirds did not see. They change no order.
    """
    apart = examples.phrase % _FOLDS == 0
    slope, intercept = 1.0, 0.0
    if settings.listwise and apart.any() and not apart.all():
        booster, baseline = _fitted(examples.part(~apart), settings)
        tried = examples.part(apart)
        raw = np.asarray(booster.predict(tried.features, raw_score=True)) + baseline
        slope, intercept = calibrated(*_best(raw, tried))
    booster, baseline = _fitted(examples, settings)
    trees = [_nodes(each["tree_structure"], slope) for each in booster.dump_model()["tree_info"]]
    size = max(len(nodes) for nodes in trees)
    filled = [[*nodes, *[_LEAF] * (size - len(nodes))] for nodes in trees]
    plain = {
        name: [[node[column] for node in nodes] for nodes in filled]
        for column, name in enumerate(("feature", "threshold", "left", "right", "value"))
    }
    return {
        "version": VERSION,
        "features": list(JUDGED),
        "baseline": slope * baseline + intercept,
        "note": {
            **note,
            "settings": asdict(settings),
            "examples": len(examples.right),
            "slope": round(slope, 4),
            "intercept": round(intercept, 4),
        },
        **plain,
    }


def calibrated(scores: Floats, right: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return slope and intercept: with them the logistic of a score is the share of right ones."""
    inputs = np.column_stack([scores, np.ones(len(scores))])
    weights = np.array([1.0, 0.0])
    for _ in range(_STEPS):
        said = 1 / (1 + np.exp(-inputs @ weights))
        curve = inputs.T @ (inputs * (said * (1 - said))[:, None]) + _LEAST_CURVE * np.eye(2)
        weights = weights - np.linalg.solve(curve, inputs.T @ (said - right))
    return max(float(weights[0]), _LEAST_CURVE), float(weights[1])


def _best(raw: Floats, examples: Examples) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the score of each phrase's best candidate, and whether it is right."""
    order = np.lexsort((-raw, examples.phrase))
    first = order[np.flatnonzero(np.diff(examples.phrase[order], prepend=-1))]
    return raw[first], examples.right[first]


def _fitted(examples: Examples, settings: BoostingSettings) -> tuple[Any, float]:
    """Return the booster and what its scores are added to."""
    import lightgbm  # noqa: PLC0415 -- only here

    share = float(examples.right.mean())
    baseline = float(np.log(share / (1 - share)))
    parameters = {
        "objective": mixed_loss(examples.phrase, settings.listwise),
        "learning_rate": settings.rate,
        "num_leaves": settings.leaves,
        "max_depth": settings.depth,
        "min_data_in_leaf": settings.min_leaf,
        "lambda_l2": settings.l2,
        "feature_fraction": settings.used,
        "monotone_constraints": CONSTRAINTS,
        "seed": settings.seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbose": -1,
    }
    data = lightgbm.Dataset(
        examples.features, examples.right.astype(float), init_score=np.full(len(examples.right), baseline)
    )
    return lightgbm.train(parameters, data, num_boost_round=settings.trees), baseline


def mixed_loss(phrase: npt.NDArray[np.int64], listwise: float) -> Loss:
    """Return the gradient and curvature of the loss, as LightGBM asks for them.

    ``phrase``: of each example; those of one phrase stand together. Where none of them is right, they are
    judged each by itself alone.
    """
    starts = np.flatnonzero(np.diff(phrase, prepend=phrase[0] - 1))
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(phrase))))

    def loss(scores: Floats, data: Any) -> tuple[Floats, Floats]:
        right = data.get_label()
        alone = 1 / (1 + np.exp(-scores))
        raised = np.exp(scores - np.maximum.reduceat(scores, starts)[group])
        among = raised / np.add.reduceat(raised, starts)[group]
        rights = np.add.reduceat(right, starts)[group]
        weight = np.where(rights > 0, listwise, 0.0)
        gradient = (1 - listwise) * (alone - right) + weight * (among - right / np.maximum(rights, 1))
        curve = (1 - listwise) * alone * (1 - alone) + weight * among * (1 - among)
        return gradient, np.maximum(curve, _LEAST_CURVE)

    return loss


_Node = tuple[int, float, int, int, float]
_LEAF: _Node = (-1, 0.0, 0, 0, 0.0)


def _nodes(root: dict[str, Any], slope: float) -> list[_Node]:
    """Return a tree as nodes, the root first: feature (-1 = leaf), threshold, children, value * slope."""
    nodes: list[_Node] = []

    def visit(node: dict[str, Any]) -> int:
        place = len(nodes)
        if "leaf_value" in node:
            nodes.append((*_LEAF[:4], round(slope * float(node["leaf_value"]), _DIGITS)))
            return place
        nodes.append(_LEAF)
        left, right = visit(node["left_child"]), visit(node["right_child"])
        threshold = float(f"{node['threshold']:.{_DIGITS}g}")
        nodes[place] = (int(node["split_feature"]), threshold, left, right, 0.0)
        return place

    visit(root)
    return nodes
