"""The lexical slice in Dagster: a real instance in a temporary home, and the command line as typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import pytest
import yaml

from alpha_id_assets.building import build_lexical
from alpha_id_assets.checks.rules import edition_before, within_band
from alpha_id_assets.definitions import assemble
from alpha_id_assets.publishing import make_manifest
from alpha_id_runtime.manifest import Manifest, SourceNote
from tests.dagster_home import ROOT, Home, dagster_instance, typed_in_bash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEXICAL = {
    "alpha_id_entries": set(),
    "icd_meta": set(),
    "corpus_phrases": {"alpha_id_entries", "icd_meta"},
    "tantivy_index": {"corpus_phrases"},
    "published_index": {"alpha_id_entries", "icd_meta", "corpus_phrases", "tantivy_index"},
}


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """A real instance of this module's own."""
    with dagster_instance(tmp_path_factory.mktemp("instance")) as made:
        yield made


@pytest.fixture
def home(tmp_path: Path, instance: dg.DagsterInstance) -> Home:
    """A home over the sample that ships."""
    return Home(tmp_path, instance)


@pytest.fixture(scope="module")
def built(
    tmp_path_factory: pytest.TempPathFactory, instance: dg.DagsterInstance
) -> tuple[Home, dg.ExecuteInProcessResult]:
    """A home whose lexical build has run once."""
    made = Home(tmp_path_factory.mktemp("built"), instance)
    return made, made.run_job("lexical_build")


def _verdicts(result: dg.ExecuteInProcessResult) -> dict[str, tuple[bool, dg.AssetCheckSeverity]]:
    return {each.check_name: (each.passed, each.severity) for each in result.get_asset_check_evaluations()}


def _metadata(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, object]:
    [event] = [
        event for event in result.get_asset_materialization_events() if event.asset_key == dg.AssetKey(asset)
    ]
    return {name: value.value for name, value in event.materialization.metadata.items()}


def test_graph_reads_like_the_architecture() -> None:
    """Each asset stands behind those it is made of, and all have an owner, a group and a description."""
    graph = assemble().resolve_asset_graph()
    for name, parents in LEXICAL.items():
        node = graph.get(dg.AssetKey(name))
        assert {key.to_user_string() for key in node.parent_keys} >= parents
        assert node.owners
        assert node.description
        assert node.group_name != "default"


def test_lexical_build_publishes_and_shows_what_it_did(built: tuple[Home, dg.ExecuteInProcessResult]) -> None:
    """One job goes from files to a published build; each asset shows counts, seconds and a preview."""
    home, result = built
    assert result.success
    manifest = home.published()
    assert manifest is not None
    assert manifest.lexical_only
    for name in LEXICAL:
        shown = _metadata(result, name)
        assert shown["seconds"] >= 0
        assert str(shown["preview"]).startswith("| ")
    assert _metadata(result, "alpha_id_entries")["rows"] == manifest.counts["entries"]
    assert _metadata(result, "icd_meta")["edition"] == manifest.claml.edition
    assert _metadata(result, "published_index")["build_id"] == manifest.build_id


def test_codes_unknown_to_claml_warn_with_their_list(built: tuple[Home, dg.ExecuteInProcessResult]) -> None:
    """A code that ClaML lacks is a warning that names it; all other checks pass."""
    _, result = built
    verdicts = _verdicts(result)
    assert verdicts.pop("codes_known_to_claml") == (False, dg.AssetCheckSeverity.WARN)
    assert {passed for passed, _ in verdicts.values()} == {True}
    [warning] = [each for each in result.get_asset_check_evaluations() if not each.passed]
    assert "Q87.4 (1)" in str(warning.description)


def test_failed_check_leaves_the_build_before_in_place(home: Home) -> None:
    """A file cut short stops the run before publishing, and a run of publishing alone verifies again."""
    home.put(2025)
    build_lexical(home.storage, home.resource(**{"build.edition": 2025}).config(), lambda _: None)
    before = home.published()
    home.put(2026, rows=300)
    result = home.run_job("lexical_build", **{"build.edition": 2026})
    assert not result.success
    assert _verdicts(result)["entries_near_edition_before"] == (False, dg.AssetCheckSeverity.ERROR)
    assert "published_index" not in {event.step_key for event in result.get_step_success_events()}
    assert home.published() == before

    for name in ("corpus_phrases", "tantivy_index"):
        assert _materialise(home, name).success
    [failure] = _materialise(home, "published_index").get_step_failure_events()
    assert "outside the band" in failure.step_failure_data.user_failure_data.description
    assert home.published() == before

    home.settings["build.row_band"] = 9
    assert _materialise(home, "published_index").success
    assert home.published() != before


def _materialise(home: Home, name: str) -> dg.ExecuteInProcessResult:
    """Materialise one asset without its checks."""
    definitions = home.definitions(**{"build.edition": 2026})
    return dg.materialize(
        [each for each in definitions.assets or () if isinstance(each, dg.AssetsDefinition)],
        selection=[name],
        instance=home.instance,
        resources=definitions.resources,
        raise_on_error=False,
    )


def test_asset_materialize_works_as_typed(
    built: tuple[Home, dg.ExecuteInProcessResult], tmp_path: Path
) -> None:
    """With the environment file sourced the command makes the index; before, one paragraph names the cure."""
    command = "dagster asset materialize --select tantivy_index"
    early = typed_in_bash(command, tmp_path / "empty")
    assert early.returncode == 1
    assert "Make it with: dagster asset materialize --select corpus_phrases" in early.stderr
    assert "Traceback" not in early.stderr
    assert "Stack Trace" not in early.stderr

    done = typed_in_bash(command, built[0].storage.root)
    assert done.returncode == 0, done.stderr
    assert "tantivy_index" in done.stderr


def test_environment_file_works_wherever_the_checkout_lies(tmp_path: Path) -> None:
    """It makes an absolute DAGSTER_HOME with telemetry off, and keeps one that is there."""
    relative = typed_in_bash(
        'cd / && source "$OLDPWD/alpha-id.env" && echo "$DAGSTER_HOME $DAGSTER_MODULE_NAME"', tmp_path / "own"
    )
    home = tmp_path / "own" / "dagster"
    assert relative.stdout.split() == [str(home), "alpha_id_assets.definitions"]
    assert yaml.safe_load((home / "dagster.yaml").read_text())["telemetry"] == {"enabled": False}
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    typed_in_bash("true", tmp_path / "own")
    assert (home / "dagster.yaml").read_text() == "telemetry:\n  enabled: false\n"


def test_workspace_names_the_one_code_location() -> None:
    """The workspace file loads the module that the environment file names."""
    workspace = yaml.safe_load((ROOT / "workspace.yaml").read_text())
    assert workspace == {
        "load_from": [
            {"python_module": {"module_name": "alpha_id_assets.definitions", "location_name": "alpha_id"}}
        ]
    }


def _manifest(edition: int, *, sample: bool, entries: int = 1000) -> Manifest:
    return make_manifest(
        corpus_hash=f"c{edition}",
        codes_hash="m",
        fingerprint=None,
        alpha_id=SourceNote(edition, "a", "0"),
        claml=SourceNote(edition, "b", "0"),
        counts={"entries": entries},
        warnings=(),
        settings={"sample": sample},
    )


def test_sample_and_official_files_are_never_compared() -> None:
    """The edition before is the newest kept build of another edition and of the same kind."""
    kept = [_manifest(2026, sample=False), _manifest(2025, sample=True), _manifest(2024, sample=False)]
    assert edition_before(kept, sample=False, alpha_id=2026) is kept[2]
    assert edition_before(kept, sample=True, alpha_id=2026) is kept[1]
    assert edition_before(kept[:2], sample=False, alpha_id=2026) is None


@pytest.mark.parametrize(("rows", "passed"), [(800, True), (799, False), (1250, True), (1251, False)])
def test_band_is_the_same_in_both_directions(rows: int, *, passed: bool) -> None:
    """A quarter more is allowed, and so is what a quarter more would lead back from."""
    assert within_band("entries", rows, _manifest(2025, sample=False), 0.25).passed is passed
