"""The assets that mode C needs, from BfArM's files to the lexical index.

Holds: four assets named as their artefacts in storage. Refuses: parsing, joining and indexing (``building``
and what it calls). Explained in ``docs/``: the asset graph.
"""

from typing import Any

import dagster as dg
import polars as pl

from alpha_id_assets.assets.reporting import TEAM, failing_in_words, materialised
from alpha_id_assets.building import make_corpus, make_entries, make_icd_meta, make_tantivy
from alpha_id_assets.resources import AlphaIdResource
from alpha_id_assets.tables import read_table

SOURCES, CORPUS, INDICES = "sources", "corpus", "indices"


@dg.asset(group_name=SOURCES, owners=TEAM, kinds={"parquet", "polars"})
def alpha_id_entries(alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """The rows of the Alpha-ID edition found in the data folder, else of the sample that ships."""
    with failing_in_words():
        storage = alpha_id.storage()
        step = make_entries(storage, alpha_id.config())
        return materialised(step, preview=read_table(storage.entries))


@dg.asset(group_name=SOURCES, owners=TEAM, kinds={"parquet", "xml"})
def icd_meta(alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """The code table of the ClaML edition, modifiers expanded, with its rubrics beside it."""
    with failing_in_words():
        storage = alpha_id.storage()
        step = make_icd_meta(storage, alpha_id.config())
        shown = ("code", "kind", "title", "parent", "usage", "terminal", "para295", "para301", "content")
        terminal = read_table(storage.icd_meta).filter("terminal").select(shown)
        return materialised(step, preview=terminal)


@dg.asset(group_name=CORPUS, owners=TEAM, kinds={"parquet", "polars"}, deps=[alpha_id_entries, icd_meta])
def corpus_phrases(alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """The texts to match: Alpha-ID entries, titles and inclusion terms, each with the code it stands for."""
    with failing_in_words():
        storage = alpha_id.storage()
        step = make_corpus(storage)
        shown = ("text", "origin", "valid", "alpha_id", "icd_code", "secondary_only", "edition_gap")
        phrases = read_table(storage.corpus_phrases).select(shown)
        # A row of each origin says more than the first five of one.
        preview = pl.concat([part.head(2) for part in phrases.partition_by("origin", maintain_order=True)])
        report = step.details["report"]
        extra = {
            "unknown_codes": len(report["unknown_codes"]),
            "edition_gaps": len(report["gaps"]),
            "duplicates": dg.MetadataValue.json(report["duplicates"]),
        }
        return materialised(step, extra, preview=preview)


@dg.asset(group_name=INDICES, owners=TEAM, kinds={"tantivy"}, deps=[corpus_phrases])
def tantivy_index(alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """The lexical index: German stems and trigrams, built aside, verified, put in place."""
    with failing_in_words():
        storage = alpha_id.storage()
        step = make_tantivy(storage)
        files = sorted(path for path in storage.tantivy.iterdir() if path.is_file())
        sizes = [path.stat().st_size for path in files]
        preview = pl.DataFrame({"file": [path.name for path in files], "bytes": sizes})
        return materialised(
            step, {"bytes": sum(sizes)}, preview=preview.sort("bytes", "file", descending=[True, False])
        )


ASSETS = [alpha_id_entries, icd_meta, corpus_phrases, tantivy_index]
