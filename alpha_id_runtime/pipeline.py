"""The Suggester: the only place that knows the modes. Text in, one ranked list out.

Holds: the order of the steps. Refuses: how any of them works; and input text in logs or errors.
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.assembly import CodeHit, PhraseHits, assemble
from alpha_id_runtime.build import Build, open_published
from alpha_id_runtime.config import Config
from alpha_id_runtime.filters import CodeFilter
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.lexical_ranking import EXACT_SCORE, TWIN_SCORE, rank_rows
from alpha_id_runtime.model import Diagnostics, Filter, Segment, Skipped, SuggestResult
from alpha_id_runtime.notice import NOTICE, SYSTEM
from alpha_id_runtime.phrases import segments, written_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

# Below an equal valid phrase, above anything less alike.
_INVALID_FACTOR = 0.999
# Children of a code that was subdivided: the unspecified one first, the others beside it.
_GAP_STEP = 0.002
# A longer line is no dictated diagnosis; its head is matched.
MAX_LINE = 1000
NO_TEXT = "The line holds no letter and no digit."
NO_HIT = "No entry of the corpus is like this line."
NO_PASSING = "No candidate for this line passes the filters."


@dataclass(frozen=True)
class Request:
    """One input of one or many lines. ``excluded_rows`` never become candidates (evaluation)."""

    text: str
    filter: Filter | None = None
    top: int | None = None
    excluded_rows: frozenset[int] = field(default_factory=frozenset)


class Suggester:
    """Answers requests from one published build."""

    def __init__(self, build: Build, config: Config) -> None:
        """Take an opened build; ``open`` is the usual way."""
        self.build = build
        self.config = config
        self._filters: dict[Filter, CodeFilter] = {}

    @classmethod
    def open(cls, config: Config | None = None) -> Suggester:
        """Open the published build of ``config.storage``.

        Raises:
            ArtefactsMissingError: nothing was published.
            ArtefactsIncompatibleError: the build is damaged or of another schema.
        """
        settings = config or Config()
        return cls(open_published(StorageLayout(settings.storage)), settings)

    def suggest(self, text: str, *, wanted: Filter | None = None, top: int | None = None) -> SuggestResult:
        """Return the one list for all lines of ``text``."""
        return self.suggest_many([Request(text, wanted, top)])[0]

    def suggest_each(
        self, text: str, *, wanted: Filter | None = None, top: int | None = None
    ) -> list[tuple[Segment, SuggestResult]]:
        """Return one list a non-empty line, in the order of the lines."""
        lines = segments(text)
        answers = self.suggest_many([Request(line.text, wanted, top) for line in lines])
        return list(zip(lines, answers, strict=True))

    def suggest_many(self, requests: Sequence[Request]) -> list[SuggestResult]:
        """Return one answer a request; the phrases of all requests go through each step together."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> SuggestResult:
        started = time.perf_counter()
        wanted = request.filter or self.config.filter
        top = request.top or self.config.top
        lines = segments(request.text)
        phrases: list[PhraseHits] = []
        skipped: list[Skipped] = []
        for line in lines:
            hits, reason = self._find(line, wanted, top, request.excluded_rows)
            if hits:
                phrases.append(PhraseHits(line, hits))
            else:
                skipped.append(Skipped(line.index, reason))
        rows = sorted({hit.row for phrase in phrases for hit in phrase.hits})
        entries = dict(zip(rows, self.build.phrases.entries(rows), strict=True))
        suggestions, unrepresented = assemble(phrases, top, self.build.codes, entries)
        return SuggestResult(
            suggestions,
            Diagnostics(
                mode="c",
                degraded=False,
                degraded_reason=None,
                reason=None if suggestions else _empty_reason(lines, skipped),
                timings={"total_ms": round((time.perf_counter() - started) * 1000, 3)},
                segment_count=len(lines),
                skipped=tuple(skipped),
                unrepresented=unrepresented,
                warnings=self._warnings(wanted, lines),
                hints=(),
                ionos_calls=0,
                editions={
                    "alpha_id": self.build.manifest.alpha_id.edition,
                    "claml": self.build.manifest.claml.edition,
                },
                system=SYSTEM,
                version=str(self.build.manifest.claml.edition),
                build_id=self.build.manifest.build_id,
                notice=NOTICE,
            ),
        )

    def _find(
        self, line: Segment, wanted: Filter, top: int, excluded: frozenset[int]
    ) -> tuple[tuple[CodeHit, ...], str]:
        """Return (the codes found for a line, best first; the reason where there is none)."""
        if not any(character.isalnum() for character in line.text):
            return (), NO_TEXT
        passing = self._filters.setdefault(wanted, CodeFilter(self.build.codes, wanted))
        unhindered = wanted == Filter() and not excluded
        allow = None if unhindered else _Allow(self.build, passing, excluded)
        written, rest = written_codes(line.text[:MAX_LINE], self._is_category)
        rows, scores = self._rows_of_written(written, allow)
        if any(character.isalnum() for character in rest):
            ranked = rank_rows(self.build, rest, self.config.lexical, allow)
            rows, scores = np.concatenate([rows, ranked.rows]), np.concatenate([scores, ranked.scores])
        rows, scores = self._best_of_each_code(rows, scores)
        if wanted.sex is None and wanted.age is None:
            # Nothing can be in conflict: what is beyond the places need not be looked at.
            rows, scores = rows[:top], scores[:top]
        names, numbers = self.build.phrases.codes, self.build.phrases.code_index
        hits = [
            CodeHit(code, row, score, passing.verdict(code).conflict)
            for code, row, score in zip(
                (names[number] for number in numbers[rows]), rows.tolist(), scores.tolist(), strict=True
            )
        ]
        hits.sort(key=lambda hit: hit.key)
        return tuple(hits[:top]), NO_HIT if unhindered else NO_PASSING

    def _is_category(self, code: str) -> bool:
        codes = self.build.codes
        return code in codes and codes.value(code, "kind") == "category"

    def _best_of_each_code(
        self, rows: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the best row of each code with its score, best first; ties go to the lower row."""
        phrases = self.build.phrases
        adjusted = scores * np.where(phrases.valid[rows], 1.0, _INVALID_FACTOR)
        adjusted *= 1 - _GAP_STEP * phrases.gap_rank[rows]
        order = np.lexsort((rows, -adjusted))
        _, first = np.unique(phrases.code_index[rows[order]], return_index=True)
        kept = order[np.sort(first)]
        return rows[kept], adjusted[kept]

    def _rows_of_written(
        self, written: tuple[str, ...], allow: _Allow | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return rows and scores of the codes a line names: a terminal one itself, others by children."""
        found: list[tuple[int, float]] = []
        for place, code in enumerate(written):
            for rank, leaf in enumerate(self.build.codes.terminal_descendants(code)):
                rows = self.build.phrases.rows_of(leaf)
                rows = rows if allow is None else rows[allow(rows)]
                if len(rows):
                    score = EXACT_SCORE if leaf == code else TWIN_SCORE
                    # in the order in which the line names them
                    found.append((self._title_row(rows), score * (1 - _GAP_STEP * rank) - place * 1e-6))
        return (
            np.array([row for row, _ in found], dtype=np.int64),
            np.array([score for _, score in found], dtype=np.float64),
        )

    def _title_row(self, rows: npt.NDArray[np.intp]) -> int:
        """Return the row of the code's title, else its first valid one, else its first."""
        titles = [row for row in rows if self.build.phrases.is_title[row]]
        valid = [row for row in rows if self.build.phrases.valid[row]]
        return int([*titles, *valid, *rows][0])

    def _warnings(self, wanted: Filter, lines: list[Segment]) -> tuple[str, ...]:
        manifest = self.build.manifest
        warnings = list(manifest.warnings)
        year = dt.datetime.now(tz=dt.UTC).astimezone().year
        if manifest.claml.edition != year:
            warnings.append(
                f"The published edition of ICD-10-GM is {manifest.claml.edition}, this year is {year}."
            )
        if wanted.sector != "any" and not wanted.billable_only:
            warnings.append("--sector has an effect only together with --billable-only.")
        long = sum(len(line.text) > MAX_LINE for line in lines)
        if long:
            warnings.append(f"{long} line(s) of more than {MAX_LINE} characters: only the head was read.")
        return tuple(warnings)


class _Allow:
    """Which rows may become candidates under a filter and an exclusion set; verdicts are kept by code."""

    def __init__(self, build: Build, passing: CodeFilter, excluded: frozenset[int]) -> None:
        self._phrases = build.phrases
        self._passing = passing
        self._excluded = np.fromiter(excluded, dtype=np.int64, count=len(excluded))

    def __call__(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        numbers = self._phrases.code_index[rows]
        distinct, place = np.unique(numbers, return_inverse=True)
        passes = np.array(
            [self._passing.verdict(self._phrases.codes[number]).passes for number in distinct], dtype=np.bool_
        )
        mask: npt.NDArray[np.bool_] = passes[place] & ~np.isin(rows, self._excluded)
        return mask & self._phrases.valid[rows] if self._passing.valid_only else mask


def _empty_reason(lines: list[Segment], skipped: list[Skipped]) -> str:
    if not lines:
        return "The input holds no non-empty line."
    return " ".join(dict.fromkeys(each.reason for each in skipped))
