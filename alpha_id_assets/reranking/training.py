"""Boosted trees from examples, and their file form. scikit-learn trains; the runtime needs none of it.

Holds: the fit, the recalibration on phrases the trees did not see, the conversion. Refuses: drawing examples.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alpha_id_runtime.features import NAMES, VERSION

if TYPE_CHECKING:
    from alpha_id_assets.reranking.examples import Examples

_DIGITS = 6


@dataclass(frozen=True)
class BoostingSettings:
    """Measured on held-out calibration phrases; small trees, since 30,000 phrases hold no more."""

    trees: int = 400
    rate: float = 0.05
    leaves: int = 12
    min_leaf: int = 60
    l2: float = 5.0
    seed: int = 0


def train_trees(examples: Examples, settings: BoostingSettings, note: dict[str, Any]) -> dict[str, Any]:
    """Return the trained model as written to ``reranker.json``. Deterministic for a seed."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 -- only here

    model = HistGradientBoostingClassifier(
        max_iter=settings.trees,
        learning_rate=settings.rate,
        max_leaf_nodes=settings.leaves,
        min_samples_leaf=settings.min_leaf,
        l2_regularization=settings.l2,
        early_stopping=False,
        random_state=settings.seed,
    ).fit(examples.features, examples.right)
    trees = [predictor[0].nodes for predictor in model._predictors]  # noqa: SLF001 -- the only way to the trees
    size = max(len(nodes) for nodes in trees)
    plain: dict[str, Any] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    for nodes in trees:
        inner = nodes["is_leaf"] == 0
        columns = {
            "feature": np.where(inner, nodes["feature_idx"].astype(int), -1),
            "threshold": np.where(inner, nodes["num_threshold"], 0.0),
            "left": nodes["left"].astype(int),
            "right": nodes["right"].astype(int),
            "value": np.where(inner, 0.0, nodes["value"]),
        }
        for name, column in columns.items():
            fill = -1 if name == "feature" else 0
            values = [*column.tolist(), *[fill] * (size - len(nodes))]
            plain[name].append([round(v, _DIGITS) if isinstance(v, float) else v for v in values])
    return {
        "version": VERSION,
        "features": list(NAMES),
        "depth": int(max(nodes["depth"].max() for nodes in trees)),
        "baseline": float(np.ravel(model._baseline_prediction)[0]),  # noqa: SLF001 -- as above
        "note": {**note, "settings": asdict(settings), "examples": len(examples.right)},
        **plain,
    }
