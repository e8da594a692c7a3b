"""One line of the input on its way to codes: what of it is matched, which rows may be found, its best codes.

Holds: the steps that both modes share, each for one line. Refuses: modes, and the one list.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.assembly import SCORE_DIGITS, CodeHit
from alpha_id_runtime.degrees import complements_of
from alpha_id_runtime.lexical_ranking import EXACT_SCORE, TWIN_SCORE
from alpha_id_runtime.model import Filter
from alpha_id_runtime.phrases import written_codes
from alpha_id_runtime.ranked import RankedRows, merge
from alpha_id_runtime.text import normalise
from alpha_id_runtime.understanding import Reading, understand
from alpha_id_runtime.understanding.given import take_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import ReadingConfig
    from alpha_id_runtime.filters import CodeFilter
    from alpha_id_runtime.model import Certainty, Segment

# Below an equal valid phrase, above anything less alike.
_INVALID_FACTOR = 0.999
# Children of a code that was subdivided: the unspecified one first, the others beside it.
_GAP_STEP = 0.002
# The codes of a line keep the order in which it names them.
_PLACE_STEP = 1e-6
# In place of the text that found a row: none did, the line names its code.
WRITTEN = -1
# A longer line is no dictated diagnosis; its head is matched.
MAX_LINE = 1000
# Variants that say the same as the core in other words.
WITHOUT_DEGREE = "without degree"
_OTHER_WORDS = ("synonym", "spelling", "combination", WITHOUT_DEGREE)
# Further rewritings of the same words say little that is new; the parts of a line do.
_MOST_OF = {"synonym": 2, "spelling": 1}
UNASSIGNED = "The code in the line is not assigned (Content N): a placeholder without meaning."
UNKNOWN_CODE = "The code in the line is none of ICD-10-GM {edition}."
EXCLUDED = "The diagnosis is said to be excluded: not billable."


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
        mask: npt.NDArray[np.bool_] = ~np.isin(rows, self._excluded)
        if self._passing.wanted == Filter():
            return mask
        numbers = self._phrases.code_index[rows]
        distinct, place = np.unique(numbers, return_inverse=True)
        passes = np.array(
            [self._passing.verdict(self._phrases.codes[number]).passes for number in distinct], dtype=np.bool_
        )
        mask &= passes[place]
        return mask & self._phrases.valid[rows] if self._passing.valid_only else mask


@dataclass(frozen=True)
class Query:
    """One text tried for a line: the core of it, or a variant, whose scores count for ``weight``."""

    text: str
    weight: float = 1.0
    how: str = "core"
    certainty: Certainty | None = None


@dataclass(frozen=True)
class Task:
    """One line to match. ``queries`` is empty where only codes are left, or where there is no diagnosis.

    ``no_match`` says in words why the line is not matched at all; None where it is.
    """

    segment: Segment
    reading: Reading
    queries: tuple[Query, ...]
    written: tuple[str, ...]
    passing: CodeFilter
    allow: Allow | None
    top: int
    no_match: str | None = None


def make_task(
    build: Build,
    segment: Segment,
    passing: CodeFilter,
    *,
    excluded: frozenset[int],
    top: int,
    settings: ReadingConfig,
) -> Task:
    """Return what is to be matched of a line, and under which restrictions."""
    line = segment.text[:MAX_LINE]
    reading = understand(line, build.abbreviations) if settings.enabled else Reading(line, line)

    def is_category(code: str) -> bool:
        if settings.enabled and "." not in code and code not in reading.codes_given:
            return False  # a vertebra ("Fraktur T12"), a tumour's stage: what was read knows better
        return code in build.codes and build.codes.value(code, "kind") == "category"

    # What looks like a code but is none of this edition stays text.
    written, rest = written_codes(line, is_category)
    core = rest if not settings.enabled or set(reading.codes_given) - set(written) else reading.core
    allow = None if passing.wanted == Filter() and not excluded else Allow(build, passing, excluded)
    no_match = _why_no_match(build, reading, written, passing, allow) or _why_no_code(
        build, reading, written, rest
    )
    queries: tuple[Query, ...] = ()
    alone = tuple(filter(build.codes.is_terminal, reading.alone)) if not written else ()
    if alone:
        written, no_match = alone, None
    elif not no_match and has_text(rest):
        queries = _still_open(build, _queries(core, reading, settings.variants), allow)
    return Task(segment, reading, queries, written, passing, allow, top, no_match)


def _why_no_match(  # what is known of one line
    build: Build, reading: Reading, written: tuple[str, ...], passing: CodeFilter, allow: Allow | None
) -> str | None:
    if reading.certainty == "A" and passing.wanted.billable_only:
        return EXCLUDED
    if reading.no_diagnosis and not written and not _says_entry(build, reading, allow):
        return reading.no_diagnosis
    return None


def _says_entry(build: Build, reading: Reading, allow: Allow | None) -> bool:
    """Return whether the line is an entry, or a part of it is ("Gastroskopie: Soor"), or a word of entries.

    A single word behind a procedure that entries say ("Gastroskopie, Barrett") may be the diagnosis.
    """
    said = [variant.text for variant in reading.variants if variant.how == "part"]
    behind = [text for text in said if not reading.original.startswith(text)]
    reported = reading.original.rpartition(":")[2]
    texts = [normalise(text) for text in (reading.original, reading.core, reported, *behind) if text]
    words = [text for text in map(normalise, behind if len(behind) == 1 else ()) if text and " " not in text]
    return any(len(build.lexical.twins(text, allow)) for text in texts) or any(
        len(build.lexical.words(word, 1, allow)) for word in words
    )


def _why_no_code(build: Build, reading: Reading, written: tuple[str, ...], rest: str) -> str | None:
    """Return why a line that holds codes and no other text yields none of them; None where it may."""
    given = reading.codes_given or written
    if not given or (has_text(rest) and has_text(take_codes(reading.original).text)):
        return None
    if written:
        assigned = any(build.codes.terminal_descendants(code) for code in written)
        return None if assigned else UNASSIGNED
    # "B12" looks like a code and is none: a word of the corpus stays text, unless a dot says what is meant.
    is_word = any(
        "." not in code and len(build.lexical.words(normalise(code), 1, None)) for code in reading.codes_given
    )
    return None if is_word else UNKNOWN_CODE.format(edition=build.manifest.claml.edition)


def _queries(core: str, reading: Reading, most: int) -> tuple[Query, ...]:
    """Return the core and the heaviest variants that are not the same text again, few of one kind."""
    queries = {normalise(core): Query(core, reading.core_weight, certainty=reading.certainty)}
    kinds: Counter[str] = Counter()
    for variant in reading.variants:
        if len(queries) > most:
            break
        text = normalise(variant.text)
        if text in queries or kinds[variant.how] == _MOST_OF.get(variant.how, most):
            continue
        kinds[variant.how] += 1
        certainty = variant.certainty or reading.certainty
        queries[text] = Query(variant.text, variant.weight, variant.how, certainty)
    queries.pop("", None)
    return tuple(queries.values())


def _still_open(build: Build, queries: tuple[Query, ...], allow: Allow | None) -> tuple[Query, ...]:
    """Return the queries that may add something: where the core is an entry, other words for it do not.

    Readings of an abbreviation, parts of a line, a history and a side may mean something else.
    """
    core, *variants = queries or (None,)
    if (
        core is None
        or core.how != "core"
        or not variants
        or not len(build.lexical.twins(normalise(core.text), allow))
    ):
        return queries
    least = core.weight * TWIN_SCORE
    return (core, *(each for each in variants if each.how not in _OTHER_WORDS or each.weight > least))


def has_text(text: str) -> bool:
    """Tell whether a line holds a letter or a digit at all."""
    return any(character.isalnum() for character in text)


def merge_queries(task: Task, rankings: Sequence[RankedRows]) -> RankedRows:
    """Return one ranking of a line from those of its queries; empty where it has none."""
    if not rankings:
        return RankedRows.of(np.empty(0, dtype=np.int64), np.empty(0))
    return merge(rankings, [query.weight for query in task.queries])


def code_hits(build: Build, task: Task, ranked: RankedRows | None) -> tuple[CodeHit, ...]:
    """Return the codes found for a line, best first, at most ``task.top``.

    ``ranked`` are the rows its texts found; the codes written in the line come on top.
    """
    found = _rows_of_written(build, task)
    if ranked is not None:
        found = RankedRows(
            np.concatenate([found.rows, ranked.rows]),
            np.concatenate([found.scores, ranked.scores]),
            np.concatenate([found.queries, ranked.queries]),
        )
    best = best_of_each_code(build, found)
    # By score alone: what is in conflict stays, and goes to the end of the list when that is put together.
    rows, scores, queries = best.rows[: task.top], best.scores[: task.top], best.queries[: task.top]
    names = [build.phrases.codes[number] for number in build.phrases.code_index[rows]]
    hits = [
        CodeHit(
            code,
            row,
            score,
            task.passing.verdict(code).conflict,
            certainty=task.reading.certainty if query == WRITTEN else task.queries[query].certainty,
            added=complements_of(build, task.reading.degrees, code),
            query=query,
        )
        for code, row, score, query in zip(
            names, rows.tolist(), scores.tolist(), queries.tolist(), strict=True
        )
    ]
    hits.sort(key=lambda hit: (-hit.score, hit.code))
    return tuple(hits)


@dataclass(frozen=True)
class Floor:
    """The least score that is still a suggestion.

    A mode's own floor asks of a line's best hit whether the line is like any diagnosis at all, and where it
    is, leaves the rest of its hits alone: the right code may be among the lesser ones. A floor that a caller
    sets holds for each hit (``of_each``).
    """

    least: float
    of_each: bool = False

    def above(self, hits: tuple[CodeHit, ...]) -> tuple[CodeHit, ...]:
        """Return the hits that remain of a line's."""
        if self.of_each:
            return tuple(hit for hit in hits if self._reached_by(hit))
        return hits if any(map(self._reached_by, hits)) else ()

    def _reached_by(self, hit: CodeHit) -> bool:
        # As answered: a caller may cut at a score it was shown.
        return round(hit.score, SCORE_DIGITS) >= self.least


def best_of_each_code(build: Build, ranked: RankedRows) -> RankedRows:
    """Return the best row of each code with its score, best first; ties go to the lower row.

    Phrases of validity 0 come right below equal valid ones, children of a subdivided code in their order.
    """
    phrases, rows = build.phrases, ranked.rows
    adjusted = ranked.scores * entry_factors(build, rows)
    order = np.lexsort((rows, -adjusted))
    _, first = np.unique(phrases.code_index[rows[order]], return_index=True)
    kept = order[np.sort(first)]
    return RankedRows(rows[kept], adjusted[kept], ranked.queries[kept])


def entry_factors(build: Build, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return what the score of each row counts for: less where it is invalid or of a subdivided code."""
    phrases = build.phrases
    factors = np.where(phrases.valid[rows], 1.0, _INVALID_FACTOR) * (1 - _GAP_STEP * phrases.gap_rank[rows])
    return np.asarray(factors, dtype=np.float64)


def _rows_of_written(build: Build, task: Task) -> RankedRows:
    """Return the rows of the codes a line names: of a terminal one its own, of others their children's."""
    found: list[tuple[int, float]] = []
    for place, code in enumerate(() if task.no_match else task.written):
        for rank, leaf in enumerate(build.codes.terminal_descendants(code)):
            rows = build.phrases.rows_of(leaf)
            rows = rows if task.allow is None else rows[task.allow(rows)]
            if len(rows):
                score = (EXACT_SCORE if leaf == code else TWIN_SCORE) * (1 - _GAP_STEP * rank)
                found.append((_title_row(build, rows), score - _PLACE_STEP * place))
    return RankedRows(
        np.array([row for row, _ in found], dtype=np.int64),
        np.array([score for _, score in found], dtype=np.float64),
        np.full(len(found), WRITTEN, dtype=np.int64),
    )


def _title_row(build: Build, rows: npt.NDArray[np.int64]) -> int:
    """Return the row of the code's title, else its first valid one, else its first."""
    titles = rows[build.phrases.is_title[rows]]
    valid = rows[build.phrases.valid[rows]]
    return int(np.concatenate([titles, valid, rows])[0])
