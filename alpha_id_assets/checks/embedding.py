"""Asset checks of the vector index: thin shells around its own note.

Holds: that it is whole (blocking) and near exact search (a warning, as the build then compares exactly).
Refuses: measuring, which the build does.
"""

import dagster as dg

from alpha_id_assets.assets.embedding import lance_index
from alpha_id_assets.assets.reporting import failing_in_words
from alpha_id_assets.checks.results import shown
from alpha_id_assets.checks.rules import Verdict
from alpha_id_assets.resources import AlphaIdResource
from alpha_id_assets.tables import read_table
from alpha_id_runtime.retrieval.dense import DenseIndex


@dg.asset_check(asset=lance_index, blocking=True)
def vectors_count_all_phrases(alpha_id: AlphaIdResource) -> dg.AssetCheckResult:
    """The vector index holds one vector a phrase."""
    with failing_in_words():
        storage = alpha_id.storage()
        rows, phrases = DenseIndex.open(storage.lance).note.rows, read_table(storage.corpus_phrases).height
        words = f"The vector index holds {rows:,} vectors, the corpus {phrases:,} phrases."
        return shown("vectors_count_all_phrases", Verdict(rows == phrases, words, {"vectors": rows}))


@dg.asset_check(asset=lance_index)
def search_is_near_exact(alpha_id: AlphaIdResource) -> dg.AssetCheckResult:
    """The approximate search finds the exact hundred nearest; where it does not, queries compare exactly."""
    # LanceDB takes a second to import: not when the graph is loaded.
    from alpha_id_assets.vector_index import MIN_RECALL  # noqa: PLC0415

    with failing_in_words():
        note = DenseIndex.open(alpha_id.storage().lance).note
        words = f"Recall at 100 against exact search is {note.recall:.4f}, wanted {MIN_RECALL}."
        if note.recall < MIN_RECALL:
            words += " Queries compare every vector instead, which takes longer."
        verdict = Verdict(note.recall >= MIN_RECALL, words, {"recall": note.recall, "exact": note.exact})
        return shown("search_is_near_exact", verdict, dg.AssetCheckSeverity.WARN)


CHECKS = [vectors_count_all_phrases, search_is_near_exact]
