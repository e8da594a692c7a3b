"""``python -m alpha_id_assets.reranking``: train the reranker that ships, from a published build.

Holds: the command. Refuses: everything but the calibration quarter of the corpus.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from alpha_id_assets.evaluating import holdout_semantic
from alpha_id_assets.reranking.examples import Examples, draw_calibration, in_context, make_examples, misspelt
from alpha_id_assets.reranking.training import BoostingSettings, train_trees
from alpha_id_runtime.boosting import MODEL
from alpha_id_runtime.build import open_published
from alpha_id_runtime.config import resolve
from alpha_id_runtime.errors import AlphaIdError
from alpha_id_runtime.files import write_atomically
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.rerank import FusionReranker

if TYPE_CHECKING:
    from alpha_id_runtime.evaluation.cases import CaseKind

SEED = 20261130
# Candidates shown of each phrase, more than are judged later: the trees see more of what is wrong.
_SHOWN = 40


def main() -> int:
    """Train and write the model; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m alpha_id_assets.reranking", description=__doc__)
    parser.add_argument("--storage", type=Path, help="holds a published full-size build")
    parser.add_argument("--out", type=Path, default=MODEL)
    parser.add_argument("--folds", type=int, default=2, help="draws, each with a held-out encoder of its own")
    parser.add_argument("--held-out", type=int, default=4000)
    parser.add_argument("--noise", type=int, default=2000)
    parser.add_argument("--paraphrase", type=int, default=1500)
    options = parser.parse_args()
    try:
        config = resolve().with_flags({"storage": options.storage}).config
        build = open_published(StorageLayout(config.storage))
        counts: dict[CaseKind, int] = {
            "held_out": options.held_out,
            "noise": options.noise,
            "paraphrase": options.paraphrase,
        }
        parts: list[Examples] = []
        seen: set[tuple[str, int | None]] = set()
        for fold in range(options.folds):
            drawn = draw_calibration(build, counts, SEED + fold)
            cases = [case for case in drawn if (case.kind, case.source_row) not in seen]
            seen.update((case.kind, case.source_row) for case in cases)
            semantic = holdout_semantic(build, cases, config, progress=_say)
            cases += [*misspelt(build, cases, SEED + fold), *in_context(build, cases, SEED + fold)]
            fusion = FusionReranker(build, semantic.index, replace(config.fusion, learned_pool=_SHOWN), None)
            parts.append(make_examples(build, semantic, fusion, cases, progress=_count))
        examples = Examples.joined(parts)
        note = {
            "seed": SEED,
            "cases": counts,
            "folds": options.folds,
            "editions": [build.manifest.alpha_id.edition, build.manifest.claml.edition],
        }
        model = train_trees(examples, BoostingSettings(), note)
        write_atomically(options.out, json.dumps(model, separators=(",", ":")).encode() + b"\n")
    except AlphaIdError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code or 1
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _count(done: int, total: int) -> None:
    if done % 1024 == 0 or done == total:
        sys.stderr.write(f"examples: {done}/{total}\n")


if __name__ == "__main__":
    sys.exit(main())
