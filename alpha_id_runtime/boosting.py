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
from alpha_id_runtime.evidence import NAMES as EVIDENCE
from alpha_id_runtime.features import NAMES, VERSION

if TYPE_CHECKING:
    import numpy.typing as npt

# One bit a leaf.
_KINDS = {16: np.uint16, 32: np.uint32, 64: np.uint64}
JUDGED = (*NAMES, *EVIDENCE)
"""What the trees look at, in order."""

MODEL = Path(__file__).parent / "tables" / "reranker.json"


@dataclass(frozen=True)
class BoostedTrees:
    """``trees`` as arrays (trees, nodes): feature (-1 = leaf), threshold, children, value.

    The root is node 0; a tree has 64 leaves at most.
    """

    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    baseline: float
    note: dict[str, Any]

    @classmethod
    def load(cls, path: Path = MODEL) -> BoostedTrees:
        """Read a model.

        Raises:
            ConfigError: it is not there, damaged, or made for other features.
        """
        try:
            plain = json.loads(path.read_bytes())
            if plain["version"] != VERSION or tuple(plain["features"]) != JUDGED:
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
                plain["note"],
            )
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"The reranker's model {path} cannot be read ({type(error).__name__}). "
                'Install alpha-id anew, or set reranker = "fusion".'
            ) from error

    @cached_property
    def _scorer(self) -> _Scorer:
        return _Scorer.of(self)

    def probability(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return the probability of each row of ``features`` (n, features), shape (n,).

        A row's is the same to the last bit whatever rows come with it.
        """
        raw = self.baseline + self._scorer.sums(features)
        return np.asarray(1 / (1 + np.exp(-raw)), dtype=np.float64)


@dataclass(frozen=True)
class _Scorer:
    """The same trees, laid out so that none is walked.

    Each tree's leaves are the bits of a number, left to right. A condition that holds ("the feature is above
    its threshold") rules out the leaves to its left; the lowest bit left over all conditions is the leaf.
    ``tables[f][k]``, (trees,), is what is left where feature f is above k of its ``thresholds[f]``, which
    ascend. ``values``, (trees * leaves,). Source: Lucchese et al. 2015, "QuickScorer".
    """

    thresholds: tuple[npt.NDArray[np.float32], ...]
    tables: tuple[npt.NDArray[Any], ...]
    values: npt.NDArray[np.float32]
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, trees: BoostedTrees) -> _Scorer:
        count = len(trees.feature)
        leaves: list[list[float]] = [[] for _ in range(count)]
        conditions: list[list[tuple[float, int, int]]] = [[] for _ in JUDGED]

        def visit(tree: int, node: int) -> None:
            feature = int(trees.feature[tree, node])
            if feature < 0:
                leaves[tree].append(float(trees.value[tree, node]))
                return
            first = len(leaves[tree])
            visit(tree, int(trees.left[tree, node]))
            ruled_out = (1 << len(leaves[tree])) - (1 << first)
            conditions[feature].append((float(trees.threshold[tree, node]), tree, ruled_out))
            visit(tree, int(trees.right[tree, node]))

        for tree in range(count):
            visit(tree, 0)
        most = max(map(len, leaves))
        bits, kind = next((bits, kind) for bits, kind in _KINDS.items() if most <= bits)
        every = (1 << bits) - 1
        tables = []
        for found in conditions:
            found.sort()
            table = np.full((len(found) + 1, count), every, dtype=kind)
            for place, (_, tree, ruled_out) in enumerate(found, 1):
                table[place] = table[place - 1]
                table[place, tree] &= every ^ ruled_out
            tables.append(table)
        values = np.zeros((count, most), dtype=np.float32)
        for row, own in zip(values, leaves, strict=True):
            row[: len(own)] = own
        return cls(
            tuple(np.array([each[0] for each in found], dtype=np.float32) for found in conditions),
            tuple(tables),
            values.reshape(-1),
            np.arange(count) * most,
        )

    def sums(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return the sum of the trees' values for each row of ``features``."""
        left = np.full((len(features), len(self.starts)), -1, dtype=np.int64).astype(self.tables[0].dtype)
        for thresholds, table, column in zip(self.thresholds, self.tables, features.T, strict=True):
            if len(thresholds):
                left &= table[np.searchsorted(thresholds, column)]
        lowest = np.bitwise_count((left & -left) - left.dtype.type(1))
        return np.asarray(self.values.take(lowest + self.starts).sum(axis=1, dtype=np.float64))
