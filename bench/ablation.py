"""``python -m bench.ablation --storage DIR --mode c|a [SETTING=VALUE ...]``: what a setting is worth.

Holds: the same cases asked under the settings as they are and under each change, R@1, R@5, R@10 with the
paired difference and its interval. Refuses: choosing. ``--calibration`` asks the quarter of the corpus that
settings may be chosen on; without it the evaluation's own cases are asked, to report and never to choose.
``recipe.SETTING=VALUE`` trains the encoder otherwise (``alpha_id_assets.encoding.settings``), minutes each.

Examples:
  python -m bench.ablation --mode c --calibration lexical.agreement_weight=0 lexical.word_weight=0
  python -m bench.ablation --mode a reading.enabled=false reranker=fusion recipe.noised=0
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_assets.encoding.settings import TrainingSettings
from alpha_id_assets.evaluating import holdout_semantic
from alpha_id_runtime.build import open_published
from alpha_id_runtime.config import resolve
from alpha_id_runtime.errors import AlphaIdError, UsageError
from alpha_id_runtime.evaluation.adapter import corpus_of
from alpha_id_runtime.evaluation.cases import draw_cases
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.pipeline import Request, Suggester
from bench.report import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import Resolved
    from alpha_id_runtime.evaluation.cases import Case, CaseKind
    from alpha_id_runtime.semantic import Semantic

    Ranks = npt.NDArray[np.int64]

CUTS = (1, 5, 10)
_MISSED = 99
_RECIPE = "recipe."
_BATCH = 50
_DRAWS = 2000


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0, or the exit code of the error."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.ablation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--storage", type=Path, help="holds the published build (default: storage/)")
    parser.add_argument("--mode", choices=["c", "a"], default="c")
    parser.add_argument("--kind", choices=["held_out", "noise", "paraphrase"], default="held_out")
    parser.add_argument("--cases", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calibration", action="store_true", help="cases that settings may be chosen on")
    parser.add_argument("changes", nargs="*", metavar="SETTING=VALUE", help="joined by commas: one change")
    options = parser.parse_args(arguments)
    try:
        resolved = resolve().with_flags({"storage": options.storage, "mode": options.mode})
        sys.stdout.write(f"{_measure(resolved, options)}")
    except AlphaIdError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code or 1
    return 0


def _measure(resolved: Resolved, options: argparse.Namespace) -> Table:
    build = open_published(StorageLayout(resolved.config.storage))
    kind: CaseKind = options.kind
    cases = draw_cases(corpus_of(build), kind, options.cases, options.seed, calibration=options.calibration)
    learns = options.mode == "a" and kind == "held_out"
    semantic = holdout_semantic(build, cases, resolved.config, progress=_say) if learns else None
    plain = _ranks(build, resolved, semantic, cases)
    rows = [("as configured", *_shares(plain), "", "")]
    for change in options.changes:
        flags = dict(part.split("=", 1) for part in change.split(","))
        recipe = {key.removeprefix(_RECIPE): flags.pop(key) for key in list(flags) if key.startswith(_RECIPE)}
        own = semantic
        if recipe:
            own = holdout_semantic(
                build, cases, resolved.config, settings=_recipe(recipe, learns=learns), progress=_say
            )
        changed = _ranks(build, resolved.with_flags(flags), own, cases)
        rows.append((change, *_shares(changed), *(_difference(plain, changed, cut) for cut in (1, 10))))
    side = "calibration" if options.calibration else "evaluation"
    return Table(
        f"Mode {options.mode.upper()}, {len(cases)} {kind} cases of the {side} side, seed {options.seed}",
        (*(f"R@{cut}" for cut in CUTS), "R@1 against the first line, 95 %", "R@10 against it"),
        tuple(rows),
    )


def _ranks(build: Build, resolved: Resolved, semantic: Semantic | None, cases: Sequence[Case]) -> Ranks:
    suggester = Suggester(build, resolved.config, semantic=semantic)
    ranks = np.full(len(cases), _MISSED)
    for start in range(0, len(cases), _BATCH):
        batch = cases[start : start + _BATCH]
        answers = suggester.suggest_many([Request(c.text, excluded_rows=c.excluded_rows) for c in batch])
        for place, (case, answer) in enumerate(zip(batch, answers, strict=True)):
            wanted = {*case.gold, *(code for equals in case.accept for code in equals)}
            for rank, suggestion in enumerate(answer.suggestions):
                if wanted & {suggestion.icd_code, *(each.icd_code for each in suggestion.complements)}:
                    ranks[start + place] = rank
                    break
    return ranks


def _shares(ranks: Ranks) -> tuple[str, ...]:
    return tuple(f"{float((ranks < cut).mean()):.3f}" for cut in CUTS)


def _recipe(changes: dict[str, str], *, learns: bool) -> TrainingSettings:
    if not learns:
        raise UsageError("recipe.* trains an encoder for held-out cases: ask with --mode a --kind held_out.")
    plain = asdict(TrainingSettings())
    unknown = changes.keys() - plain.keys()
    if unknown:
        raise UsageError(
            f"recipe.{min(unknown)} is no setting of the training; there are {', '.join(plain)}."
        )
    return replace(TrainingSettings(), **{key: type(plain[key])(value) for key, value in changes.items()})


def _difference(plain: Ranks, changed: Ranks, cut: int) -> str:
    """Return the paired difference of R@cut with its bootstrap interval."""
    gain = (changed < cut).astype(float) - (plain < cut)
    drawn = np.random.default_rng(0).integers(0, len(gain), (_DRAWS, len(gain)))
    low, high = np.percentile(gain[drawn].mean(axis=1), [2.5, 97.5])
    return f"{gain.mean():+.3f} ({low:+.3f} to {high:+.3f})"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
