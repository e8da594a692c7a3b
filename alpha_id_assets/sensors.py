"""The sensor that starts what is missing: partitions the gate allows, then the publish of their vectors.

Holds: ``request_vectors``. Refuses: deciding what is missing or allowed (``pending`` and the gate); what it
requests asks the gate again itself.
"""

from collections.abc import Iterator

import dagster as dg

from alpha_id_assets.jobs import embed_partitions, publish_vectors
from alpha_id_assets.pending import Memo, Pending, find_pending, ranges
from alpha_id_assets.resources import AlphaIdResource
from alpha_id_runtime.errors import AlphaIdError

ATTEMPTS = 3
REQUEST_TAG = "alpha_id/request"
# The tags by which Dagster itself starts a range of partitions as one run.
RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
_THEIRS = {dg.AssetKey(name) for name in ("embeddings", "lance_index", "published_index")}
_ALIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dg.sensor(
    jobs=[embed_partitions, publish_vectors],
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
)
def request_vectors(context: dg.SensorEvaluationContext, alpha_id: AlphaIdResource) -> dg.SensorResult:
    """Starts the missing partitions once approved or free, then the publish; else says what is wanting."""
    alive = _alive(context.instance)
    if alive is not None:
        return dg.SensorResult(
            skip_reason=f"Run {alive.run_id} ({alive.job_name}, {alive.status.value}) is under way. If its "
            "process is gone, terminate it in the UI.",
            cursor=context.cursor,
        )
    try:
        pending = find_pending(alpha_id.storage(), alpha_id.config(), Memo.from_text(context.cursor))
    except AlphaIdError as error:
        return dg.SensorResult(skip_reason=str(error), cursor=context.cursor)
    cursor = pending.memo.to_text() if pending.memo else context.cursor
    wanted = list(_wanted(pending))
    requests = [request for job, what, tags in wanted if (request := _attempt(context, job, what, tags))]
    if requests:
        return dg.SensorResult(run_requests=requests, cursor=cursor)
    words = pending.reason
    if wanted:
        words += (
            f" It was attempted {ATTEMPTS} times; see the runs tagged {REQUEST_TAG}. Start it by hand once "
            "the cause is mended: embeddings (all partitions), then lance_index and published_index."
        )
    return dg.SensorResult(skip_reason=words, cursor=cursor)


def _wanted(pending: Pending) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield (job, what is asked for, tags) for each request that would be right now."""
    for part in ranges(pending.partitions):
        tags = {RANGE_START: part[0], RANGE_END: part[-1]}
        yield embed_partitions.name, f"{pending.wanted}:{''.join(part)}", tags
    if pending.publish:
        yield publish_vectors.name, f"{pending.wanted}:publish", {}


def _attempt(
    context: dg.SensorEvaluationContext, job: str, what: str, tags: dict[str, str]
) -> dg.RunRequest | None:
    """Return the next attempt at ``what``; None after the last one."""
    before = context.instance.get_runs_count(dg.RunsFilter(tags={REQUEST_TAG: what}))
    if before >= ATTEMPTS:
        return None
    return dg.RunRequest(run_key=f"{what}:{before + 1}", job_name=job, tags={**tags, REQUEST_TAG: what})


def _alive(instance: dg.DagsterInstance) -> dg.DagsterRun | None:
    """Return a run of theirs that has not ended, however it was started."""
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=_ALIVE)):
        theirs = run.job_name in (embed_partitions.name, publish_vectors.name)
        if theirs or _THEIRS & set(run.asset_selection or ()):
            return run
    return None


SENSORS = [request_vectors]
