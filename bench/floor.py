"""``python -m bench.floor --storage DIR --mode c|a``: the table from which a floor on the score is chosen.

Holds: the best score of each calibration phrase whose right code is among ten (held out, noised, paraphrased;
the quarter of the corpus that no evaluation draws from), and how many lines without a diagnosis still give
suggestions at each floor. Refuses: gold lists, dev files and every case an evaluation may ask.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.build import open_published
from alpha_id_runtime.config import resolve
from alpha_id_runtime.errors import AlphaIdError, ProviderError
from alpha_id_runtime.evaluation.adapter import UNFILTERED, corpus_of
from alpha_id_runtime.evaluation.cases import draw_cases
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.pipeline import Request, Suggester

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from alpha_id_runtime.evaluation.cases import Case, CaseKind
    from alpha_id_runtime.model import SuggestResult

LINES = Path(__file__).with_name("lines_without_diagnosis.txt")
# Not the seed of the reranker's training: a floor is not to be chosen on what a ranking was fitted to.
SEED = 20261201
TOP = 10
# A floor may cost this share of the right codes found, in no kind of phrases more.
MOST_LOST = 0.003
_STEP = 0.01
_BATCH = 64
_KINDS: tuple[CaseKind, ...] = ("held_out", "noise", "paraphrase")
# Two minutes in mode C; mode A is slower and must leave its encoder enough to learn from.
_SIZES: dict[str, dict[CaseKind, int]] = {
    "c": {"held_out": 8000, "noise": 8000, "paraphrase": 4000},
    "a": {"held_out": 4000, "noise": 4000, "paraphrase": 2000},
}


@dataclass(frozen=True)
class Scores:
    """Scores without any floor, 0 to 1.

    ``right``: for each kind of phrases, the best score of each whose right code is among ten. ``best``: that
    of each line without a diagnosis, of those that give suggestions; ``lines``: how many lines there are.
    """

    right: dict[str, npt.NDArray[np.float64]]
    best: npt.NDArray[np.float64]
    lines: int

    def lost(self, kind: str, floor: float) -> float:
        """Return the share of the right codes of a kind that a floor takes away with their lines."""
        right = self.right[kind]
        return float((right < floor).mean()) if len(right) else 0.0

    def left(self, floor: float) -> int:
        """Return how many lines without a diagnosis still give suggestions."""
        return int((self.best >= floor).sum())

    def chosen(self, most_lost: float = MOST_LOST) -> float:
        """Return the highest floor, in whole hundredths, that loses no more of any kind."""
        floors = [floor for floor in _floors() if all(self.lost(k, floor) <= most_lost for k in self.right)]
        return max(floors, default=0.0)


def read_lines(path: Path = LINES) -> dict[str, list[str]]:
    """Return the lines without a diagnosis by their kind."""
    kinds: dict[str, list[str]] = {}
    kind = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif line and not line.startswith("#"):
            kinds.setdefault(kind, []).append(line)
    return kinds


def measure(plain: Suggester, apart: Suggester, cases: Sequence[Case], lines: Sequence[str]) -> Scores:
    """Ask ``apart`` the held-out cases, ``plain`` all else, both without a floor.

    In mode A a line that mode C finds alike enough (``fusion.min_lexical``) is above any floor: it counts 1.
    """
    right: dict[str, list[float]] = {}
    for kind in _KINDS:
        own = [case for case in cases if case.kind == kind]
        asked = [(case.text, case.excluded_rows) for case in own]
        answers, alike = _asked(apart if kind == "held_out" else plain, asked)
        right[kind] = [
            1.0 if kept else _best(answer)
            for case, answer, kept in zip(own, answers, alike, strict=True)
            if _holds_right(case, answer)
        ]
    answers, alike = _asked(plain, [(line, frozenset()) for line in lines])
    best = [
        1.0 if kept else _best(answer)
        for answer, kept in zip(answers, alike, strict=True)
        if answer.suggestions
    ]
    return Scores({kind: np.array(each) for kind, each in right.items()}, np.array(best), len(lines))


def _asked(
    suggester: Suggester, asked: Sequence[tuple[str, frozenset[int]]]
) -> tuple[list[SuggestResult], list[bool]]:
    """Return the answers, and of each whether mode A keeps it whatever its score."""
    answers = _ask(suggester, asked)
    if suggester.config.mode == "c":
        return answers, [False] * len(answers)
    lexical = Suggester(suggester.build, replace(suggester.config, mode="c"))
    least = suggester.config.fusion.min_lexical
    return answers, [_best(answer) >= least for answer in _ask(lexical, asked)]


def _best(answer: SuggestResult) -> float:
    return max((each.score for each in answer.suggestions), default=0.0)


def table(scores: Scores) -> str:
    """Return the table, a floor a row up to a little above the chosen one."""
    kinds = list(scores.right)
    head = "floor  " + "  ".join(f"lost {kind:<10}" for kind in kinds) + "  lines left"
    rows = [head]
    chosen = scores.chosen()
    for floor in _floors():
        if floor > chosen + 10 * _STEP:
            break
        lost = "  ".join(f"{scores.lost(kind, floor):>14.2%} " for kind in kinds)
        mark = "  <- chosen" if floor == chosen else ""
        rows.append(f"{floor:.2f}   {lost}  {scores.left(floor):>4} of {scores.lines}{mark}")
    counts = ", ".join(f"{len(right):,} {kind}" for kind, right in scores.right.items())
    return "\n".join([*rows, f"Right codes found among {TOP} without a floor: {counts}."])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a published build and print the table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.floor", description=__doc__)
    parser.add_argument("--storage", type=Path, required=True, metavar="DIR", help="holds a published build")
    parser.add_argument("--mode", choices=["c", "a"], default="c")
    parser.add_argument("--reranker", choices=["fusion", "learned"], help="mode A's (default: as configured)")
    for kind in _KINDS:
        default = " and ".join(f"{sizes[kind]:,} in mode {mode}" for mode, sizes in _SIZES.items())
        parser.add_argument(
            f"--{kind.replace('_', '-')}", type=int, metavar="N", help=f"cases (default {default})"
        )
    parser.add_argument("--seed", type=int, default=SEED, metavar="S")
    parser.add_argument("--verbose", action="store_true", help="name the lines that still give suggestions")
    options = parser.parse_args(arguments)
    flags = {"storage": options.storage, "mode": options.mode, "reranker": options.reranker}
    try:
        config = replace(resolve().with_flags(flags).config, min_score=0.0, filter=UNFILTERED)
        build = open_published(StorageLayout(config.storage))
        given = {kind: getattr(options, kind) for kind in _KINDS}
        counts = {k: n if n is not None else _SIZES[options.mode][k] for k, n in given.items()}
        corpus = corpus_of(build)
        cases = [
            case
            for kind, count in counts.items()
            for case in draw_cases(corpus, kind, count, options.seed, calibration=True)
        ]
        plain = apart = Suggester(build, config)
        if config.mode == "a":
            from alpha_id_assets.evaluating import holdout_semantic  # noqa: PLC0415 -- trains, mode A alone

            apart = Suggester(build, config, semantic=holdout_semantic(build, cases, config, progress=_say))
            # A lexical-only build has no vectors of its own: those made for the held-out cases serve for all.
            plain = apart if build.manifest.lexical_only else plain
        lines = [line for own in read_lines().values() for line in own]
        scores = measure(plain, apart, cases, lines)
        print(table(scores))
        if options.verbose:
            _name(plain, lines, scores.chosen())
    except AlphaIdError as error:
        print(f"bench.floor: {error}", file=sys.stderr)
        return error.exit_code or 1
    return 0


def _floors() -> list[float]:
    return [round(step * _STEP, 2) for step in range(round(1 / _STEP))]


def _ask(suggester: Suggester, asked: Sequence[tuple[str, frozenset[int]]]) -> list[SuggestResult]:
    answers: list[SuggestResult] = []
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        answers += suggester.suggest_many(
            [Request(text, UNFILTERED, TOP, excluded_rows=excluded) for text, excluded in batch]
        )
        if answers[-1].diagnostics.degraded:
            raise ProviderError(str(answers[-1].diagnostics.degraded_reason))
    return answers


def _holds_right(case: Case, answer: SuggestResult) -> bool:
    wanted = {*case.gold, *(code for equals in case.accept for code in equals)}
    return any(
        wanted & {each.icd_code, *(complement.icd_code for complement in each.complements)}
        for each in answer.suggestions
    )


def _name(suggester: Suggester, lines: Sequence[str], floor: float) -> None:
    for line, answer in zip(lines, _ask(suggester, [(line, frozenset()) for line in lines]), strict=True):
        first = max(answer.suggestions, key=lambda each: each.score, default=None)
        if first is not None and first.score >= floor:
            print(f"{first.score:.3f}  {line}  ->  {first.icd_code} {first.matched_phrase}")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
