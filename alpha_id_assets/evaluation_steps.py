"""The step behind ``eval_report``: evaluate the published build, compare with the last report, keep both.

Holds: which modes may be asked unattended, the note that says which build was evaluated, how many reports are
kept. Refuses: Dagster, and money: nothing here asks a hub that costs any.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from alpha_id_assets.building import Step
from alpha_id_assets.checks.rules import Verdict
from alpha_id_assets.evaluating import holdout_semantic
from alpha_id_runtime.build import open_published
from alpha_id_runtime.errors import AlphaIdError, ArtefactsIncompatibleError, ArtefactsMissingError
from alpha_id_runtime.evaluation.report import fallen, leading_figures, terminal_table
from alpha_id_runtime.evaluation.session import (
    DEFAULT_CASES,
    DEFAULT_SEED,
    Plan,
    last_report,
    run_plan,
    write_report,
)
from alpha_id_runtime.files import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.layout import StorageLayout
    from alpha_id_runtime.model import Mode

NAME = "eval_report"
KEPT_REPORTS = 30
_CURE = "Make it anew with: dagster asset materialize --select eval_report"


def make_eval_report(
    storage: StorageLayout,
    config: Config,
    *,
    cases: int = DEFAULT_CASES,
    seed: int = DEFAULT_SEED,
    gold: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Step:
    """Evaluate the published build on drawn and held-out cases and the lists in ``gold``; write the report.

    The step's details hold ``build_id``, ``page``, ``figures`` (paths), ``leading`` (name -> value),
    ``fallen`` (a sentence each, against the last report on the same cases) and ``table``.

    Raises:
        ArtefactsMissingError: nothing was published.
        UsageError: see ``run_plan``.
    """
    started = time.perf_counter()
    build = open_published(storage)
    modes, warnings = _modes(build, config)
    plan = Plan(modes=modes, cases=cases, seed=seed, holdout=True, gold=gold)
    result = run_plan(
        build,
        config,
        plan,
        held_out=lambda held: holdout_semantic(build, held, config, progress=progress),
        progress=progress,
    )
    before = last_report(storage, result)
    stored = write_report(storage, result, name=NAME)
    details = {
        "build_id": build.manifest.build_id,
        "page": str(stored.page),
        "figures": str(stored.figures),
        "leading": leading_figures(result),
        "fallen": fallen(result, before) if before else [],
        "compared": before is not None,
        "table": terminal_table(result),
    }
    write_json(_note(storage), {name: details[name] for name in ("build_id", "page", "fallen", "compared")})
    _prune(storage)
    counts = {kind: sum(case.kind == kind for case in result.cases) for kind in result.kinds}
    return Step(NAME, counts, round(time.perf_counter() - started, 3), warnings, details)


def evaluated_build(storage: StorageLayout) -> str | None:
    """Return the id of the build that was evaluated last, None where none was."""
    try:
        return str(_read_note(storage)["build_id"])
    except AlphaIdError:
        return None


def figures_hold(storage: StorageLayout) -> Verdict:
    """Return whether no leading figure of the last report fell; in words, which ones did.

    Raises:
        ArtefactsMissingError: there is no report.
        ArtefactsIncompatibleError: its note is damaged.
    """
    note = _read_note(storage)
    fell = [str(sentence) for sentence in note["fallen"]]
    held = (
        "No leading figure fell." if note["compared"] else "There is no report on the same cases to compare."
    )
    return Verdict(not fell, " ".join(fell) or held, {"fallen": len(fell)})


def _read_note(storage: StorageLayout) -> dict[str, Any]:
    try:
        note = read_json(_note(storage), _CURE)
    except FileNotFoundError as error:
        raise ArtefactsMissingError(f"There is no evaluation report yet. {_CURE}") from error
    if not isinstance(note, dict) or not {"build_id", "fallen", "compared"} <= set(note):
        raise ArtefactsIncompatibleError(f"{_note(storage)} is damaged. {_CURE}")
    return note


def _modes(build: Build, config: Config) -> tuple[tuple[Mode, ...], tuple[str, ...]]:
    if build.manifest.lexical_only:
        return ("c",), ()
    if config.reranker == "hub" or (config.provider == "hub" and config.hub.pricing.costs_money):
        return ("c",), (
            "Mode A was left out: it would ask a hub that may cost money. By hand: alpha-id eval --holdout",
        )
    return ("c", "a"), ()


def _note(storage: StorageLayout) -> Path:
    return storage.reports / f"{NAME}.note"


def _prune(storage: StorageLayout) -> None:
    """Remove what lies beyond the newest reports of this step; those of the command line stay."""
    for suffix in ("html", "json"):
        # The moment is in the name.
        for file in sorted(storage.reports.glob(f"{NAME}-*.{suffix}"))[:-KEPT_REPORTS]:
            file.unlink(missing_ok=True)
