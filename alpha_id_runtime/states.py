"""What a phrase says of time and side, applied to the codes found.

Holds: raising history, sequela and state codes where the disease lies behind, and the siblings of the side
said. Refuses: adding a code that was not found, and taking one away: both readings compete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.hierarchy import says_unspecified
from alpha_id_runtime.lexical_ranking import TWIN_SCORE
from alpha_id_runtime.ranked import RankedRows
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.matching import Task
    from alpha_id_runtime.understanding.reading import Reading

# Source: coding.md, "Zustand nach"; Z80 to Z84 are the family's.
_BEHIND = (
    *(f"Z{number}" for number in range(85, 100)),
    *(f"T{number}" for number in range(90, 99)),
    "B90", "B91", "B92", "B93", "B94", "E64", "E68", "G09", "I25.2", "I69", "O94", "U08.9", "U09.9",
)  # fmt: skip
_STATE = "state"
_RAISED, _PRESENT, _FRAME_ALONE = 1.2, 0.97, 0.5
# From this score on, the disease itself is one that the corpus knows.
_KNOWN = 0.8
_ONE_SIDE, _BOTH_SIDES = ("einseitig",), ("beidseitig", "doppelseitig", "bilateral")
_OTHER_SIDE = 0.9
_CATEGORY = 3


def apply_past(build: Build, task: Task, ranked: RankedRows) -> RankedRows:
    """Return the ranking with codes for what lies behind raised, where a text that says so found them.

    What is merely alike stays below what is the same.
    """
    said = np.array([query.how.startswith(_STATE) for query in task.queries], dtype=np.bool_)
    if not said.any() or not len(ranked.rows):
        return ranked
    by_frame = said[ranked.queries]
    behind = np.array([code.startswith(_BEHIND) for code in build.phrases.codes_of(ranked.rows)]) & by_frame
    if behind.any():
        raised = np.maximum(ranked.scores, np.minimum(ranked.scores * _RAISED, TWIN_SCORE))
        present = ranked.scores * _PRESENT if task.reading.past else ranked.scores
        scores = np.where(behind, raised, present)
    else:
        scores = ranked.scores
    if ranked.scores[~by_frame].max(initial=0.0) < _KNOWN:
        # "Fraktur in der Eigenanamnese" shares with "Z.n. ERCP" what frames it, and nothing of what was had.
        disease = build.units.of_text(normalise(task.reading.core))
        strange = by_frame & (build.units.dice([disease], ranked.rows) == 0)
        scores = np.where(strange, ranked.scores * _FRAME_ALONE, scores)
    return RankedRows(ranked.rows, scores, ranked.queries)


def apply_side(build: Build, reading: Reading, ranked: RankedRows) -> RankedRows:
    """Return the ranking with siblings of another side than the one said stepping back.

    Where both sides are said and the best code of a category says one, or that nothing was said, its sibling
    that says both takes the score. Categories whose titles do not speak of sides are left alone.
    """
    if reading.laterality is None or not len(ranked.rows):
        return ranked
    codes = build.phrases.codes_of(ranked.rows)
    titles = [build.codes.title(code).lower() for code in codes]
    one, both = (_says(titles, words) for words in (_ONE_SIDE, _BOTH_SIDES))
    both &= ~one
    other = (one if reading.laterality == "B" else both) & (ranked.scores < TWIN_SCORE)
    scores = np.where(other, ranked.scores * _OTHER_SIDE, ranked.scores)
    if reading.laterality == "B" and both.any():
        categories = np.array([code[:_CATEGORY] for code in codes])
        for category in set(categories[both].tolist()):
            of_category = categories == category
            best = int(np.argmax(np.where(of_category, ranked.scores, -np.inf)))
            if one[best] or says_unspecified(titles[best]):
                leading = int(np.argmax(np.where(of_category & both, scores, -np.inf)))
                scores[leading] = max(scores[leading], ranked.scores[best])
    return RankedRows(ranked.rows, scores, ranked.queries)


def _says(titles: list[str], words: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    return np.array([any(word in title for word in words) for title in titles], dtype=np.bool_)
