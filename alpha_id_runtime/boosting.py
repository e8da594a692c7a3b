"""Gradient-boosted trees, applied: features to probability by numpy alone.

Holds: the model's file form and its evaluation. Refuses: training (the builder does) and features.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
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

    def probability(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return the probability of each row of ``features`` (n, features), shape (n,)."""
        trees = np.arange(len(self.feature))[:, None]
        node = np.zeros((len(self.feature), len(features)), dtype=np.int32)
        rows = np.arange(len(features))[None, :]
        for _ in range(self.depth):
            feature = self.feature[trees, node]
            goes_left = features[rows, feature] <= self.threshold[trees, node]
            child = np.where(goes_left, self.left[trees, node], self.right[trees, node])
            node = np.where(feature < 0, node, child)
        raw = self.baseline + self.value[trees, node].sum(axis=0, dtype=np.float64)
        return np.asarray(1 / (1 + np.exp(-raw)), dtype=np.float64)
