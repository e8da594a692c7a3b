"""Training examples of the learned reranker: candidate codes of phrases whose code is known.

Holds: five kinds of phrases, all of the calibration quarter: held out (the entry and its twins are no
candidates and were not seen by the encoder), some of these misspelt, noised and paraphrased (as dictated, the
entry is a candidate), and entries, held out or not, among words that have nothing to do with their code.
Refuses: every evaluation case, gold list and dev file: the draw takes the other side of the split.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.config import LexicalConfig, SemanticConfig
from alpha_id_runtime.evaluation.adapter import corpus_of
from alpha_id_runtime.evaluation.cases import case_rng, draw_cases
from alpha_id_runtime.evaluation.noise import NoiseRates, add_noise
from alpha_id_runtime.lexical_ranking import TWIN_SCORE, rank_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.evaluation.cases import Case, CaseKind
    from alpha_id_runtime.rerank import FusionReranker
    from alpha_id_runtime.semantic import Semantic

    Progress = Callable[[int, int], None]

_BATCH = 64
_JOINTS = ("", "", ",", " bei", " nach", " mit", " in der", " am", " unter")
_WORDS_BESIDE = (1, 1, 2, 3)
_BEHIND = 0.9  # the share of contexts that follow


@dataclass(frozen=True)
class Examples:
    """Features (n, features), whether each row is the right code (n,), and the phrase it belongs to (n,)."""

    features: npt.NDArray[np.float32]
    right: npt.NDArray[np.bool_]
    phrase: npt.NDArray[np.int64]

    def part(self, chosen: npt.NDArray[np.bool_]) -> Examples:
        """Return the chosen rows (n,)."""
        return Examples(self.features[chosen], self.right[chosen], self.phrase[chosen])

    @classmethod
    def joined(cls, parts: Sequence[Examples]) -> Examples:
        """Return all rows of ``parts``, their phrases numbered on."""
        firsts = np.cumsum([0, *(int(part.phrase.max(initial=-1)) + 1 for part in parts)])
        return cls(
            np.vstack([part.features for part in parts]),
            np.concatenate([part.right for part in parts]),
            np.concatenate([part.phrase + first for part, first in zip(parts, firsts[:-1], strict=True)]),
        )


def draw_calibration(build: Build, counts: dict[CaseKind, int], seed: int) -> list[Case]:
    """Return the cases to learn from, drawn by ``seed`` from the calibration quarter."""
    corpus = corpus_of(build)
    return [
        case
        for kind, count in counts.items()
        for case in draw_cases(corpus, kind, count, seed, calibration=True)
    ]


def misspelt(build: Build, cases: Sequence[Case], seed: int) -> list[Case]:
    """Return every second held-out case in a noised copy: a new wording, and badly dictated."""
    taken = frozenset(build.phrases.column("norm"))
    copies = []
    for case in [case for case in cases if case.kind == "held_out"][::2]:
        made = add_noise(case.text, case_rng(seed, "misspelt", case.id), NoiseRates(), taken)
        if made:
            copies.append(replace(case, id=f"misspelt-{case.id}", text=made[0], done=made[1]))
    return copies


def in_context(build: Build, cases: Sequence[Case], seed: int) -> list[Case]:
    """Return copies with a few words of another case before or behind: every second held-out and noised one.

    A line of a real list says more than its diagnosis ("in der Terminalphase", "nach Langzeitbeatmung"), an
    entry of the corpus hardly ever: without these, a word that no phrase of the code says would decide. Of a
    noised case the entry itself is taken. What stands first leads, even where all words of another diagnosis
    follow: parts of a line are asked by themselves, too.
    """
    texts = build.phrases.texts([case.source_row or 0 for case in cases])
    apart = [(case, text) for case, text in zip(cases, texts, strict=True) if case.kind == "held_out"][1::2]
    known = [(case, text) for case, text in zip(cases, texts, strict=True) if case.kind == "noise"][::2]
    copies = []
    for case, text in apart + known:
        rng = case_rng(seed, "context", case.id)
        other = cases[rng.randrange(len(cases))]
        words = other.text.split()
        first = rng.randrange(len(words))
        said = words[first : first + rng.choice(_WORDS_BESIDE)]
        beside = " ".join(said).strip("(),;.:[]")
        behind = f"{text}{rng.choice(_JOINTS)} {beside}"
        copies.append(
            replace(
                case,
                id=f"context-{case.id}",
                text=behind if rng.random() < _BEHIND else f"{beside} {text}",
                done=("context",),
            )
        )
    return copies


def make_examples(
    build: Build,
    semantic: Semantic,
    fusion: FusionReranker,
    cases: Sequence[Case],
    *,
    progress: Progress | None = None,
) -> Examples:
    """Return what the reranker would see for each case.

    Phrases that stand in the corpus literally are left out: they never reach the reranker.
    """
    lexical_settings, semantic_settings = LexicalConfig(), SemanticConfig()
    features, right, phrase = [], [], []
    for start in range(0, len(cases), _BATCH):
        batch = cases[start : start + _BATCH]
        allows = [_Without(case.excluded_rows) for case in batch]
        near = semantic.neighbours([case.text for case in batch], semantic_settings.pool, allows, None)
        for place, (case, allow, around) in enumerate(zip(batch, allows, near, strict=True)):
            [lexical] = rank_rows(build, [case.text], lexical_settings, [allow])
            if (lexical.scores >= TWIN_SCORE).any():
                continue
            pool, total = fusion.pools([case.text], [lexical], [around], [allow])
            if not len(total):
                continue
            speakers, own = fusion.judged([case.text], pool, total, [allow])
            wanted = {*case.gold, *(code for equals in case.accept for code in equals)}
            features.append(own)
            right.append([build.phrases.codes[number] in wanted for number in pool.codes[speakers]])
            phrase.append(np.full(len(own), start + place))
        if progress:
            progress(min(start + _BATCH, len(cases)), len(cases))
    return Examples(np.vstack(features), np.concatenate(right).astype(np.bool_), np.concatenate(phrase))


class _Without:
    """Lets every row pass but those held out."""

    def __init__(self, excluded: frozenset[int]) -> None:
        self.excluded = len(excluded)
        self._rows = np.fromiter(excluded, dtype=np.int64, count=len(excluded))

    def __call__(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        return ~np.isin(rows, self._rows)
