"""The steps that train the built-in encoder, and a second one that never saw the evaluation entries.

Holds: what the assets ``encoder`` and ``encoder_holdout`` do. Refuses: Dagster, printing, and the training
itself (``encoding``). Nothing here can cost money or leave the house.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from alpha_id_assets.building import Step
from alpha_id_assets.encoding.holdout import Holdout, evaluate_holdout
from alpha_id_assets.encoding.settings import TrainingSettings, training_fingerprint
from alpha_id_assets.tables import read_note, read_table
from alpha_id_runtime.encoder import Encoder, Prototypes
from alpha_id_runtime.errors import AlphaIdError, ArtefactsIncompatibleError
from alpha_id_runtime.evaluation.cases import draw_cases, held_out_rows
from alpha_id_runtime.files import write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from alpha_id_runtime.layout import StorageLayout

    Progress = Callable[[int, int, float], None]

HELD_OUT = 1500
"""Evaluation entries that ``encoder_holdout`` is trained without."""


def make_encoder(
    storage: StorageLayout, *, settings: TrainingSettings | None = None, progress: Progress | None = None
) -> Step:
    """Train the built-in encoder from ``corpus_phrases``, unless the one there is of this very input.

    Args:
        storage: where the corpus lies and the encoder goes.
        settings: the recipe; the measured one by default.
        progress: told (epochs done, epochs, mean loss).

    Raises:
        ArtefactsMissingError: there is no corpus.
    """
    started = time.perf_counter()
    recipe = settings or TrainingSettings()
    corpus_hash = str(read_note(storage, storage.corpus_phrases)["hash"])
    phrases = read_table(storage.corpus_phrases)
    texts, codes = phrases["text"].to_list(), phrases["icd_code"].to_list()
    fingerprint = training_fingerprint(texts, codes, recipe)
    is_new = not _has_encoder(storage, fingerprint)
    if is_new:
        # The training pulls scipy; a build that trains nothing does without.
        from alpha_id_assets.encoding.training import train  # noqa: PLC0415

        train(texts, codes, settings=recipe, progress=progress).save(storage.encoder)
    encoder, prototypes = Encoder.load(storage.encoder), Prototypes.load(storage.encoder)
    counts = {
        "phrases": len(texts),
        "codes": len(prototypes.codes),
        "features": len(encoder.vocabulary),
        "dimension": encoder.dimension,
        "trained": int(is_new),
    }
    note = {
        "corpus_hash": corpus_hash,
        "fingerprint": fingerprint,
        "hash": fingerprint,
        "counts": counts,
        "settings": asdict(recipe),
    }
    write_json(storage.note_of(storage.encoder), note)
    return _step("encoder", started, counts, note)


def make_encoder_holdout(
    storage: StorageLayout,
    *,
    seed: int,
    entries: int = HELD_OUT,
    settings: TrainingSettings | None = None,
    progress: Progress | None = None,
) -> Step:
    """Train an encoder without the evaluation entries drawn by ``seed`` and their twins; report its recall.

    The entries are those that the evaluation draws as ``held_out`` by the same seed, so that an evaluation
    of this encoder asks nothing that it has seen.

    Raises:
        ArtefactsMissingError: there is no corpus.
        ArtefactsIncompatibleError: the corpus is too small to hold entries out.
    """
    started = time.perf_counter()
    corpus_hash = str(read_note(storage, storage.corpus_phrases)["hash"])
    phrases = _with_tags(storage)
    cases = draw_cases(_Columns(phrases), "held_out", entries, seed)
    if not cases:
        raise ArtefactsIncompatibleError(
            "No code of the corpus keeps another phrase, so nothing can be held out. Put a whole edition "
            "into the data folder."
        )
    kept = np.ones(phrases.height, dtype=bool)
    kept[sorted(held_out_rows(cases))] = False
    asked = np.array([case.source_row for case in cases], dtype=np.int64)
    from alpha_id_assets.encoding.training import train  # noqa: PLC0415 -- scipy, as above

    seen = phrases.filter(kept)
    trained = train(
        seen["text"].to_list(),
        seen["icd_code"].to_list(),
        settings=settings or TrainingSettings(),
        progress=progress,
    )
    trained.save(storage.encoder_holdout)
    recall = evaluate_holdout(trained, phrases, Holdout(asked, kept, seed)).as_metadata()
    counts = {"held_out": len(cases), "twins": int((~kept).sum()) - len(cases), "trained_on": seen.height}
    note = {
        "corpus_hash": corpus_hash,
        "fingerprint": trained.fingerprint,
        "hash": trained.fingerprint,
        "seed": seed,
        "counts": counts,
        "recall": recall,
    }
    write_json(storage.note_of(storage.encoder_holdout), note)
    return _step("encoder_holdout", started, counts, note)


def _has_encoder(storage: StorageLayout, fingerprint: str) -> bool:
    try:
        found = {
            Encoder.load(storage.encoder).fingerprint,
            Prototypes.load(storage.encoder).fingerprint,
        }
    except AlphaIdError:
        return False
    return found == {fingerprint}


def _with_tags(storage: StorageLayout) -> pl.DataFrame:
    """Return ``corpus_phrases`` with the columns ``billable`` (in at least one sector) and ``chapter``."""
    codes = read_table(storage.icd_meta).select(
        pl.col("code").alias("icd_code"),
        "chapter",
        (
            pl.col("terminal")
            & (pl.col("content") == "J")
            & ((pl.col("para295") != "V") | (pl.col("para301") != "V"))
        )
        .fill_null(value=False)
        .alias("billable"),
    )
    phrases = read_table(storage.corpus_phrases)
    return phrases.join(codes, on="icd_code", how="left", maintain_order="left")


class _Columns:
    """A frame as the columns that cases are drawn from."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.text: list[str] = frame["text"].to_list()
        self.norm: list[str] = frame["norm"].to_list()
        self.origin: list[str] = frame["origin"].to_list()
        self.valid: list[bool] = frame["valid"].to_list()
        self.icd_code: list[str] = frame["icd_code"].to_list()
        self.billable: list[bool] = frame["billable"].to_list()
        self.chapter: list[str] = frame["chapter"].to_list()


def _step(name: str, started: float, counts: dict[str, int], details: dict[str, Any]) -> Step:
    return Step(name, counts, round(time.perf_counter() - started, 3), details=details)
