"""Mode A in Dagster against a hub on loopback: from the sample to the publish, and no request unasked."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
from hub_server import TOKEN, HubServer

from alpha_id_assets.building import build_lexical
from alpha_id_assets.corpus_vectors import find_target, read_corpus_texts
from alpha_id_assets.embedding import approve_embeddings, make_embeddings
from alpha_id_assets.encoder_steps import make_encoder, make_encoder_holdout
from alpha_id_assets.encoding.settings import TrainingSettings
from alpha_id_assets.gate import read_approval, read_sample_report
from alpha_id_assets.gate_files import write_approval
from alpha_id_assets.pending import ranges
from alpha_id_assets.sampling import EXAMPLES, make_embeddings_sample
from alpha_id_assets.sensors import ATTEMPTS, RANGE_END, RANGE_START, request_vectors
from alpha_id_assets.vectors import PARTITIONS
from alpha_id_runtime.errors import ProviderError
from alpha_id_runtime.retrieval.dense import DenseIndex
from tests.dagster_home import Home, dagster_instance, typed_in_bash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DIMENSION = 16
PRICE = 20.0
SAMPLED = 20
QUICK = TrainingSettings(dimension=16, epochs=2)


@pytest.fixture(scope="module")
def server() -> Iterator[HubServer]:
    """A hub of this module's own."""
    with HubServer(DIMENSION) as hub:
        yield hub


@pytest.fixture
def hub(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> HubServer:
    """The hub, counting from nought, and the token where it is looked for."""
    server.clear_fault()
    server.reset()
    monkeypatch.setenv("ALPHA_ID_HUB_TOKEN", TOKEN)
    return server


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """A real instance of this module's own."""
    with dagster_instance(tmp_path_factory.mktemp("instance")) as made:
        yield made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, instance: dg.DagsterInstance) -> Path:
    """A folder in which a small corpus (150 entries, the sample's titles) is built and published."""
    made = Home(tmp_path_factory.mktemp("built"), instance, {"build.edition": 2026})
    made.put(2026, rows=150)
    build_lexical(made.storage, made.config(), lambda _: None)
    return made.root


@pytest.fixture
def home(built: Path, instance: dg.DagsterInstance, hub: HubServer, tmp_path: Path) -> Home:
    """A home with that corpus and the hub as its provider, under a name that no other test uses."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return Home(tmp_path, instance, {**hub_settings(hub), "hub.provider": tmp_path.name})


def hub_settings(hub: HubServer) -> dict[str, Any]:
    """Return settings that name the hub as the provider, at a price."""
    return {
        "provider": "hub",
        "build.edition": 2026,
        "hub.base_url": hub.url,
        "hub.provider": "test-hub",
        "hub.dimension": DIMENSION,
        "hub.retries": 0,
        "hub.price_per_million_tokens": PRICE,
    }


def materialise(home: Home, *names: str, **options: Any) -> dg.ExecuteInProcessResult:
    """Materialise assets as the UI's button does: through the job of all assets, on the real instance."""
    job = home.definitions().resolve_implicit_job_def_def_for_assets([dg.AssetKey(name) for name in names])
    assert job is not None
    return job.execute_in_process(
        instance=home.instance,
        asset_selection=[dg.AssetKey(name) for name in names],
        raise_on_error=False,
        **options,
    )


def sample(home: Home) -> dg.ExecuteInProcessResult:
    """Run the sample."""
    config = {"ops": {"embeddings_sample": {"config": {"size": SAMPLED}}}}
    return materialise(home, "embeddings_sample", run_config=config)


def approve(home: Home, **config: Any) -> dg.ExecuteInProcessResult:
    """Materialise the approval with this configuration."""
    return materialise(
        home, "embedding_approval", run_config={"ops": {"embedding_approval": {"config": config}}}
    )


def approved(home: Home) -> None:
    """Run the sample and approve, by the functions behind the assets."""
    make_embeddings_sample(home.storage, home.config(), size=SAMPLED)
    approve_embeddings(home.storage, home.config(), confirm=True, by="K. Meier", limit_euros=1.0)


def by_range(first: str, last: str) -> dg.RunRequest:
    """Return a request for a range of partitions."""
    return dg.RunRequest(job_name="embed_partitions", tags={RANGE_START: first, RANGE_END: last})


def embed_all(home: Home) -> dg.ExecuteInProcessResult:
    """Launch all partitions by hand, as the UI does for a range."""
    return materialise(home, "embeddings", tags={RANGE_START: "0", RANGE_END: "f"})


def tick(home: Home, cursor: str | None = None) -> dg.SensorResult:
    """Evaluate the sensor once."""
    definitions = home.definitions()
    context = dg.build_sensor_context(
        instance=home.instance, cursor=cursor, resources=definitions.resources, definitions=definitions
    )
    result = request_vectors(context)
    assert isinstance(result, dg.SensorResult)
    return result


def launch(home: Home, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
    """Run what the sensor requested, with its tags, as the daemon would."""
    job = home.definitions().resolve_job_def(str(request.job_name))
    return job.execute_in_process(instance=home.instance, tags=dict(request.tags), raise_on_error=False)


def failure(result: dg.ExecuteInProcessResult) -> str:
    """Return the paragraph in which the only failed step ended."""
    [event] = result.get_step_failure_events()
    return str(event.step_failure_data.user_failure_data.description)


def metadata(result: dg.ExecuteInProcessResult, partition: str | None = None) -> dict[str, Any]:
    """Return the metadata of the materialisation, or that of one partition."""
    events = [event.materialization for event in result.get_asset_materialization_events()]
    [found] = [each for each in events if each.partition == partition]
    return {name: value.value for name, value in found.metadata.items()}


def test_from_sample_to_published_vectors(home: Home, hub: HubServer) -> None:
    """A person reads the sample's report and approves; the sensor starts the partitions, then the publish."""
    texts = read_corpus_texts(home.storage).by_hash
    assert "no sample has been run" in str(tick(home).skip_reason)

    report = metadata(sample(home))
    assert report["sent"] == SAMPLED == hub.texts.total()
    assert (report["full_phrases"], report["full_missing"]) == (len(texts), len(texts) - SAMPLED)
    assert report["euros"] == pytest.approx(report["full_tokens"] * PRICE / 1e6, abs=1e-6)
    assert str(report["preview"]).count("\n| ") == EXAMPLES * 3 + 1  # the head's line of dashes
    assert "there is no approval" in str(tick(home).skip_reason)

    assert metadata(approve(home, confirm=True, limit_euros=1.0, by="K. Meier"))["approved"] == 1
    first = tick(home)
    [request] = first.run_requests
    assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("0", "f")
    embedded = launch(home, request)
    assert embedded.success
    assert hub.texts == Counter(dict.fromkeys(texts.values(), 1))
    parts = [metadata(embedded, partition) for partition in PARTITIONS]
    assert sum(part["embedded"] for part in parts) == len(texts) - SAMPLED
    assert sum(part["reused"] for part in parts) == SAMPLED
    assert all(part["euros"] > 0 for part in parts)

    [publish] = tick(home, first.cursor).run_requests
    assert publish.job_name == "publish_vectors"
    assert launch(home, publish).success
    manifest = home.published()
    assert manifest is not None
    assert manifest.fingerprint == find_target(home.storage, home.config()).fingerprint
    index = DenseIndex.open(home.storage.build(manifest.build_id).lance)
    assert index.note.rows == manifest.counts["phrases"]
    assert "Nothing is wanting" in str(tick(home).skip_reason)
    assert hub.texts.total() == len(texts)


def test_new_edition_embeds_only_its_new_texts(home: Home, hub: HubServer) -> None:
    """What another edition has in common with the last one is not sent again, and the metadata says so."""
    approved(home)
    make_embeddings(home.storage, home.config())
    before = read_corpus_texts(home.storage).by_hash
    hub.reset()
    home.put(2026, rows=170)
    build_lexical(home.storage, home.config(), lambda _: None)
    now = read_corpus_texts(home.storage).by_hash
    assert "the corpus has changed since the sample" in failure(embed_all(home))
    assert hub.count == 0
    approved(home)
    result = embed_all(home)
    assert result.success
    # The sample sends one phrase anew where all that it drew is there already.
    new = [now[key] for key in now.keys() - before.keys()]
    assert {text: count for text, count in hub.texts.items() if text not in before.values()} == dict.fromkeys(
        new, 1
    )
    assert hub.texts.total() <= len(new) + 1
    reused = sum(metadata(result, partition)["reused"] for partition in PARTITIONS)
    assert reused >= len(before)


def make_absent(home: Home) -> None:
    """Leave it at the sample."""


def make_unconfirmed(home: Home) -> None:
    """Materialise the approval without its yes."""
    assert metadata(approve(home, limit_euros=9.0))["approved"] == 0


def make_too_small(home: Home) -> None:
    """Approve, then lower the limit below the estimate."""
    approve(home, confirm=True, limit_euros=1.0)
    _rewrite(home, limit_euros=0.0001)


def make_stale(home: Home) -> None:
    """Approve, two months ago."""
    approve(home, confirm=True, limit_euros=1.0)
    _rewrite(home, at=(datetime.now(UTC) - timedelta(days=60)).isoformat())


def make_of_another_model(home: Home) -> None:
    """Approve, then raise the model's version."""
    approve(home, confirm=True, limit_euros=1.0)
    home.settings["hub.model_version"] = "2"


def _rewrite(home: Home, **changes: Any) -> None:
    approval = read_approval(home.storage.gate)
    assert approval is not None
    write_approval(home.storage.gate, type(approval)(**{**vars(approval), **changes}))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_absent, "there is no approval"),
        (make_unconfirmed, "there is no approval"),
        (make_too_small, "is below the estimate"),
        (make_stale, "the approval is 60 days old"),
        (make_of_another_model, "the sample was run with"),
    ],
)
def test_no_request_leaves_without_a_valid_approval(
    home: Home, hub: HubServer, make: Any, reason: str
) -> None:
    """Sensor, launch by hand and job of their own: each is refused in words, and the hub has seen nothing."""
    make_embeddings_sample(home.storage, home.config(), size=SAMPLED)
    hub.reset()
    make(home)
    skipped = tick(home)
    assert not skipped.run_requests
    assert reason in str(skipped.skip_reason)
    assert reason in failure(embed_all(home))
    by_job = launch(home, by_range("3", "3"))
    assert reason in failure(by_job)
    assert hub.count == 0


def test_no_request_leaves_from_the_command_line_unasked(home: Home, hub: HubServer) -> None:
    """The command as typed ends in one paragraph that names the cure, and the hub has seen nothing."""
    variables = {
        f"ALPHA_ID_{name.replace('.', '_').upper()}": str(value) for name, value in home.settings.items()
    }
    refused = typed_in_bash(
        "dagster asset materialize --select embeddings --partition-range 0...f",
        home.storage.root,
        **variables,
        ALPHA_ID_HUB_TOKEN=TOKEN,
    )
    assert refused.returncode == 1
    assert "alpha-id: Nothing is sent: no sample has been run" in refused.stderr
    assert "dagster asset materialize --select embeddings_sample" in refused.stderr
    assert "Stack Trace" not in refused.stderr
    assert hub.count == 0


def test_failing_hub_is_tried_three_times(home: Home, hub: HubServer) -> None:
    """The sensor attempts the same partitions three times, then says so; a mended hub goes on by hand."""
    approved(home)
    hub.set_fault("500")
    keys = []
    for _ in range(ATTEMPTS):
        [request] = tick(home).run_requests
        keys.append(request.run_key)
        assert not launch(home, request).success
    assert len(set(keys)) == ATTEMPTS
    assert "attempted 3 times" in str(tick(home).skip_reason)
    hub.clear_fault()
    assert embed_all(home).success
    assert [request.job_name for request in tick(home).run_requests or []] == ["publish_vectors"]


def test_partitions_finished_before_a_failure_count(home: Home, hub: HubServer) -> None:
    """What was embedded before the hub failed is shown as done, and the next request begins behind it."""
    approved(home)
    home.instance.wipe_assets([dg.AssetKey("embeddings")])
    hub.reset()

    def fail_later(number: int) -> None:
        if number == 8:
            hub.set_fault("500")

    hub.on_request = fail_later
    try:
        assert not embed_all(home).success
    finally:
        hub.on_request = None
    shown = home.instance.get_materialized_partitions(dg.AssetKey("embeddings"))
    [request] = tick(home).run_requests
    first = request.tags[RANGE_START]
    assert shown == set(PARTITIONS[: PARTITIONS.index(first)])
    assert "0" < first < "9"


def test_sensor_waits_while_a_run_of_theirs_is_alive(home: Home, hub: HubServer) -> None:
    """While partitions are being embedded, whoever started them, the sensor asks for nothing."""
    approved(home)
    seen: list[dg.SensorResult] = []

    def during(_: int) -> None:
        if not seen:
            seen.append(tick(home))

    hub.on_request = during
    try:
        assert embed_all(home).success
    finally:
        hub.on_request = None
    assert not seen[0].run_requests
    assert "is under way" in str(seen[0].skip_reason)


def test_vector_index_is_whole_or_not_at_all(home: Home) -> None:
    """With a vector missing it is not built; once published, a build for mode C keeps the vectors."""
    before = home.published()
    approved(home)
    assert launch(home, by_range("0", "e")).success
    assert "dagster asset materialize --select embeddings" in failure(materialise(home, "lance_index"))
    assert home.published() == before

    make_embeddings(home.storage, home.config())
    assert home.run_job("publish_vectors").success
    published = home.published()
    assert published is not None
    assert published.fingerprint
    assert home.run_job("lexical_build").success
    again = home.published()
    assert again is not None
    assert again.build_id == published.build_id


def test_failed_sample_opens_no_gate(home: Home, hub: HubServer) -> None:
    """A provider that answers wrongly fails the sample in words, and nothing can be approved on it."""
    hub.set_fault("wrong_dimension")
    with pytest.raises(ProviderError):
        make_embeddings_sample(home.storage, home.config(), size=SAMPLED)
    hub.clear_fault()
    report = read_sample_report(home.storage.gate)
    assert report is not None
    assert not report.passed
    assert "the last sample failed" in failure(approve(home, confirm=True, limit_euros=1.0))


def test_sample_asks_the_provider_even_where_all_is_cached(home: Home, hub: HubServer) -> None:
    """A second sample sends one phrase, so that its success says that the provider answers today."""
    make_embeddings_sample(home.storage, home.config(), size=SAMPLED)
    hub.reset()
    assert make_embeddings_sample(home.storage, home.config(), size=SAMPLED).counts["sent"] == 1
    assert hub.texts.total() == 1
    hub.set_fault("401")
    with pytest.raises(ProviderError):
        make_embeddings_sample(home.storage, home.config(), size=SAMPLED)


def test_built_in_encoder_needs_no_approval(home: Home, hub: HubServer) -> None:
    """With the default provider the sensor goes from a trained encoder to published vectors unasked."""
    home.settings["provider"] = "builtin"
    assert "select encoder" in str(tick(home).skip_reason)
    # Quicker than the measured recipe; the assets take any encoder of the present corpus.
    make_encoder(home.storage, settings=QUICK)
    for job in ("embed_partitions", "publish_vectors"):
        [request] = tick(home).run_requests
        assert request.job_name == job
        assert launch(home, request).success
    manifest = home.published()
    assert manifest is not None
    assert str(manifest.fingerprint).startswith("builtin-")
    assert make_encoder(home.storage, settings=QUICK).counts["trained"] == 0
    assert hub.count == 0


def test_encoder_holdout_never_saw_what_it_is_asked(home: Home) -> None:
    """What the evaluation draws by that seed is asked, and neither it nor its twins are trained on."""
    step = make_encoder_holdout(home.storage, seed=3, entries=30, settings=QUICK)
    phrases = read_corpus_texts(home.storage)
    assert step.counts["held_out"] == 30
    assert step.counts["trained_on"] + step.counts["held_out"] + step.counts["twins"] == len(phrases.hashes)
    assert 0 <= step.details["recall"]["sum R@1"] <= step.details["recall"]["sum R@10"] <= 1


def test_ranges_are_neighbours() -> None:
    """Missing partitions are requested as ranges that hold nothing else."""
    assert ranges(("0", "1", "9", "a", "f")) == [("0", "1"), ("9", "a"), ("f",)]
    assert ranges(()) == []


def test_sensor_runs_by_default_and_says_what_is_wanting(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """Before anything was built the sensor names the command to begin with."""
    assert request_vectors.default_status == dg.DefaultSensorStatus.RUNNING
    words = str(tick(Home(tmp_path, instance)).skip_reason)
    assert "dagster asset materialize --select corpus_phrases" in words
