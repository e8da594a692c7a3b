"""When the evaluation runs: every night, and once as soon as another build is published.

Holds: the job, its schedule and its sensor. Refuses: deciding what is asked (the asset's configuration does).
The sensor looks at storage, so that a publish from the command line counts like one by Dagster.
"""

import dagster as dg

from alpha_id_assets.assets import evaluation
from alpha_id_assets.evaluation_steps import evaluated_build
from alpha_id_assets.resources import AlphaIdResource
from alpha_id_runtime.errors import AlphaIdError
from alpha_id_runtime.manifest import published_build_id

ATTEMPTS = 3
BUILD_TAG = "alpha_id/evaluates"
_ALIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

evaluate_build = dg.define_asset_job(
    "evaluate_build",
    selection=dg.AssetSelection.assets(*evaluation.ASSETS),
    description="How good the published build is: figures with intervals, and a page.",
)

nightly_evaluation = dg.ScheduleDefinition(
    name="nightly_evaluation",
    job=evaluate_build,
    cron_schedule="30 2 * * *",
    execution_timezone="Europe/Berlin",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="The published build, evaluated on the same cases every night.",
)


@dg.sensor(job=evaluate_build, default_status=dg.DefaultSensorStatus.RUNNING, minimum_interval_seconds=30)
def evaluate_published(
    context: dg.SensorEvaluationContext, alpha_id: AlphaIdResource
) -> dg.RunRequest | dg.SkipReason:
    """Evaluates a build once it is published, unless the last report is of this very build."""
    try:
        storage = alpha_id.storage()
        published = published_build_id(storage)
        evaluated = evaluated_build(storage)
    except AlphaIdError as error:
        return dg.SkipReason(str(error))
    if published is None:
        return dg.SkipReason("Nothing is published yet.")
    if published == evaluated:
        return dg.SkipReason(f"The published build {published} is evaluated.")
    alive = dg.RunsFilter(job_name=evaluate_build.name, statuses=_ALIVE)
    if context.instance.get_runs_count(alive):
        return dg.SkipReason("An evaluation is under way.")
    before = context.instance.get_runs_count(dg.RunsFilter(tags={BUILD_TAG: published}))
    if before >= ATTEMPTS:
        return dg.SkipReason(
            f"The build {published} was tried {ATTEMPTS} times; see the runs tagged {BUILD_TAG}. Once the "
            f"cause is mended, start the job {evaluate_build.name} by hand."
        )
    return dg.RunRequest(run_key=f"{published}:{before + 1}", tags={BUILD_TAG: published})


JOBS, SCHEDULES, SENSORS = [evaluate_build], [nightly_evaluation], [evaluate_published]
