"""The asset that publishes: what lies in storage, verified once more, as the build that answers.

Holds: ``published_index``. Refuses: publishing itself (``building.make_published``).
"""

from typing import Any

import dagster as dg
import polars as pl

from alpha_id_assets.assets.embedding import lance_index
from alpha_id_assets.assets.lexical import alpha_id_entries, corpus_phrases, icd_meta, tantivy_index
from alpha_id_assets.assets.reporting import TEAM, failing_in_words, materialised
from alpha_id_assets.building import make_published
from alpha_id_assets.publishing import published_manifests
from alpha_id_assets.resources import AlphaIdResource

PUBLISHING = "publishing"


@dg.asset(
    group_name=PUBLISHING,
    owners=TEAM,
    kinds={"json"},
    deps=[alpha_id_entries, icd_meta, corpus_phrases, tantivy_index, lance_index],
)
def published_index(alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """The build that answers: verified once more, swapped in; the last three are kept."""
    with failing_in_words():
        storage = alpha_id.storage()
        step = make_published(storage, alpha_id.config())
        kept = [
            {
                "build": manifest.build_id,
                "created": manifest.created,
                "alpha_id": manifest.alpha_id.edition,
                "claml": manifest.claml.edition,
                "phrases": manifest.counts["phrases"],
                "vectors": manifest.fingerprint or "none: lexical-only",
            }
            for manifest in published_manifests(storage)
        ]
        extra = {
            "build_id": step.details["build_id"],
            "alpha_id_source": step.details["alpha_id"]["name"],
            "claml_source": step.details["claml"]["name"],
            "vectors": step.details["fingerprint"] or "none: lexical-only",
        }
        return materialised(step, extra, preview=pl.DataFrame(kept))


ASSETS = [published_index]
