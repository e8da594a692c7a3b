"""The only assembly of the Dagster code location: assets, checks, jobs, and the resource they share.

Holds: ``assemble``, a pure function with overrides for tests, and ``defs``, which Dagster loads. Refuses: any
asset, check or setting of its own.
"""

import dagster as dg

from alpha_id_assets.assets import lexical
from alpha_id_assets.checks import lexical as lexical_checks
from alpha_id_assets.resources import AlphaIdResource

lexical_build = dg.define_asset_job(
    "lexical_build",
    selection=dg.AssetSelection.assets(*lexical.ASSETS),
    description="All that mode C needs, from the files in the data folder to a published build.",
)


def assemble(*, alpha_id: AlphaIdResource | None = None) -> dg.Definitions:
    """Return the whole code location.

    Args:
        alpha_id: the resource to use instead of the one that goes by file and environment.
    """
    return dg.Definitions(
        assets=lexical.ASSETS,
        asset_checks=lexical_checks.CHECKS,
        jobs=[lexical_build],
        resources={"alpha_id": alpha_id or AlphaIdResource()},
        # Steps are few and share files: one process starts in a second, one a step would take seconds each.
        executor=dg.in_process_executor,
    )


defs = assemble()
