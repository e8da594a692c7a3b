"""Gradient-boosted trees, applied: features to probability by numpy alone.

Holds: the model's file form and its evaluation. Refuses: training (the builder does) and features.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alpha_id_runtime.errors import ConfigError
from alpha_id_runtime.features import NAMES, VERSION

if TYPE_CHECKING:
    import numpy.typing as npt

MODEL = Path(__file__).parent / "tables" / "reranker.json"


@dataclass(frozen=True)
class BoostedTrees:
    """``trees`` of equal size as arrays (trees, nodes): feature (-1 = leaf), threshold, children, value."""

    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    baseline: float
    depth: int
    note: dict[str, Any]

    @classmethod
    def load(cls, path: Path = MODEL) -> BoostedTrees:
        """Read a model.

        Raises:
            ConfigError: it is not there, damaged, or made for other features.
        """
        try:
            plain = json.loads(path.read_bytes())
            if plain["version"] != VERSION or tuple(plain["features"]) != NAMES:
                raise ConfigError(
                    f"{path} was trained for other features (version {plain['version']}, this is {VERSION}). "
                    "Train it anew with: python -m alpha_id_assets.reranking"
                )
            return cls(
                np.array(plain["feature"], dtype=np.int32),
                np.array(plain["threshold"], dtype=np.float32),
                np.array(plain["left"], dtype=np.int32),
                np.array(plain["right"], dtype=np.int32),
                np.array(plain["value"], dtype=np.float32),
                float(plain["baseline"]),
                int(plain["depth"]),
                plain["note"],
            )
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"The reranker's model {path} cannot be read ({type(error).__name__}). "
                'Install alpha-id anew, or set reranker = "fusion".'
            ) from error

    @cached_property
    def _flat(self) -> tuple[npt.NDArray[Any], ...]:
        """Feature, threshold, (left, right) and value of all nodes in one row; a leaf is its own child."""
        own = np.arange(self.feature.size).reshape(self.feature.shape)
        roots = np.arange(len(self.feature))[:, None] * self.feature.shape[1]
        is_leaf = self.feature < 0
        children = np.stack(
            [np.where(is_leaf, own, self.left + roots), np.where(is_leaf, own, self.right + roots)], axis=-1
        )
        feature = np.where(is_leaf, 0, self.feature).astype(np.int64)
        return feature.reshape(-1), self.threshold.reshape(-1), children.reshape(-1), self.value.reshape(-1)

    def probability(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return the probability of each row of ``features`` (n, features), shape (n,)."""
        feature, threshold, children, value = self._flat
        values = np.ascontiguousarray(features).reshape(-1)
        rows = np.arange(len(features)) * features.shape[1]
        roots = np.arange(len(self.feature)) * self.feature.shape[1]
        node = np.broadcast_to(roots[:, None], (len(roots), len(rows)))
        for _ in range(self.depth):
            goes_right = values.take(feature.take(node) + rows) > threshold.take(node)
            node = children.take(2 * node + goes_right)
        raw = self.baseline + value.take(node).sum(axis=0, dtype=np.float64)
        return np.asarray(1 / (1 + np.exp(-raw)), dtype=np.float64)
