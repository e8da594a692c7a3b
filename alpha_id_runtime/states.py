"""What a phrase says of time and side, applied to the codes found.

Holds: raising history, sequela and state codes where the disease lies behind, and the siblings of the side
said. Refuses: adding a code that was not found, and taking one away: both readings compete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.lexical_ranking import EXACT_SCORE, TWIN_SCORE
from alpha_id_runtime.ranked import RankedRows

if TYPE_CHECKING:
    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.understanding.reading import Reading

# Source: coding.md, "Zustand nach".
_BEHIND = (
    *(f"Z{number}" for number in range(80, 100)),
    *(f"T{number}" for number in range(90, 99)),
    "B90", "B91", "B92", "B93", "B94", "E64", "E68", "G09", "I25.2", "I69", "O94", "U08.9", "U09.9",
)  # fmt: skip
_RAISED, _PRESENT = 1.2, 0.97
_ONE_SIDE, _BOTH_SIDES = ("einseitig",), ("beidseitig", "doppelseitig", "bilateral")
_OTHER_SIDE = 0.9
_CATEGORY = 3


def apply_past(build: Build, reading: Reading, ranked: RankedRows) -> RankedRows:
    """Return the ranking with codes for what lies behind raised where the line says that it does."""
    if not reading.past or not len(ranked.rows):
        return ranked
    codes = _codes(build, ranked)
    behind = np.array([code.startswith(_BEHIND) for code in codes], dtype=np.bool_)
    if not behind.any():
        return ranked
    raised = np.minimum(ranked.scores * _RAISED, EXACT_SCORE)
    return RankedRows(ranked.rows, np.where(behind, raised, ranked.scores * _PRESENT), ranked.queries)


def apply_side(build: Build, reading: Reading, ranked: RankedRows) -> RankedRows:
    """Return the ranking with siblings of another side than the one said stepping back.

    Where both sides are said and the best code of a category says one, its sibling that says both takes the
    score. Categories whose titles do not speak of sides are left alone.
    """
    if reading.laterality is None or not len(ranked.rows):
        return ranked
    other = _says(build, ranked, _ONE_SIDE if reading.laterality == "B" else _BOTH_SIDES)
    if not other.any():
        return ranked
    scores = ranked.scores.copy()
    if reading.laterality == "B":
        both = _says(build, ranked, _BOTH_SIDES) & ~other
        categories = np.array([code[:_CATEGORY] for code in _codes(build, ranked)])
        for category in set(categories[both].tolist()):
            of_category = categories == category
            leading = np.argmax(np.where(of_category & both, scores, -np.inf))
            best = np.max(np.where(of_category, scores, -np.inf))
            scores[leading] = max(scores[leading], best)
    other &= scores < TWIN_SCORE
    return RankedRows(ranked.rows, np.where(other, scores * _OTHER_SIDE, scores), ranked.queries)


def _says(build: Build, ranked: RankedRows, words: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    titles = [build.codes.title(code).lower() for code in _codes(build, ranked)]
    return np.array([any(word in title for word in words) for title in titles], dtype=np.bool_)


def _codes(build: Build, ranked: RankedRows) -> list[str]:
    return [build.phrases.codes[number] for number in build.phrases.code_index[ranked.rows]]
