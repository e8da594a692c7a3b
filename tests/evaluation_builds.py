"""A build of the sample with vectors, quickly trained, for the tests of the evaluation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from alpha_id_assets.building import build_lexical, make_published
from alpha_id_assets.embedding import make_embeddings, make_lance
from alpha_id_assets.encoder_steps import make_encoder
from alpha_id_assets.encoding.settings import TrainingSettings
from alpha_id_runtime.config import Config
from alpha_id_runtime.layout import StorageLayout

DATA = Path(__file__).resolve().parents[1] / "data"
QUICK = replace(TrainingSettings(), dimension=32, epochs=2)


def build_with_vectors(root: Path) -> Config:
    """Build the sample that ships below ``root``, with vectors, and return its configuration for mode A."""
    config = Config(data=DATA, storage=root / "storage", mode="a")
    storage = StorageLayout(config.storage)
    build_lexical(storage, config, lambda _: None)
    make_encoder(storage, settings=QUICK)
    make_embeddings(storage, config)
    make_lance(storage, config)
    make_published(storage, config)
    return config


def gold_table(root: Path) -> Path:
    """Write a small TSV of phrases and codes, as from outside, and return it."""
    file = root / "outside.tsv"
    file.write_text("Zuckerkrankheit Typ 2 bei Frau Geheim\tE11.90\nASS 100 1-0-0\t-\n", encoding="utf-8")
    return file
