"""Mode A for held-out cases: vectors by an encoder that saw neither the entries asked nor their twins.

Holds: the training without them, its cache, and the exact index in memory. Refuses: judging, Dagster, and
every look at what is asked beyond which rows it comes from.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_assets.encoding.settings import TrainingSettings, training_fingerprint
from alpha_id_runtime.encoder import Encoder, Prototypes
from alpha_id_runtime.errors import AlphaIdError, ArtefactsIncompatibleError, UsageError
from alpha_id_runtime.evaluation.cases import held_out_rows
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.provider import BuiltinProvider
from alpha_id_runtime.retrieval.dense import VECTORS, DenseIndex, DenseNote
from alpha_id_runtime.semantic import Semantic, open_hub

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.evaluation.cases import Case

    Vectors = npt.NDArray[np.float32]
    Progress = Callable[[str], None]

KEPT_ENCODERS = 5
"""Cached encoders; those used least lately go first."""


def holdout_semantic(
    build: Build,
    cases: Iterable[Case],
    config: Config,
    *,
    settings: TrainingSettings | None = None,
    progress: Progress | None = None,
) -> Semantic:
    """Return vectors of all phrases of ``build`` that nothing fitted to the held-out entries has touched.

    With the built-in encoder a second one is trained without the rows that ``cases`` exclude, all cases of a
    run together; it is kept under ``config.storage``, so that the same seed and corpus train once. A hub's
    model was not fitted to the corpus: its published vectors serve, with prototypes over the other rows.

    Args:
        build: the published build.
        cases: their ``excluded_rows`` are what must not be seen.
        config: storage and provider.
        settings: the recipe; the measured one by default.
        progress: told what takes long, in a line.

    Raises:
        UsageError: nothing is held out, or nothing would be left to train on.
        ArtefactsMissingError: with a hub, the build holds no vectors.
        StorageError: the encoder cannot be written.
    """
    gone = held_out_rows(cases)
    if not gone:
        raise UsageError("No case holds anything out: the corpus is too small, or --cases is 0.")
    tell = progress or (lambda _: None)
    if config.provider == "hub":
        return _of_hub(build, gone, config)
    texts, codes = training_rows(build, gone)
    encoder, prototypes = _trained(
        StorageLayout(config.storage), texts, codes, settings or TrainingSettings(), tell
    )
    tell(f"encoding {len(build.phrases):,} phrases without the held-out entries' encoder having seen them")
    vectors = encoder.encode(build.phrases.column("text"))
    return Semantic(
        BuiltinProvider(encoder),
        exact_index(vectors, prototypes.matrix, list(prototypes.codes), encoder.fingerprint),
    )


def training_rows(build: Build, gone: Collection[int]) -> tuple[list[str], list[str]]:
    """Return texts and codes of all rows but ``gone``, in row order: what the encoder is trained on.

    Raises:
        UsageError: nothing is left.
    """
    kept = [row for row in range(len(build.phrases)) if row not in gone]
    if not kept:
        raise UsageError("All phrases are held out: nothing is left to train on. Ask for fewer cases.")
    texts, codes = build.phrases.column("text"), build.phrases.column("icd_code")
    return [texts[row] for row in kept], [codes[row] for row in kept]


def exact_index(vectors: Vectors, prototypes: Vectors, codes: list[str], fingerprint: str) -> DenseIndex:
    """Return a vector index in memory that compares every vector: (rows, dimension), (codes, dimension)."""
    rows, dimension = vectors.shape
    note = DenseNote(fingerprint, dimension, rows, exact=True, recall=1.0, nprobes=1, ef=0, refine_factor=1)
    return DenseIndex(note, None, vectors, prototypes, codes)


def _of_hub(build: Build, gone: Collection[int], config: Config) -> Semantic:
    from alpha_id_assets.vector_index import mean_prototypes  # noqa: PLC0415 -- LanceDB, a second

    fingerprint = DenseIndex.open(build.layout.lance).note.fingerprint
    every = np.load(build.layout.lance / VECTORS).astype(np.float32)
    kept = np.array([row for row in range(len(build.phrases)) if row not in gone], dtype=np.int64)
    names = build.phrases.column("icd_code")
    codes, prototypes = mean_prototypes(every[kept], [names[row] for row in kept])
    return Semantic(open_hub(config), exact_index(every, prototypes, codes, fingerprint))


def _trained(
    storage: StorageLayout,
    texts: Sequence[str],
    codes: Sequence[str],
    settings: TrainingSettings,
    tell: Progress,
) -> tuple[Encoder, Prototypes]:
    """Return the encoder of this input, trained now unless one lies there."""
    fingerprint = training_fingerprint(texts, codes, settings)
    own = storage.held_out_encoders / fingerprint
    # The asset encoder_holdout is of the same input where seed and number of cases are its own.
    for folder in (own, storage.encoder_holdout):
        try:
            found = Encoder.load(folder), Prototypes.load(folder)
        except AlphaIdError:
            continue
        if found[0].fingerprint == found[1].fingerprint == fingerprint:
            if folder == own:
                os.utime(own)
            tell(f"held-out encoder: the one that lies there ({fingerprint})")
            return found
    # The training pulls scipy; a run that finds its encoder does without.
    from alpha_id_assets.encoding.training import train  # noqa: PLC0415

    started = time.perf_counter()
    trained = train(
        texts,
        codes,
        settings=settings,
        progress=lambda done, of, _: tell(
            f"held-out encoder: epoch {done} of {of}, {time.perf_counter() - started:.0f} s"
        ),
    )
    trained.save(own)
    _prune(storage.held_out_encoders, own)
    if Encoder.load(own).fingerprint != fingerprint:
        raise ArtefactsIncompatibleError(
            f"{own} changed while it was written: another evaluation runs on this storage. Run it again."
        )
    return trained.encoder, trained.code_prototypes


def _prune(folder: Path, newest: Path) -> None:
    others = [entry for entry in folder.iterdir() if entry.is_dir() and entry != newest]
    others.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
    for entry in others[KEPT_ENCODERS - 1 :]:
        shutil.rmtree(entry, ignore_errors=True)
