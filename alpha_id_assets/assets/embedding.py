"""The assets of mode A, from the corpus to the vector index, and the approval in between.

Holds: six assets named as their artefacts in storage. Refuses: training, sending, the gate, which are in
``encoder_steps``, ``sampling``, ``embedding`` and what they call. However ``embeddings`` is started, its step
asks the gate before its first request.
"""

import getpass
import sys
import warnings
from typing import Any

import dagster as dg
import polars as pl

from alpha_id_assets.assets.lexical import INDICES, corpus_phrases, icd_meta
from alpha_id_assets.assets.reporting import TEAM, failing_in_words, materialised, say
from alpha_id_assets.embedding import PartitionDone, approve_embeddings, make_embeddings, make_lance
from alpha_id_assets.encoder_steps import HELD_OUT, make_encoder, make_encoder_holdout
from alpha_id_assets.resources import AlphaIdResource
from alpha_id_assets.sampling import SAMPLE_SEED, SAMPLE_SIZE, make_embeddings_sample
from alpha_id_assets.vectors import PARTITIONS

ENCODER, EMBEDDING = "encoder", "embedding"

PARTITIONS_DEF = dg.StaticPartitionsDefinition(list(PARTITIONS))


class HoldoutConfig(dg.Config):
    """Which evaluation entries are held out."""

    seed: int = 1
    entries: int = HELD_OUT


class SampleConfig(dg.Config):
    """Which phrases are sampled."""

    size: int = SAMPLE_SIZE
    seed: int = SAMPLE_SEED


class ApprovalConfig(dg.Config):
    """A person's yes and the most that may be spent, in tokens where no price is configured."""

    confirm: bool = False
    limit_euros: float | None = None
    limit_tokens: int | None = None
    by: str = ""


@dg.asset(group_name=ENCODER, owners=TEAM, kinds={"numpy"}, deps=[corpus_phrases])
def encoder(alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """The built-in encoder, trained from the corpus; only where its input has changed."""
    with failing_in_words():
        step = make_encoder(alpha_id.storage(), progress=_tell_epoch)
        return materialised(step, {"fingerprint": step.details["fingerprint"]})


@dg.asset(group_name=ENCODER, owners=TEAM, kinds={"numpy"}, deps=[corpus_phrases, icd_meta])
def encoder_holdout(config: HoldoutConfig, alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """A second encoder that never saw the evaluation entries, and its recall on them. It blocks nothing."""
    with failing_in_words():
        step = make_encoder_holdout(
            alpha_id.storage(), seed=config.seed, entries=config.entries, progress=_tell_epoch
        )
        recall = {name: round(value, 4) for name, value in step.details["recall"].items()}
        preview = pl.DataFrame({"ranking": list(recall), "recall": list(recall.values())})
        return materialised(step, {**recall, "seed": config.seed}, preview=preview, rows=preview.height)


@dg.asset(group_name=EMBEDDING, owners=TEAM, kinds={"json"}, deps=[corpus_phrases, encoder])
def embeddings_sample(config: SampleConfig, alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """A smoke test of the provider on a few phrases, and what the full run would take."""
    with failing_in_words():
        storage, settings = alpha_id.storage(), alpha_id.config()
        step = make_embeddings_sample(storage, settings, size=config.size, seed=config.seed)
        euros = step.details["euros"]
        extra = {
            "provider": settings.provider,
            "fingerprint": step.details["fingerprint"],
            "euros": "unknown: no price is configured" if euros is None else round(euros, 6),
            "checks": dg.MetadataValue.json(step.details["checks"]),
        }
        examples = pl.DataFrame(step.details["examples"])
        return materialised(step, extra, preview=examples, rows=examples.height)


@dg.asset(group_name=EMBEDDING, owners=TEAM, kinds={"json"}, deps=[embeddings_sample])
def embedding_approval(config: ApprovalConfig, alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """A person's yes to the full run, with a limit: materialise it with ``confirm: true``."""
    with failing_in_words():
        step = approve_embeddings(
            alpha_id.storage(),
            alpha_id.config(),
            confirm=config.confirm,
            by=config.by or getpass.getuser(),
            limit_euros=config.limit_euros,
            limit_tokens=config.limit_tokens,
        )
        say(step.details["words"])
        extra: dict[str, Any] = {"words": dg.MetadataValue.text(step.details["words"])}
        if step.details["approval"]:
            extra["approval"] = dg.MetadataValue.json(step.details["approval"])
        return materialised(step, extra)


def _embed(context: dg.AssetExecutionContext, alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """The vectors of the corpus by first hex digit of the content hash; only what the cache lacks is sent."""
    finished: dict[str, dict[str, Any]] = {}

    def done(what: PartitionDone) -> None:
        report = what.report
        euros = "unknown" if report.euros is None else round(report.euros, 6)
        figures = {
            "reused": report.reused,
            "embedded": report.embedded,
            "total": report.total,
            "euros": euros,
        }
        finished[what.partition] = figures
        say(f"embeddings {what.partition}: reused {report.reused:,}, embedded {report.embedded:,}")

    with failing_in_words():
        try:
            step = make_embeddings(
                alpha_id.storage(), alpha_id.config(), sorted(context.partition_keys), done=done
            )
        except BaseException:
            # What was finished before is in the cache for good, and no later run will ask for it again. A
            # failed step's own events are dropped, so it is told apart from the run.
            for partition, figures in finished.items():
                context.instance.report_runless_asset_event(
                    dg.AssetMaterialization(context.asset_key, partition=partition, metadata=figures)
                )
            raise
        for partition, figures in finished.items():
            context.add_asset_metadata(figures, partition_key=partition)
        # Counts are each partition's own, set above; what holds for all of them stands here.
        materialised(step)
        return dg.MaterializeResult(
            metadata={
                "fingerprint": step.details["fingerprint"],
                "seconds_of_run": step.seconds,
                "embedded_in_run": step.counts["embedded"],
            },
            data_version=dg.DataVersion(f"{step.details['corpus_hash'][:16]}:{step.details['fingerprint']}"),
        )


# Dagster warns that BackfillPolicy is beta; it is what makes a range of partitions one run.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", dg.BetaWarning)
    embeddings = dg.asset(
        name="embeddings",
        group_name=EMBEDDING,
        owners=TEAM,
        kinds={"numpy"},
        deps=[corpus_phrases, encoder, embedding_approval],
        partitions_def=PARTITIONS_DEF,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )(_embed)


@dg.asset(group_name=INDICES, owners=TEAM, kinds={"lancedb"}, deps=[corpus_phrases, encoder, embeddings])
def lance_index(alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """The vector index: whole or not at all, built aside, checked against exact search, put in place."""
    with failing_in_words():
        step = make_lance(alpha_id.storage(), alpha_id.config())
        shown = ("fingerprint", "recall", "exact")
        return materialised(step, {name: step.details[name] for name in shown})


def _tell_epoch(done: int, total: int, loss: float) -> None:
    sys.stderr.write(f"epoch {done} of {total}, mean loss {loss:.3f}\n")
    sys.stderr.flush()


ASSETS = [encoder, encoder_holdout, embeddings_sample, embedding_approval, embeddings, lance_index]
