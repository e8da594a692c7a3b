"""``alpha-id eval``: ask the published build cases by seed, print the figures, leave a page.

Holds: which modes and gold lists are meant, and where output goes. Refuses: any figure, and printing input
text of gold lists from outside.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from alpha_id_runtime.build import open_published
from alpha_id_runtime.cli import builder
from alpha_id_runtime.cli.common import print_json, print_lines, resolved_config, wants_json
from alpha_id_runtime.evaluation.report import fallen, terminal_table
from alpha_id_runtime.evaluation.session import Plan, last_report, run_plan, shipped_gold, write_report
from alpha_id_runtime.layout import StorageLayout

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.evaluation.cases import Case
    from alpha_id_runtime.model import Mode
    from alpha_id_runtime.semantic import Semantic

_MODES: dict[str, tuple[Mode, ...]] = {"c": ("c",), "a": ("a",), "both": ("c", "a")}


def run(options: argparse.Namespace) -> int:
    """Evaluate and return 0, whatever the figures are.

    Raises:
        UsageError: see ``run_plan``; or held-out cases in mode A without the extra that trains.
        ArtefactsMissingError: nothing was published, or mode A is asked for and there are no vectors.
    """
    config = resolved_config(options).config
    storage = StorageLayout(config.storage)
    build = open_published(storage)
    plan = Plan(
        modes=_modes(options.modes, build),
        cases=options.cases,
        seed=options.seed,
        holdout=options.holdout,
        gold=options.gold or shipped_gold(),
        hide_gold=options.gold is not None,
    )
    held_out = _trainer(build, config) if plan.holdout and "a" in plan.modes else None
    started = time.perf_counter()
    result = run_plan(build, config, plan, held_out=held_out, progress=_say)
    before = last_report(storage, result)
    stored = write_report(storage, result, page=options.html)
    _say(f"evaluated in {time.perf_counter() - started:.0f} s")
    fell = fallen(result, before) if before else []
    if wants_json(options):
        print_json(
            {
                **result.to_dict(),
                "fallen": fell,
                "files": {"page": str(stored.page), "figures": str(stored.figures)},
            }
        )
        return 0
    print_lines([terminal_table(result), *fell, "", f"page     {stored.page}", f"figures  {stored.figures}"])
    return 0


def _modes(wanted: str | None, build: Build) -> tuple[Mode, ...]:
    if wanted is None and build.manifest.lexical_only:
        _say("mode C alone: the published build holds no vectors (alpha-id index build --full makes them)")
        return ("c",)
    return _MODES[wanted or "both"]


def _trainer(build: Build, config: Config) -> Callable[[Sequence[Case]], Semantic]:
    """Return what makes vectors for held-out cases.

    Raises:
        UsageError: the packages it needs are not installed.
    """
    evaluating = builder.load(
        "evaluating", "An encoder trained without the held-out cases (--mode c does without)"
    )

    def train(cases: Sequence[Case]) -> Semantic:
        trained: Semantic = evaluating.holdout_semantic(build, cases, config, progress=_say)
        return trained

    return train


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
