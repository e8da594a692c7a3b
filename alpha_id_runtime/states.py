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
from alpha_id_runtime.text import fold, normalise

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
# The history of a disease stands beside it; one of another chapter, found by its frame, is a stranger.
_BESIDE, _STRANGE = 0.98, 0.5
_KNOWN_FRAME = 0.83  # "X in der Eigenanamnese" counts .85: such an entry itself
_HISTORIES = ("Z85", "Z86", "Z87")
_STATE_WORDED = "state synonym"
_ONE_SIDE, _BOTH_SIDES = ("einseitig",), ("beidseitig", "doppelseitig", "bilateral")
_OTHER_SIDE = 0.9
_PRIMARY, _STEM = "primär", 6
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
        framed = np.array([query.how == _STATE for query in task.queries], dtype=np.bool_)[ranked.queries]
        strange = framed & (build.units.dice([disease], ranked.rows) == 0)
        scores = np.where(strange, ranked.scores * _FRAME_ALONE, scores)
    found = ranked.scores
    ranked = RankedRows(ranked.rows, scores, ranked.queries)
    return _with_histories(build, task, ranked, found) if task.reading.past else ranked


def _with_histories(
    build: Build, task: Task, ranked: RankedRows, found: npt.NDArray[np.float64]
) -> RankedRows:
    """Return the ranking with the histories of its best present disease, as the classification groups them.

    Histories of other groups that a frame found ("Krankheit in der Eigenanamnese") step back, unless the very
    same was said: ``found`` are the scores before what lies behind was raised.
    """
    codes = build.phrases.codes_of(ranked.rows)
    present = [place for place, code in enumerate(codes) if not code.startswith(_BEHIND)]
    if not present:
        return ranked
    best = max(present, key=lambda place: (ranked.scores[place], -ranked.rows[place]))
    meant = build.histories.of(codes[best])
    if not meant:
        return ranked
    worded = [query.how == _STATE_WORDED for query in task.queries]
    strangers = np.array(
        [
            code.startswith(_HISTORIES) and code not in meant and not worded[query]
            for code, query in zip(codes, ranked.queries.tolist(), strict=True)
        ],
        dtype=np.bool_,
    )
    strangers &= found < _KNOWN_FRAME
    scores = np.where(strangers, ranked.scores * _STRANGE, ranked.scores)
    score, query = float(scores[best]) * _BESIDE, int(ranked.queries[best])
    for code in meant:
        rows = build.phrases.rows_of(code)
        rows = rows if task.allow is None else rows[task.allow(rows)]
        if not len(rows):
            continue
        # Its title speaks for it: another of its phrases is another disease.
        titles = rows[build.phrases.is_title[rows]]
        row = int(titles[0]) if len(titles) else int(rows[0])
        own = np.flatnonzero(ranked.rows == row)
        if len(own):
            scores[own[0]] = max(scores[own[0]], score)
        else:
            ranked = ranked.with_row(row, score, query)
            scores = np.append(scores, score)
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
                leading = _leading_of_both(reading, titles, scores, np.flatnonzero(of_category & both))
                scores[leading] = max(scores[leading], ranked.scores[best])
    return RankedRows(ranked.rows, scores, ranked.queries)


def _leading_of_both(
    reading: Reading, titles: list[str], scores: npt.NDArray[np.float64], places: npt.NDArray[np.int64]
) -> int:
    """Return the place of the bilateral sibling that leads: the most alike, or the primary one.

    A cause that its title begins with ("posttraumatisch") must have been said.
    """
    alike = int(places[np.argmax(scores[places])])
    primary = [place for place in places.tolist() if _PRIMARY in titles[place]]
    said = fold(titles[alike])[:_STEM] in fold(reading.original)
    return primary[0] if primary and not said else alike


def _says(titles: list[str], words: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    return np.array([any(word in title for word in words) for title in titles], dtype=np.bool_)
