"""The steps from a corpus to its vectors and their index, each a function over ``storage/``.

Holds: what the assets of mode A do, so that Dagster and ``alpha-id index build`` run the very same code.
Refuses: Dagster, printing, and any request that the gate did not allow. The sample is in ``sampling``.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from alpha_id_assets.building import Step
from alpha_id_assets.corpus_vectors import find_target, full_gate, open_provider, read_corpus_texts
from alpha_id_assets.gate import approve, estimate
from alpha_id_assets.ledger import Ledger
from alpha_id_assets.tables import read_note, replace_folder, staging_folder
from alpha_id_assets.vectors import PARTITIONS, EmbedReport, VectorCache, embed_missing
from alpha_id_runtime.encoder import Prototypes
from alpha_id_runtime.errors import AlphaIdError, GateError
from alpha_id_runtime.files import write_json
from alpha_id_runtime.retrieval.dense import DenseIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from alpha_id_runtime.config import Config
    from alpha_id_runtime.layout import StorageLayout


def approve_embeddings(
    storage: StorageLayout,
    config: Config,
    *,
    confirm: bool,
    by: str,
    limit_euros: float | None = None,
    limit_tokens: int | None = None,
) -> Step:
    """Write a person's approval of the full run; without ``confirm`` write nothing and say so.

    Raises:
        GateError: confirmed, but there is no valid sample report or no limit that can be held.
    """
    started = time.perf_counter()
    target = find_target(storage, config)
    approval = None
    if not target.costs_money:
        words = "Nothing was written: the configured provider costs nothing and needs no approval."
    else:
        try:
            approval, words = approve(
                storage.gate,
                confirm=confirm,
                fingerprint=target.fingerprint,
                corpus_hash=target.corpus_hash,
                by=by,
                limit_euros=limit_euros,
                limit_tokens=limit_tokens,
            )
        except GateError as error:
            if confirm:
                raise
            words = str(error)
    details = {"words": words, "approval": asdict(approval) if approval else None}
    return _step("embedding_approval", started, {"approved": int(approval is not None)}, details)


@dataclass(frozen=True)
class PartitionDone:
    """One partition of ``embeddings`` and what it took."""

    partition: str
    report: EmbedReport


def make_embeddings(
    storage: StorageLayout,
    config: Config,
    partitions: Sequence[str] = PARTITIONS,
    *,
    done: Callable[[PartitionDone], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Step:
    """Embed what the given partitions lack. The gate is asked for all of them before anything is opened.

    Args:
        storage: where the corpus lies and the vectors go.
        config: which provider.
        partitions: hex digits.
        done: told of each partition when it is finished.
        progress: told (done, total) of the texts to embed of all partitions after each batch.

    Raises:
        GateError: refused; unless it was refused midway, no request has left.
        ProviderError: the provider failed; what it answered before is kept.
    """
    started = time.perf_counter()
    target, corpus = find_target(storage, config), read_corpus_texts(storage)
    cache, check = VectorCache(storage.vectors), full_gate(storage, target)
    wanted = {key: text for key, text in corpus.by_hash.items() if key[0] in partitions}
    missing = cache.missing(target.fingerprint, wanted)
    decision = check(estimate(wanted, missing, target.pricing))
    if not decision.allowed:
        raise GateError(decision.reason)
    reports: dict[str, EmbedReport] = {}
    before = 0

    def advance(batch: int, _: int) -> None:
        if progress:
            progress(before + batch, len(missing))

    with open_provider(storage, config) as provider:
        for partition in partitions:
            report = embed_missing(
                cache,
                provider,
                wanted,
                partition,
                gate_check=check,
                ledger=Ledger(storage.gate),
                progress=advance,
            )
            reports[partition] = report
            before += report.embedded
            if done:
                done(PartitionDone(partition, report))
    known = [report.euros for report in reports.values() if report.euros is not None]
    counts = {
        name: sum(getattr(report, name) for report in reports.values())
        for name in ("reused", "embedded", "total", "tokens")
    }
    details = {
        "fingerprint": target.fingerprint,
        "corpus_hash": target.corpus_hash,
        "euros": sum(known) if len(known) == len(reports) else None,
        "partitions": {name: asdict(report) for name, report in reports.items()},
    }
    return _step("embeddings", started, counts, details, cache.warnings)


def make_lance(storage: StorageLayout, config: Config) -> Step:
    """Build the vector index aside, check it, put it in place; one of the same input is kept.

    Raises:
        ArtefactsMissingError: a vector of the present corpus and fingerprint is not in the cache.
    """
    # LanceDB takes a second to import; who only approves or embeds does without.
    from alpha_id_assets.vector_index import build_vector_index, mean_prototypes  # noqa: PLC0415

    started = time.perf_counter()
    target, corpus = find_target(storage, config), read_corpus_texts(storage)
    note_path = storage.note_of(storage.lance)
    kept = _matching_lance(storage, target.corpus_hash, target.fingerprint)
    if kept is not None:
        return _step("lance_index", started, {**kept["counts"], "built": 0}, kept)
    cache = VectorCache(storage.vectors)
    vectors = cache.read(target.fingerprint, corpus.hashes)
    if config.provider == "builtin":
        own = Prototypes.load(storage.encoder)
        codes, prototypes = list(own.codes), own.matrix
    else:
        codes, prototypes = mean_prototypes(vectors, corpus.codes)
    with staging_folder(storage, "lance_index") as aside:
        built = build_vector_index(
            aside, vectors, fingerprint=target.fingerprint, codes=codes, prototypes=prototypes
        )
        DenseIndex.open(aside)
        # A kill from here to the end must not leave the old note beside the new folder.
        note_path.unlink(missing_ok=True)
        replace_folder(storage, aside, storage.lance)
    counts = {"phrases": built.rows, "dimension": built.dimension, "prototypes": len(codes)}
    note = {
        "corpus_hash": target.corpus_hash,
        "fingerprint": target.fingerprint,
        "counts": counts,
        "recall": built.recall,
        "exact": built.exact,
    }
    write_json(note_path, note)
    return _step("lance_index", started, {**counts, "built": 1}, note, cache.warnings)


def _matching_lance(storage: StorageLayout, corpus_hash: str, fingerprint: str) -> dict[str, Any] | None:
    """Return the note of the index that is there, where it is whole and of this input."""
    try:
        note = read_note(storage, storage.lance)
        found = DenseIndex.open(storage.lance)
        found.verify()
    except AlphaIdError:
        return None
    same = (note["corpus_hash"], note["fingerprint"], found.note.fingerprint) == (
        corpus_hash,
        fingerprint,
        fingerprint,
    )
    return note if same else None


def _step(
    name: str, started: float, counts: dict[str, int], details: dict[str, Any], warnings: Sequence[str] = ()
) -> Step:
    return Step(name, counts, round(time.perf_counter() - started, 3), tuple(warnings), details)
