"""What all measurements share: the data, a build of it in a storage of its own, the held-out entries.

Holds: the draw and the opened build. Refuses: the published build of the checkout; it is never touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from alpha_id_assets.building import select_sources
from alpha_id_assets.encoding.holdout import draw_holdout
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.pipeline import Suggester
from alpha_id_runtime.text import twin_key

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_assets.sources.releases import Selection
    from alpha_id_runtime.config import Config


@dataclass(frozen=True)
class Size:
    """How much is measured: rounds of each comparison, entries drawn."""

    held_out: int = 1500
    parse_rounds: int = 5
    index_rounds: int = 3
    cold_rounds: int = 9


QUICK = Size(held_out=40, parse_rounds=2, index_rounds=1, cold_rounds=2)


@dataclass(frozen=True)
class HeldOut:
    """One entry that is asked: its text and code, and the rows that must not answer (itself, its twins)."""

    row: int
    text: str
    code: str
    excluded: frozenset[int]


@dataclass(frozen=True)
class Setting:
    """One run of the bench. ``config.storage`` is a temporary folder that the run may fill.

    ``vectors``: a storage with a build for mode A, which is read; None leaves mode A out.
    """

    config: Config
    size: Size
    seed: int
    vectors: Path | None = None

    @cached_property
    def sources(self) -> Selection:
        """The two files the build is made of."""
        return select_sources(self.config)

    @cached_property
    def storage(self) -> StorageLayout:
        """The run's own storage."""
        return StorageLayout(self.config.storage)

    @cached_property
    def phrases(self) -> pl.DataFrame:
        """The corpus of the build, in index order."""
        return pl.read_parquet(self.storage.corpus_phrases)

    @cached_property
    def suggester(self) -> Suggester:
        """The query side on the build, opened once."""
        return Suggester.open(self.config)

    @cached_property
    def held_out(self) -> tuple[HeldOut, ...]:
        """Valid Alpha-ID entries drawn by seed, each with its twins of any origin and code.

        An entry is drawn only if its code keeps another phrase when all drawn entries and twins are gone.
        """
        texts, norms, codes = (self.phrases[name].to_list() for name in ("text", "norm", "icd_code"))
        rows = draw_holdout(self.phrases, n=self.size.held_out, seed=self.seed).rows.tolist()
        twins: dict[str, list[int]] = {twin_key(norms[row]): [] for row in rows}
        for row, norm in enumerate(norms):
            if (key := twin_key(norm)) in twins:
                twins[key].append(row)
        return tuple(
            HeldOut(row, texts[row], codes[row], frozenset(twins[twin_key(norms[row])])) for row in rows
        )
