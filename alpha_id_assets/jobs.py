"""Which assets are materialised together. Refuses: everything else."""

import dagster as dg

from alpha_id_assets.assets import embedding, lexical, publishing

lexical_build = dg.define_asset_job(
    "lexical_build",
    selection=dg.AssetSelection.assets(*lexical.ASSETS, *publishing.ASSETS),
    description="All that mode C needs, from the files in the data folder to a published build.",
)

embed_partitions = dg.define_asset_job(
    "embed_partitions",
    selection=dg.AssetSelection.assets(embedding.embeddings),
    description="The vectors that are missing; asks the gate before its first request.",
)

publish_vectors = dg.define_asset_job(
    "publish_vectors",
    selection=dg.AssetSelection.assets(embedding.lance_index, *publishing.ASSETS),
    description="The vector index from what the cache holds, and a published build with it.",
)

JOBS = [lexical_build, embed_partitions, publish_vectors]
