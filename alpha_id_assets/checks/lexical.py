"""Asset checks of the lexical slice: thin shells around ``rules``.

Holds: which rule is shown at which asset, and whether it blocks. Refuses: rules themselves.
"""

import dagster as dg

from alpha_id_assets.assets.lexical import alpha_id_entries, corpus_phrases, icd_meta, tantivy_index
from alpha_id_assets.assets.reporting import failing_in_words
from alpha_id_assets.checks import rules
from alpha_id_assets.checks.results import shown
from alpha_id_assets.resources import AlphaIdResource
from alpha_id_assets.tables import read_note, read_table


@dg.asset_check(asset=alpha_id_entries, blocking=True)
def unique_alpha_ids(alpha_id: AlphaIdResource) -> dg.AssetCheckResult:
    """An Alpha-ID names one entry of an edition."""
    with failing_in_words():
        return shown("unique_alpha_ids", rules.unique_alpha_ids(read_table(alpha_id.storage().entries)))


@dg.asset_check(asset=alpha_id_entries, blocking=True)
def entries_near_edition_before(alpha_id: AlphaIdResource) -> dg.AssetCheckResult:
    """The number of entries lies near the one of the edition before."""
    with failing_in_words():
        verdict = rules.entries_in_band(alpha_id.storage(), alpha_id.config())
        return shown("entries_near_edition_before", verdict)


@dg.asset_check(asset=icd_meta, blocking=True)
def codes_near_edition_before(alpha_id: AlphaIdResource) -> dg.AssetCheckResult:
    """The number of codes lies near the one of the edition before."""
    with failing_in_words():
        verdict = rules.codes_in_band(alpha_id.storage(), alpha_id.config())
        return shown("codes_near_edition_before", verdict)


@dg.asset_check(asset=corpus_phrases, blocking=True)
def phrases_near_edition_before(alpha_id: AlphaIdResource) -> dg.AssetCheckResult:
    """The number of phrases lies near the one of the editions before."""
    with failing_in_words():
        verdict = rules.phrases_in_band(alpha_id.storage(), alpha_id.config())
        return shown("phrases_near_edition_before", verdict)


@dg.asset_check(asset=corpus_phrases)
def codes_known_to_claml(alpha_id: AlphaIdResource) -> dg.AssetCheckResult:
    """Every code of the Alpha-ID edition is in the ClaML edition; those that are not are listed."""
    with failing_in_words():
        storage = alpha_id.storage()
        report = read_note(storage, storage.corpus_phrases)["report"]
        return shown("codes_known_to_claml", rules.codes_known(report), dg.AssetCheckSeverity.WARN)


@dg.asset_check(asset=tantivy_index, blocking=True)
def index_counts_all_phrases(alpha_id: AlphaIdResource) -> dg.AssetCheckResult:
    """The lexical index counts as many phrases as the corpus."""
    with failing_in_words():
        storage = alpha_id.storage()
        phrases = read_table(storage.corpus_phrases).height
        return shown("index_counts_all_phrases", rules.index_counts_all(storage.tantivy, phrases))


@dg.asset_check(asset=tantivy_index, blocking=True)
def phrases_find_themselves(alpha_id: AlphaIdResource) -> dg.AssetCheckResult:
    """A sample of the phrases, asked for, gives their own rows."""
    with failing_in_words():
        storage = alpha_id.storage()
        norms = read_table(storage.corpus_phrases)["norm"].to_list()
        return shown("phrases_find_themselves", rules.phrases_find_themselves(storage.tantivy, norms))


CHECKS = [
    unique_alpha_ids,
    entries_near_edition_before,
    codes_near_edition_before,
    phrases_near_edition_before,
    codes_known_to_claml,
    index_counts_all_phrases,
    phrases_find_themselves,
]
