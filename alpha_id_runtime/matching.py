"""One line of the input on its way to codes: what of it is matched, which rows may be found, its best codes.

Holds: the steps that both modes share, each for one line. Refuses: modes, and the one list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.assembly import CodeHit
from alpha_id_runtime.lexical_ranking import EXACT_SCORE, TWIN_SCORE, RankedRows
from alpha_id_runtime.model import Filter
from alpha_id_runtime.phrases import written_codes

if TYPE_CHECKING:
    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.filters import CodeFilter
    from alpha_id_runtime.model import Segment

# Below an equal valid phrase, above anything less alike.
_INVALID_FACTOR = 0.999
# Children of a code that was subdivided: the unspecified one first, the others beside it.
_GAP_STEP = 0.002
# The codes of a line keep the order in which it names them.
_PLACE_STEP = 1e-6
# A longer line is no dictated diagnosis; its head is matched.
MAX_LINE = 1000


class Allow:
    """Which rows may become candidates under a filter and an exclusion set; verdicts are kept by code."""

    def __init__(self, build: Build, passing: CodeFilter, excluded: frozenset[int]) -> None:
        """Take the rows that are left out whatever the filter says (evaluation)."""
        self._phrases = build.phrases
        self._passing = passing
        self.excluded = len(excluded)
        self._excluded = np.fromiter(excluded, dtype=np.int64, count=len(excluded))

    def __call__(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return, for each row, whether it may be a candidate."""
        numbers = self._phrases.code_index[rows]
        distinct, place = np.unique(numbers, return_inverse=True)
        passes = np.array(
            [self._passing.verdict(self._phrases.codes[number]).passes for number in distinct], dtype=np.bool_
        )
        mask: npt.NDArray[np.bool_] = passes[place] & ~np.isin(rows, self._excluded)
        return mask & self._phrases.valid[rows] if self._passing.valid_only else mask


@dataclass(frozen=True)
class Task:
    """One line to match: ``text`` without the codes written in it, empty where nothing else is left."""

    segment: Segment
    text: str
    written: tuple[str, ...]
    passing: CodeFilter
    allow: Allow | None
    top: int


def make_task(
    build: Build, segment: Segment, passing: CodeFilter, excluded: frozenset[int], top: int
) -> Task:
    """Return what is to be matched of a line, and under which restrictions."""

    def is_category(code: str) -> bool:
        return code in build.codes and build.codes.value(code, "kind") == "category"

    written, rest = written_codes(segment.text[:MAX_LINE], is_category)
    return Task(
        segment,
        rest if has_text(rest) else "",
        written,
        passing,
        None if passing.wanted == Filter() and not excluded else Allow(build, passing, excluded),
        top,
    )


def has_text(text: str) -> bool:
    """Tell whether a line holds a letter or a digit at all."""
    return any(character.isalnum() for character in text)


def code_hits(build: Build, task: Task, ranked: RankedRows | None) -> tuple[CodeHit, ...]:
    """Return the codes found for a line, best first, at most ``task.top``.

    ``ranked`` are the rows its text found; the codes written in the line come on top.
    """
    rows, scores = _rows_of_written(build, task)
    if ranked is not None:
        rows, scores = np.concatenate([rows, ranked.rows]), np.concatenate([scores, ranked.scores])
    rows, scores = best_of_each_code(build, rows, scores)
    # By score alone: what is in conflict stays, and goes to the end of the list when that is put together.
    rows, scores = rows[: task.top], scores[: task.top]
    names = [build.phrases.codes[number] for number in build.phrases.code_index[rows]]
    hits = [
        CodeHit(code, row, score, task.passing.verdict(code).conflict)
        for code, row, score in zip(names, rows.tolist(), scores.tolist(), strict=True)
    ]
    hits.sort(key=lambda hit: (-hit.score, hit.code))
    return tuple(hits)


def best_of_each_code(
    build: Build, rows: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the best row of each code with its score, best first; ties go to the lower row.

    Phrases of validity 0 come right below equal valid ones, children of a subdivided code in their order.
    """
    phrases = build.phrases
    adjusted = scores * np.where(phrases.valid[rows], 1.0, _INVALID_FACTOR)
    adjusted *= 1 - _GAP_STEP * phrases.gap_rank[rows]
    order = np.lexsort((rows, -adjusted))
    _, first = np.unique(phrases.code_index[rows[order]], return_index=True)
    kept = order[np.sort(first)]
    return rows[kept], adjusted[kept]


def _rows_of_written(build: Build, task: Task) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return rows and scores of the codes a line names: a terminal one itself, others by their children."""
    found: list[tuple[int, float]] = []
    for place, code in enumerate(task.written):
        for rank, leaf in enumerate(build.codes.terminal_descendants(code)):
            rows = build.phrases.rows_of(leaf)
            rows = rows if task.allow is None else rows[task.allow(rows)]
            if len(rows):
                score = (EXACT_SCORE if leaf == code else TWIN_SCORE) * (1 - _GAP_STEP * rank)
                found.append((_title_row(build, rows), score - _PLACE_STEP * place))
    return (
        np.array([row for row, _ in found], dtype=np.int64),
        np.array([score for _, score in found], dtype=np.float64),
    )


def _title_row(build: Build, rows: npt.NDArray[np.int64]) -> int:
    """Return the row of the code's title, else its first valid one, else its first."""
    titles = rows[build.phrases.is_title[rows]]
    valid = rows[build.phrases.valid[rows]]
    return int(np.concatenate([titles, valid, rows])[0])
