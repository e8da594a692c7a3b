"""The asset ``eval_report``: how good the published build is, as figures over time and a page.

Holds: the asset. Refuses: evaluating (``evaluation_steps``), and holding anything up: nothing depends on it.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg

from alpha_id_assets.assets.publishing import published_index
from alpha_id_assets.assets.reporting import TEAM, failing_in_words, materialised, say
from alpha_id_assets.evaluation_steps import NAME, make_eval_report
from alpha_id_assets.resources import AlphaIdResource
from alpha_id_runtime.evaluation.session import DEFAULT_CASES, DEFAULT_SEED, shipped_gold

EVALUATION = "evaluation"
_TOLD_EVERY = 10.0  # seconds


class EvaluationConfig(dg.Config):
    """What is asked (see ``Plan``): cases, the seed that draws them, whether the gold lists are asked too."""

    cases: int = DEFAULT_CASES
    seed: int = DEFAULT_SEED
    gold: bool = True


@dg.asset(
    name=NAME,
    group_name=EVALUATION,
    owners=TEAM,
    kinds={"html"},
    deps=[published_index],
)
def eval_report(config: EvaluationConfig, alpha_id: AlphaIdResource) -> dg.MaterializeResult[Any]:
    """Recall of the published build with intervals: held out, noise, paraphrase, gold lists; and a page."""
    with failing_in_words():
        step = make_eval_report(
            alpha_id.storage(),
            alpha_id.config(),
            cases=config.cases,
            seed=config.seed,
            gold=shipped_gold() if config.gold else None,
            progress=_teller(),
        )
    page = Path(step.details["page"])
    extra = {
        **{_plotted(name): dg.MetadataValue.float(value) for name, value in step.details["leading"].items()},
        "page": dg.MetadataValue.url(page.absolute().as_uri()),
        "page_file": dg.MetadataValue.path(page),
        "figures_file": dg.MetadataValue.path(step.details["figures"]),
        "build_id": step.details["build_id"],
        "seed": config.seed,
        "table": dg.MetadataValue.md(f"```\n{step.details['table']}\n```"),
    }
    return materialised(step, extra)


def _plotted(name: str) -> str:
    """Return a figure's name as a key: ``held_out a BillableRecall@10`` has blanks."""
    return name.replace(" ", "_")


def _teller() -> Callable[[str], None]:
    """Return a progress function that writes a line now and then."""
    last = 0.0

    def tell(line: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _TOLD_EVERY:
            last = now
            say(f"{NAME:<18} {line}")

    return tell


ASSETS = [eval_report]
