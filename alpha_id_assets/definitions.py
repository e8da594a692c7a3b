"""The only assembly of the Dagster code location: assets, checks, jobs, sensors, schedules, resource.

Holds: ``assemble``, a pure function with overrides for tests, and ``defs``, which Dagster loads. Refuses: any
asset, check or setting of its own.
"""

import dagster as dg

from alpha_id_assets.assets import embedding, evaluation, lexical, publishing
from alpha_id_assets.checks import embedding as embedding_checks
from alpha_id_assets.checks import evaluation as evaluation_checks
from alpha_id_assets.checks import lexical as lexical_checks
from alpha_id_assets.evaluation_runs import JOBS as EVALUATION_JOBS
from alpha_id_assets.evaluation_runs import SCHEDULES
from alpha_id_assets.evaluation_runs import SENSORS as EVALUATION_SENSORS
from alpha_id_assets.jobs import JOBS
from alpha_id_assets.resources import AlphaIdResource
from alpha_id_assets.sensors import SENSORS


def assemble(*, alpha_id: AlphaIdResource | None = None) -> dg.Definitions:
    """Return the whole code location.

    Args:
        alpha_id: the resource to use instead of the one that goes by file and environment.
    """
    return dg.Definitions(
        assets=[*lexical.ASSETS, *embedding.ASSETS, *publishing.ASSETS, *evaluation.ASSETS],
        asset_checks=[*lexical_checks.CHECKS, *embedding_checks.CHECKS, *evaluation_checks.CHECKS],
        jobs=[*JOBS, *EVALUATION_JOBS],
        schedules=SCHEDULES,
        sensors=[*SENSORS, *EVALUATION_SENSORS],
        resources={"alpha_id": alpha_id or AlphaIdResource()},
        # Steps are few and share files: one process starts in a second, one a step would take seconds each.
        executor=dg.in_process_executor,
    )


defs = assemble()
