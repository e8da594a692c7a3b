"""The sample: a smoke test of the configured provider on a few phrases, and what the full run would take.

Holds: the asset ``embeddings_sample`` as a function over ``storage/``. Refuses: more than the gate allows a
sample (a thousand texts of one fingerprint, ever), and other texts than those of the corpus.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_assets.building import Step
from alpha_id_assets.corpus_vectors import Target, find_target, open_provider, read_corpus_texts, sample_gate
from alpha_id_assets.gate import (
    LedgerWatch,
    SampleReport,
    estimate,
    read_sample_report,
    write_sample_report,
)
from alpha_id_assets.ledger import Ledger
from alpha_id_assets.tables import staging_folder
from alpha_id_assets.vectors import VectorCache, embed_missing
from alpha_id_runtime.errors import AlphaIdError, ArtefactsIncompatibleError, ProviderError, UsageError
from alpha_id_runtime.hub_answers import scale_of
from alpha_id_runtime.retrieval.dense import DenseIndex
from alpha_id_runtime.semantic import open_hub

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from alpha_id_assets.corpus_vectors import CorpusTexts
    from alpha_id_assets.gate import Estimate
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.layout import StorageLayout
    from alpha_id_runtime.provider import EmbeddingProvider

    Vectors = NDArray[np.float32]

SAMPLE_SIZE = 50
SAMPLE_SEED = 20250117
EXAMPLES = 3
_NEIGHBOURS = 3
_NORM_TOLERANCE = 1e-3
_SAME = 0.999  # cosine of a text sent twice; servers round differently by batch


@dataclass
class _Sample:
    """What is sampled, and what it showed so far: figures by name, and example answers."""

    storage: StorageLayout
    target: Target
    corpus: CorpusTexts
    cache: VectorCache
    drawn: list[str]
    sent: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def make_embeddings_sample(
    storage: StorageLayout, config: Config, *, size: int = SAMPLE_SIZE, seed: int = SAMPLE_SEED
) -> Step:
    """Embed ``size`` phrases drawn by ``seed``, check all that a full run relies on, estimate the full run.

    Sent are the phrases that are not in the cache, and one of them anew where all are: so the provider has
    answered whenever this succeeds. The report is written either way; one that failed opens no gate.

    Raises:
        UsageError: a sample of nothing.
        GateError: samples have sent all that they may.
        ProviderError: no valid answer.
        ArtefactsIncompatibleError: an answer that does not hold what it must.
    """
    started = time.perf_counter()
    target, corpus = find_target(storage, config), read_corpus_texts(storage)
    if size < 1 or not corpus.by_hash:
        raise UsageError(
            f"A sample of {size} phrases out of {len(corpus.by_hash)} shows nothing: take one or more."
        )
    # A draw, no secret.
    drawn = random.Random(seed).sample(sorted(corpus.by_hash), min(size, len(corpus.by_hash)))  # noqa: S311
    sample = _Sample(storage, target, corpus, VectorCache(storage.vectors), drawn)
    try:
        with open_provider(storage, config) as provider:
            _embed(sample, provider)
            _check_vectors(sample, provider.dimension)
        _ask_small_index(sample)
        if config.reranker == "hub":
            _check_rerank(sample, config)
    except AlphaIdError as error:
        _write_report(sample, problem=str(error))
        raise
    full = _write_report(sample, problem=None)
    counts = {
        "phrases": len(drawn),
        "sent": sample.sent,
        "full_phrases": full.phrases,
        "full_cached": full.cached,
        "full_missing": full.missing,
        "full_tokens": full.tokens,
    }
    details = {
        "fingerprint": target.fingerprint,
        "corpus_hash": target.corpus_hash,
        "costs_money": target.costs_money,
        "euros": full.euros,
        "checks": sample.values,
        "examples": sample.examples,
    }
    warnings = (*sample.warnings, *sample.cache.warnings)
    return Step("embeddings_sample", counts, round(time.perf_counter() - started, 3), warnings, details)


def renew_sample_estimate(storage: StorageLayout, config: Config) -> bool:
    """Write what is left to embed into the sample report, where one that passed is of this very target.

    Sends nothing. Returns False where a sample is to be run first.

    Raises:
        GateError: the report is damaged.
    """
    target = find_target(storage, config)
    report = read_sample_report(storage.gate)
    if report is None or not report.passed:
        return False
    if (report.fingerprint, report.corpus_hash) != (target.fingerprint, target.corpus_hash):
        return False
    by_hash = read_corpus_texts(storage).by_hash
    missing = VectorCache(storage.vectors).missing(target.fingerprint, by_hash)
    write_sample_report(storage.gate, replace(report, estimate=estimate(by_hash, missing, target.pricing)))
    return True


def _embed(sample: _Sample, provider: EmbeddingProvider) -> None:
    """Embed what of the sample is not in the cache; where all is, send one phrase anew and compare."""
    check, ledger = sample_gate(sample.storage, sample.target), Ledger(sample.storage.gate)
    texts = {key: sample.corpus.by_hash[key] for key in sample.drawn}
    started = time.perf_counter()
    for partition in sorted({key[0] for key in sample.drawn}):
        report = embed_missing(sample.cache, provider, texts, partition, gate_check=check, ledger=ledger)
        sample.sent += report.embedded
    if not sample.sent:
        first = sample.drawn[0]
        watch = _watch(sample.storage, [texts[first]], sample.target)
        [(_, again)] = provider.embed_batches([texts[first]], watch=watch)
        sample.sent += 1
        _check_same(sample.cache.read(sample.target.fingerprint, [first]), again)
    sample.values["seconds_to_embed"] = round(time.perf_counter() - started, 3)


def _watch(storage: StorageLayout, texts: Sequence[str], target: Target) -> LedgerWatch | None:
    """Return who asks the gate and notes the spend of a request outside the cache; None where it is free."""
    if not target.costs_money:
        return None
    return LedgerWatch(
        Ledger(storage.gate),
        sample_gate(storage, target),
        texts=texts,
        pricing=target.pricing,
        fingerprint=target.fingerprint,
        partition="sample",
    )


def _check_same(before: Vectors, again: Vectors) -> None:
    """Refuse a provider that gives a text another vector than it once gave.

    Raises:
        ArtefactsIncompatibleError: it does: the model behind the name has changed.
    """
    if before.shape != again.shape or float((before * again).sum()) < _SAME * float((before**2).sum()):
        raise ArtefactsIncompatibleError(
            "The provider gives a text another vector than the one in the cache: the model behind its name "
            "has changed. Raise hub.model_version, so that old and new vectors do not mix."
        )


def _check_vectors(sample: _Sample, dimension: int) -> None:
    """Check what was read back from the cache: dimension, finiteness, length.

    Raises:
        ArtefactsIncompatibleError: a vector is none.
    """
    vectors = sample.cache.read(sample.target.fingerprint, sample.drawn)
    norms = np.linalg.norm(vectors, axis=1)
    # The built-in encoder gives zeros where a text holds no n-gram that it knows; a remote model never does.
    silent = int((norms == 0).sum()) if not sample.target.costs_money else 0
    wrong = int((np.abs(norms - 1) > _NORM_TOLERANCE).sum()) - silent
    if vectors.shape[1] != dimension or wrong or not np.isfinite(vectors).all():
        raise ArtefactsIncompatibleError(
            f"{wrong} of {len(vectors)} vectors of the sample have no unit length, or not "
            f"{dimension} dimensions. The provider's answers cannot be used."
        )
    sample.values |= {
        "dimension": vectors.shape[1],
        "shortest": round(float(norms.min()), 4),
        "longest": round(float(norms.max()), 4),
        "without_known_features": silent,
        "read_back": len(vectors),
    }


def _ask_small_index(sample: _Sample) -> None:
    """Build a vector index of the sample, ask it for its own phrases, keep some answers to show.

    Raises:
        ArtefactsIncompatibleError: a phrase does not find itself.
    """
    # LanceDB takes a second to import, and only a build needs it.
    from alpha_id_assets.vector_index import build_vector_index, mean_prototypes  # noqa: PLC0415

    target, corpus, drawn = sample.target, sample.corpus, sample.drawn
    vectors = sample.cache.read(target.fingerprint, drawn)
    code_of = dict(zip(corpus.hashes, corpus.codes, strict=True))
    own_codes = [code_of[key] for key in drawn]
    codes, prototypes = mean_prototypes(vectors, own_codes)
    with staging_folder(sample.storage, "embeddings_sample") as aside:
        build_vector_index(aside, vectors, fingerprint=target.fingerprint, codes=codes, prototypes=prototypes)
        index = DenseIndex.open(aside)
        found = index.nearest(vectors, _NEIGHBOURS)
        scores = [index.similarity(vector, rows) for vector, rows in zip(vectors, found, strict=True)]
    lost = [
        row
        for row, (rows, near) in enumerate(zip(found, scores, strict=True))
        if row not in rows and np.any(vectors[row]) and near[0] < _SAME
    ]
    if lost:
        raise ArtefactsIncompatibleError(
            f"{len(lost)} of {len(drawn)} phrases of the sample are not found by their own vectors. The "
            "provider's answers cannot be used."
        )
    sample.values["found_themselves"] = len(drawn)
    for row in range(min(EXAMPLES, len(drawn))):
        sample.examples.extend(
            {
                "asked": corpus.by_hash[drawn[row]],
                "found": corpus.by_hash[drawn[near]],
                "code": own_codes[near],
                "cosine": round(float(score), 3),
            }
            for near, score in zip(found[row].tolist(), scores[row], strict=True)
        )


def _check_rerank(sample: _Sample, config: Config) -> None:
    """Ask the hub's reranker once and note its scale. Its failing is a warning: answers do without it."""
    documents = [sample.corpus.by_hash[key] for key in sample.drawn[: _NEIGHBOURS + 1]]
    target = Target(sample.target.corpus_hash, config.hub.fingerprint, config.hub.pricing)
    watch = _watch(sample.storage, [documents[0], *documents], target)
    try:
        with open_hub(config) as hub:
            key = watch.reserve(slice(0, len(documents) + 1)) if watch else ""
            scores = hub.rerank(documents[0], documents)
    except ProviderError as error:
        # What was reserved stays so in the ledger: whether it was billed is not known.
        sample.warnings.append(f"The hub's reranker gave no valid answer: {error}")
        return
    if watch:
        watch.settle(key, None)
    sample.values |= {"rerank_scale": scale_of(scores), "rerank_itself_first": bool(np.argmax(scores) == 0)}


def _write_report(sample: _Sample, *, problem: str | None) -> Estimate:
    """Write the sample report, with what the full run would take."""
    target, by_hash = sample.target, sample.corpus.by_hash
    full = estimate(by_hash, sample.cache.missing(target.fingerprint, by_hash), target.pricing)
    details: dict[str, Any] = {"sent": sample.sent, **sample.values, "examples": sample.examples}
    if problem:
        details["problem"] = problem
    report = SampleReport(
        fingerprint=target.fingerprint,
        corpus_hash=target.corpus_hash,
        passed=problem is None,
        estimate=full,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        details=details,
    )
    write_sample_report(sample.storage.gate, report)
    return full
