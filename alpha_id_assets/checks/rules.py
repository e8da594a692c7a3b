"""What must hold of the tables and the index before they may be published, as pure rules.

Holds: one function a rule, each returning a ``Verdict``, and ``verify_assets``, which holds all blocking ones
against what lies in storage. Refuses: Dagster. The asset checks show these rules in the UI; as a blocking
check stops only its own run, ``published_index`` asks them again itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from alpha_id_assets.publishing import published_manifests
from alpha_id_assets.tables import read_note, read_table
from alpha_id_runtime.errors import AlphaIdError, ArtefactsIncompatibleError, list_problems
from alpha_id_runtime.retrieval.lexical import LexicalIndex

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

    from alpha_id_runtime.config import Config
    from alpha_id_runtime.layout import StorageLayout
    from alpha_id_runtime.manifest import Manifest

SELF_RETRIEVAL_SAMPLE = 200
_SHOWN = 20


@dataclass(frozen=True)
class Verdict:
    """Whether a rule holds, in words, with figures for the UI."""

    passed: bool
    words: str
    details: dict[str, Any] = field(default_factory=dict)


def unique_alpha_ids(entries: pl.DataFrame) -> Verdict:
    """An Alpha-ID names one entry of an edition."""
    twice = entries.filter(~entries["alpha_id"].is_first_distinct())["alpha_id"].unique().sort().to_list()
    if not twice:
        return Verdict(passed=True, words=f"{entries.height:,} entries, each with an Alpha-ID of its own.")
    return Verdict(
        passed=False,
        words=f"{len(twice)} Alpha-ID(s) name more than one entry: {', '.join(twice[:_SHOWN])}. The source "
        "is no edition of BfArM's; download it again.",
        details={"twice": len(twice)},
    )


def within_band(what: str, count: int, before: Manifest | None, band: float) -> Verdict:
    """A row count lies near the one of the edition before.

    Args:
        what: name of the count, as in the manifest: entries, codes or phrases.
        count: rows now.
        before: a build of another edition; None where there is none to compare with.
        band: share by which the count may have grown; by the same factor it may have shrunk.
    """
    if before is None:
        return Verdict(
            passed=True,
            words=f"{count:,} {what}; no build of another edition is kept to compare with.",
            details={"now": count},
        )
    then = before.counts[what]
    lowest, highest = then / (1 + band), then * (1 + band)
    figures = f"{count:,} {what}, {then:,} in the build of edition {_editions(before)}"
    details = {"now": count, "before": then, "lowest": round(lowest), "highest": round(highest)}
    if lowest <= count <= highest:
        return Verdict(passed=True, words=f"{figures}.", details=details)
    return Verdict(
        passed=False,
        words=f"{figures}: outside the band of {lowest:,.0f} to {highest:,.0f}. Is the file whole? If so "
        "large a change is right, allow it by ALPHA_ID_BUILD_ROW_BAND (build.row_band, now "
        f"{band:g}) and build again.",
        details=details,
    )


def edition_before(
    manifests: Sequence[Manifest], *, sample: bool, alpha_id: int | None = None, claml: int | None = None
) -> Manifest | None:
    """Return the newest kept build made of another edition than these, or None.

    Never compares the sample with official files. Of ``alpha_id`` and ``claml``, None does not matter.
    """
    for manifest in manifests:
        same_kind = bool(manifest.settings.get("sample")) == sample
        other_alpha_id = alpha_id is not None and manifest.alpha_id.edition != alpha_id
        other_claml = claml is not None and manifest.claml.edition != claml
        if same_kind and (other_alpha_id or other_claml):
            return manifest
    return None


def codes_known(report: dict[str, Any]) -> Verdict:
    """Every code of the Alpha-ID edition is in the ClaML edition. ``report``: a ``CorpusReport`` as dict."""
    unknown = report["unknown_codes"]
    if not unknown:
        return Verdict(passed=True, words="Every code of the Alpha-ID file is in the ClaML edition.")
    named = [f"{each['code']} ({each['entries']})" for each in unknown]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return Verdict(
        passed=False,
        words=f"{len(unknown)} code(s) of the Alpha-ID file are not in the ClaML edition, their phrases are "
        f"left out: {', '.join(named[:_SHOWN])}{more}.",
        details={"unknown_codes": unknown},
    )


def index_counts_all(index: Path, phrases: int) -> Verdict:
    """The lexical index counts as many phrases as the corpus."""
    try:
        count = len(LexicalIndex.open(index))
    except AlphaIdError as error:
        return Verdict(passed=False, words=str(error))
    words = f"The index counts {count:,} phrases, the corpus {phrases:,}."
    return Verdict(count == phrases, words, {"index": count, "corpus": phrases})


def phrases_find_themselves(index: Path, norms: Sequence[str]) -> Verdict:
    """An even sample of the phrases, asked for, gives their own rows."""
    try:
        lexical = LexicalIndex.open(index)
    except AlphaIdError as error:
        return Verdict(passed=False, words=str(error))
    rows = range(0, len(norms), max(1, len(norms) // SELF_RETRIEVAL_SAMPLE))
    lost = [row for row in rows if row not in lexical.exact(norms[row])]
    details = {"asked": len(rows), "lost": len(lost)}
    if lost:
        return Verdict(
            passed=False,
            words=f"{len(lost)} of {len(rows)} phrases drawn do not find themselves, first row {lost[0]}.",
            details=details,
        )
    return Verdict(passed=True, words=f"All {len(rows)} phrases drawn find themselves.", details=details)


def entries_in_band(storage: StorageLayout, config: Config) -> Verdict:
    """Compare the entries with the build of another Alpha-ID edition."""
    note = read_note(storage, storage.entries)
    before = edition_before(
        published_manifests(storage), sample=_is_sample(note), alpha_id=note["source"]["edition"]
    )
    return within_band("entries", note["counts"]["rows"], before, config.build.row_band)


def codes_in_band(storage: StorageLayout, config: Config) -> Verdict:
    """Compare the codes with the build of another ClaML edition."""
    note = read_note(storage, storage.icd_meta)
    before = edition_before(
        published_manifests(storage), sample=_is_sample(note), claml=note["source"]["edition"]
    )
    return within_band("codes", note["counts"]["codes"], before, config.build.row_band)


def phrases_in_band(storage: StorageLayout, config: Config) -> Verdict:
    """Compare the phrases with the build of other editions."""
    entries, meta = (read_note(storage, path) for path in (storage.entries, storage.icd_meta))
    before = edition_before(
        published_manifests(storage),
        sample=_is_sample(entries),
        alpha_id=entries["source"]["edition"],
        claml=meta["source"]["edition"],
    )
    note = read_note(storage, storage.corpus_phrases)
    return within_band("phrases", note["counts"]["phrases"], before, config.build.row_band)


def verify_assets(storage: StorageLayout, config: Config) -> None:
    """Hold every blocking rule on tables against what lies in storage; the index is verified by ``publish``.

    Raises:
        ArtefactsIncompatibleError: a rule does not hold; all of them are named.
        ArtefactsMissingError: an asset has not been materialised.
    """
    verdicts = [
        unique_alpha_ids(read_table(storage.entries)),
        entries_in_band(storage, config),
        codes_in_band(storage, config),
        phrases_in_band(storage, config),
        index_counts_all(storage.tantivy, read_table(storage.corpus_phrases).height),
    ]
    failed = [verdict.words for verdict in verdicts if not verdict.passed]
    if failed:
        raise ArtefactsIncompatibleError(
            f"Nothing is published, the build before stays in place:{list_problems(failed)}"
        )


def _is_sample(note: dict[str, Any]) -> bool:
    return bool(note.get("sample"))


def _editions(manifest: Manifest) -> str:
    alpha_id, claml = manifest.alpha_id.edition, manifest.claml.edition
    return str(alpha_id) if alpha_id == claml else f"{alpha_id} with ClaML {claml}"
