"""``eval_report`` in a real instance: figures as metadata, the page, the warning, and when it runs."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import dagster as dg
import pytest

from alpha_id_assets import evaluation_steps
from alpha_id_assets.building import build_lexical
from alpha_id_assets.evaluation_runs import ATTEMPTS, BUILD_TAG, evaluate_published, nightly_evaluation
from alpha_id_runtime.evaluation.measures import LEADING
from tests.dagster_home import Home, dagster_instance

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = 10


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a published lexical build of the sample."""
    root = tmp_path_factory.mktemp("evaluated")
    with dagster_instance(root) as instance:
        made = Home(root, instance)
        build_lexical(made.storage, made.config(), lambda _: None)
        yield made


@pytest.fixture(scope="module")
def report(home: Home) -> dg.ExecuteInProcessResult:
    """The first evaluation of that build."""
    return evaluate(home)


def evaluate(home: Home) -> dg.ExecuteInProcessResult:
    """Run the job that the schedule and the sensor ask for, with few cases."""
    job = home.definitions().resolve_job_def("evaluate_build")
    asked = {"cases": CASES, "seed": 2, "gold": False}
    config = {"ops": {evaluation_steps.NAME: {"config": asked}}}
    return job.execute_in_process(instance=home.instance, run_config=config, raise_on_error=False)


def tick(home: Home) -> dg.RunRequest | dg.SkipReason:
    """Let the sensor look once."""
    context = dg.build_sensor_context(instance=home.instance, resources={"alpha_id": home.resource()})
    answer = evaluate_published(context)
    assert isinstance(answer, dg.RunRequest | dg.SkipReason)
    return answer


def metadata(result: dg.ExecuteInProcessResult) -> dict[str, dg.MetadataValue]:
    """Return what the UI shows of the asset."""
    [event] = result.get_asset_materialization_events()
    return dict(event.materialization.metadata)


def test_leading_figures_are_plotted_and_the_page_is_linked(
    home: Home, report: dg.ExecuteInProcessResult
) -> None:
    """Figures are floats, held out among them; page and JSON lie in the storage; the check passes."""
    assert report.success
    shown = metadata(report)
    for kind in ("held_out", "noise", "paraphrase", "self"):
        assert isinstance(shown[f"{kind}_c_{LEADING}"], dg.FloatMetadataValue)
    page = Path(urlparse(str(shown["page"].value)).path)
    assert page.parent == home.storage.reports
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert json.loads(Path(str(shown["figures_file"].value)).read_bytes())["cases"]
    assert shown["held_out"].value == CASES
    manifest = home.published()
    assert manifest is not None
    assert shown["build_id"].value == manifest.build_id
    [check] = report.get_asset_check_evaluations()
    assert check.passed


def test_a_fallen_figure_warns(home: Home) -> None:
    """Against a last report on the same cases whose interval begins higher, the check warns and names it."""
    last = Path(str(metadata(evaluate(home))["figures_file"].value))
    better = json.loads(last.read_bytes())
    [block] = [b for b in better["blocks"] if b["kind"] == "held_out"]
    block["figures"][LEADING] |= {"value": 1.0, "low": 0.99}
    (home.storage.reports / "eval-better.json").write_text(json.dumps(better), "utf-8")
    again = evaluate(home)
    assert again.success
    [check] = again.get_asset_check_evaluations()
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "held_out" in str(check.description)
    assert "fell from 1.000" in str(check.description)


def test_a_new_build_is_evaluated_at_once(home: Home, report: dg.ExecuteInProcessResult) -> None:
    """The sensor asks once a build is published that the last report is not of, however it was published."""
    assert report.success
    assert isinstance(tick(home), dg.SkipReason)
    note = home.storage.reports / "eval_report.note"
    before = note.read_text("utf-8")
    try:
        note.unlink()
        manifest = home.published()
        assert manifest is not None
        asked = tick(home)
        assert isinstance(asked, dg.RunRequest)
        assert (asked.run_key, asked.tags) == (
            f"{manifest.build_id}:1",
            {BUILD_TAG: manifest.build_id},
        )
        for _ in range(ATTEMPTS):
            job = home.definitions().resolve_job_def("evaluate_build")
            home.instance.create_run_for_job(job, tags=asked.tags, status=dg.DagsterRunStatus.FAILURE)
        given_up = tick(home)
        assert isinstance(given_up, dg.SkipReason)
        assert "by hand" in str(given_up.skip_message)
    finally:
        note.write_text(before, "utf-8")


def test_no_second_evaluation_beside_one_that_runs(tmp_path: Path, home: Home) -> None:
    """While one is under way the sensor waits; with nothing published it says so."""
    empty = Home(tmp_path, home.instance)
    assert "Nothing is published" in str(tick(empty).skip_message)  # type: ignore[union-attr]
    note = home.storage.reports / "eval_report.note"
    before = note.read_text("utf-8") if note.exists() else None
    note.unlink(missing_ok=True)
    job = home.definitions().resolve_job_def("evaluate_build")
    running = home.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    try:
        assert "under way" in str(tick(home).skip_message)  # type: ignore[union-attr]
    finally:
        home.instance.delete_run(running.run_id)
        if before is not None:
            note.write_text(before, "utf-8")


def test_it_is_scheduled_nightly_and_on_by_default(home: Home) -> None:
    """One run a night, of the whole job; sensor and schedule run without being switched on."""
    assert nightly_evaluation.default_status == dg.DefaultScheduleStatus.RUNNING
    assert evaluate_published.default_status == dg.DefaultSensorStatus.RUNNING
    context = dg.build_schedule_context(
        scheduled_execution_time=dt.datetime(2026, 3, 1, 2, 30, tzinfo=dt.UTC)
    )
    tick_data = nightly_evaluation.evaluate_tick(context)
    assert len(tick_data.run_requests or ()) == 1
    repository = home.definitions().get_repository_def()
    assert repository.has_schedule_def("nightly_evaluation")
    assert repository.has_sensor_def("evaluate_published")
    assert repository.has_sensor_def("request_vectors")


def test_old_reports_go_and_those_of_the_command_line_stay(
    home: Home, report: dg.ExecuteInProcessResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest of its own are kept, so that a nightly run does not fill the disk."""
    assert report.success
    monkeypatch.setattr(evaluation_steps, "KEPT_REPORTS", 2)
    folder = home.storage.reports
    for moment in ("20200101", "20200102"):
        (folder / f"eval_report-{moment}.html").write_text("old", "utf-8")
    (folder / "eval-20200101.html").write_text("by hand", "utf-8")
    assert evaluate(home).success
    kept = sorted(file.name for file in folder.glob("eval_report-*.html"))
    assert len(kept) == 2
    assert not any(name.startswith("eval_report-2020") for name in kept)
    assert (folder / "eval-20200101.html").is_file()
