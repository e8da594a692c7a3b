"""The steps from BfArM's files to a published lexical build, each a function over ``storage/``.

Holds: what each asset does, so that Dagster and ``alpha-id index build`` run the very same code. Refuses:
Dagster, printing, and parsing (``sources``).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from alpha_id_assets.checks.rules import verify_assets
from alpha_id_assets.corpus_vectors import find_vector_parts
from alpha_id_assets.indexing import build_lexical_index, verify_lexical_index
from alpha_id_assets.publishing import make_manifest, publish, storage_lock
from alpha_id_assets.sources.alpha_id import read_alpha_id
from alpha_id_assets.sources.claml import read_claml
from alpha_id_assets.sources.corpus import build_corpus
from alpha_id_assets.sources.releases import (
    Selection,
    choose_sources,
    open_source,
    read_source,
)
from alpha_id_assets.tables import (
    read_note,
    read_table,
    replace_folder,
    staging_folder,
    table_hash,
    write_table,
)
from alpha_id_runtime.errors import ArtefactsIncompatibleError
from alpha_id_runtime.files import write_json
from alpha_id_runtime.manifest import SourceNote
from alpha_id_runtime.understanding import mine_abbreviations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from alpha_id_runtime.config import Config
    from alpha_id_runtime.layout import StorageLayout


@dataclass(frozen=True)
class Step:
    """What one step did: counts and texts for people, seconds."""

    name: str
    counts: dict[str, int]
    seconds: float
    warnings: tuple[str, ...] = ()
    details: dict[str, Any] = dataclasses.field(default_factory=dict)


def select_sources(config: Config) -> Selection:
    """Return the edition to build from ``config.data``.

    Raises:
        SourceError: nothing usable lies there, or the wanted edition does not.
    """
    return choose_sources(
        config.data,
        edition=config.build.edition or None,
        today=dt.datetime.now(tz=dt.UTC).astimezone().date(),
    )


def make_entries(storage: StorageLayout, config: Config) -> Step:
    """Read the Alpha-ID file into ``alpha_id_entries``. Nothing is written where a row is malformed.

    Raises:
        SourceError: no source, or more malformed rows than the tolerance allows.
    """
    started = time.perf_counter()
    selection = select_sources(config)
    source = selection.alpha_id
    edition = read_alpha_id(read_source(source), source.name, tolerance=config.build.tolerance)
    warnings = list(selection.warnings)
    if edition.left_out:
        warnings.append(f"{len(edition.left_out)} malformed row(s) of {source.name} were left out.")
    counts = {
        "rows": edition.rows.height,
        "valid": int(edition.rows["valid"].sum()),
        "left_out": len(edition.left_out),
    }
    note = {
        "source": {"edition": source.year, "name": source.name, "sha256": source.sha256},
        "sample": source.sample,
        "counts": counts,
        # The year's warnings are made anew at each answer: they must not outlive the year.
        "warnings": [each for each in warnings if each not in selection.year_warnings],
        "left_out": edition.left_out,
        "layout": {"fields": edition.fields, "separator": edition.separator, "encoding": edition.encoding},
    }
    write_table(storage, storage.entries, edition.rows, note)
    return _step("alpha_id_entries", started, counts, warnings, note)


def make_icd_meta(storage: StorageLayout, config: Config) -> Step:
    """Read the ClaML file into ``icd_meta`` and ``icd_rubrics``, modifiers expanded.

    Raises:
        SourceError: no source, or one that is not as it must be.
    """
    started = time.perf_counter()
    source = select_sources(config).claml
    with open_source(source) as stream:
        edition = read_claml(stream, source.name)
    counts = {
        "classes": edition.class_count,
        "modifiers": edition.modifier_count,
        "codes": edition.codes.height,
        "terminal": int(edition.codes["terminal"].sum()),
        "rubrics": edition.rubrics.height,
    }
    note = {
        "source": {"edition": edition.year, "name": source.name, "sha256": source.sha256},
        "sample": source.sample,
        "counts": counts,
        "warnings": list(edition.warnings),
    }
    write_table(
        storage, storage.icd_rubrics, edition.rubrics, {"counts": {"rubrics": edition.rubrics.height}}
    )
    write_table(storage, storage.icd_meta, edition.codes, note)
    return _step("icd_meta", started, counts, edition.warnings, note)


def make_corpus(storage: StorageLayout) -> Step:
    """Join entries, titles and inclusion terms to ``corpus_phrases``."""
    started = time.perf_counter()
    sources = {path.stem: read_table(path) for path in _sources_of_corpus(storage)}
    corpus = build_corpus(*sources.values())
    origins = corpus.phrases["origin"].value_counts().sort("origin").iter_rows()
    counts = {"phrases": corpus.phrases.height} | {str(origin): int(count) for origin, count in origins}
    inputs = {name: table_hash(table) for name, table in sources.items()}
    note = {"counts": counts, "report": dataclasses.asdict(corpus.report), "inputs": inputs}
    write_json(storage.abbreviations, mine_abbreviations(corpus.phrases["text"].to_list()))
    write_table(storage, storage.corpus_phrases, corpus.phrases, note)
    return _step("corpus_phrases", started, counts, [], note)


def _sources_of_corpus(storage: StorageLayout) -> tuple[Path, Path, Path]:
    return storage.entries, storage.icd_meta, storage.icd_rubrics


def make_tantivy(storage: StorageLayout) -> Step:
    """Build the lexical index aside, verify it, put it in place."""
    started = time.perf_counter()
    corpus_hash = str(read_note(storage, storage.corpus_phrases)["hash"])
    norms = read_table(storage.corpus_phrases)["norm"].to_list()
    with staging_folder(storage, "tantivy_index") as aside:
        count = build_lexical_index(aside, norms)
        verify_lexical_index(aside, norms)
        replace_folder(storage, aside, storage.tantivy)
    note = {"corpus_hash": corpus_hash, "counts": {"phrases": count}}
    write_json(storage.note_of(storage.tantivy), note)
    return _step("tantivy_index", started, {"phrases": count}, [], note)


def make_published(storage: StorageLayout, config: Config) -> Step:
    """Publish what the assets left, verified again, as one build; with vectors where those of it are there.

    Raises:
        ArtefactsMissingError: an asset before it was not materialised.
        ArtefactsIncompatibleError: the assets are not of one corpus, or the build does not verify.
    """
    started = time.perf_counter()
    entries, meta, corpus, index = (
        read_note(storage, path)
        for path in (storage.entries, storage.icd_meta, storage.corpus_phrases, storage.tantivy)
    )
    if index["corpus_hash"] != corpus["hash"]:
        raise ArtefactsIncompatibleError(
            "tantivy_index was built of another corpus than corpus_phrases now holds. Make it anew with: "
            "dagster asset materialize --select tantivy_index"
        )
    present = {path.stem: read_note(storage, path)["hash"] for path in _sources_of_corpus(storage)}
    others = [name for name, made_of in corpus["inputs"].items() if made_of != present[name]]
    if others:
        raise ArtefactsIncompatibleError(
            f"corpus_phrases was made of another {' and '.join(others)} than now lies there. Make it anew "
            "with: dagster asset materialize --select 'corpus_phrases,tantivy_index'"
        )
    verify_assets(storage, config)
    vectors = find_vector_parts(storage, config)
    manifest = make_manifest(
        corpus_hash=corpus["hash"],
        codes_hash=meta["hash"],
        fingerprint=vectors.fingerprint if vectors else None,
        alpha_id=SourceNote(**entries["source"]),
        claml=SourceNote(**meta["source"]),
        counts={**meta["counts"], **corpus["counts"], "entries": entries["counts"]["rows"]},
        warnings=(*entries["warnings"], *_gap_warnings(corpus["report"])),
        settings={"tolerance": config.build.tolerance, "sample": bool(entries.get("sample"))},
    )
    parts = {
        "codes.parquet": storage.icd_meta,
        "rubrics.parquet": storage.icd_rubrics,
        "phrases.parquet": storage.corpus_phrases,
        "abbreviations.json": storage.abbreviations,
        "tantivy": storage.tantivy,
    }
    if vectors:
        publish(storage, manifest, parts | vectors.parts, verify=vectors.verify)
    else:
        publish(storage, manifest, parts)
    return _step("published_index", started, manifest.counts, manifest.warnings, manifest.to_dict())


def build_lexical(storage: StorageLayout, config: Config, report: Callable[[Step], None]) -> None:
    """Run every step of the lexical build in order; ``report`` is told of each when it is done.

    A second build of the same storage waits for the first: their tables must not mix.
    """
    with storage_lock(storage, "build"):
        report(make_entries(storage, config))
        report(make_icd_meta(storage, config))
        report(make_corpus(storage))
        report(make_tantivy(storage))
        report(make_published(storage, config))


def _step(
    name: str, started: float, counts: dict[str, int], warnings: Iterable[str], details: dict[str, Any]
) -> Step:
    return Step(name, counts, round(time.perf_counter() - started, 3), tuple(warnings), details)


def _gap_warnings(report: dict[str, Any]) -> list[str]:
    """Return what the manifest says of codes that changed between the two editions."""
    warnings = []
    if report["unknown_codes"]:
        warnings.append(
            f"{len(report['unknown_codes'])} code(s) of the Alpha-ID file are not in the ClaML edition; "
            "their phrases are left out."
        )
    return warnings
