"""The Suggester: the only place that knows the modes. Text in, one ranked list out.

Holds: the order of the steps, and what happens when one fails. Refuses: how any of them works; and input text
in logs or errors.
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from alpha_id_runtime.assembly import PhraseHits, assemble
from alpha_id_runtime.build import Build, open_published
from alpha_id_runtime.config import Config
from alpha_id_runtime.degrees import apply_degrees, apply_sites
from alpha_id_runtime.enumerations import enumerated
from alpha_id_runtime.filters import CodeFilter
from alpha_id_runtime.hints import hints_of
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.lexical_ranking import rank_rows
from alpha_id_runtime.matching import (
    MAX_LINE,
    WITHOUT_DEGREE,
    Floor,
    Task,
    code_hits,
    has_text,
    make_task,
    merge_queries,
)
from alpha_id_runtime.model import Diagnostics, Entry, Filter, Segment, Skipped, SuggestResult
from alpha_id_runtime.notice import NOTICE, SYSTEM
from alpha_id_runtime.phrases import segments
from alpha_id_runtime.states import apply_past, apply_side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alpha_id_runtime.corpus import PhraseTable
    from alpha_id_runtime.mode_a import Begun, ModeA, Outcome
    from alpha_id_runtime.ranked import RankedRows
    from alpha_id_runtime.semantic import Semantic

NO_TEXT = "The line holds no letter and no digit."
NO_HIT = "No entry of the corpus is like this line."
NO_PASSING = "No candidate for this line passes the filters."
TOO_UNLIKE = (
    "No entry{passing} is enough like this line: none reaches the least score of {floor:g} (--min-score)."
)
NO_LINE = "The input holds no non-empty line."


@dataclass(frozen=True)
class Request:
    """One input of one or many lines. ``excluded_rows`` never become candidates (evaluation).

    ``explain``: say of each suggestion why it stands where it stands. ``related``: that many siblings and
    other wordings of each suggestion besides, 0 for none.
    """

    text: str
    filter: Filter | None = None
    top: int | None = None
    excluded_rows: frozenset[int] = field(default_factory=frozenset)
    explain: bool = False
    related: int = 0


@dataclass(frozen=True)
class Prepared:
    """A request with its lines and what is to be matched of them."""

    request: Request
    passing: CodeFilter
    top: int
    lines: list[Segment]
    tasks: list[Task]


@dataclass(frozen=True)
class Ranking:
    """What the steps made of each task, in the order of the tasks that have texts to match.

    ``lexical``: mode C's ranking of each text; ``merged``: one ranking a line; ``final``: the same with what
    degrees and sites decide. ``place_of`` finds a task by its identity.
    """

    place_of: dict[int, int]
    lexical: Sequence[Sequence[RankedRows]]
    outcome: Outcome | None
    merged: Sequence[RankedRows]
    final: Sequence[RankedRows]

    def of(self, task: Task) -> RankedRows | None:
        """Return the final ranking of a task, None where none of its text was matched."""
        place = self.place_of.get(id(task))
        return None if place is None else self.final[place]

    def lexical_best(self, task: Task) -> float:
        """Return the best score that mode C gives a text of the task."""
        place = self.place_of.get(id(task))
        if place is None:
            return 0.0
        return float(merge_queries(task, self.lexical[place]).scores.max(initial=0.0))


class Suggester:
    """Answers requests from one published build."""

    def __init__(self, build: Build, config: Config, *, semantic: Semantic | None = None) -> None:
        """Take an opened build; ``open`` is the usual way. ``semantic`` stands in for the build's vectors."""
        self.build = build
        self.config = config
        self.semantic = semantic
        self._filters: dict[Filter, CodeFilter] = {}
        self._mode_a: ModeA | None = None

    @classmethod
    def open(cls, config: Config | None = None) -> Suggester:
        """Open the published build of ``config.storage``.

        Raises:
            ArtefactsMissingError: nothing was published.
            ArtefactsIncompatibleError: the build is damaged or of another schema.
        """
        settings = config or Config()
        return cls(open_published(StorageLayout(settings.storage)), settings)

    def suggest(
        self,
        text: str,
        *,
        wanted: Filter | None = None,
        top: int | None = None,
        explain: bool = False,
        related: int = 0,
    ) -> SuggestResult:
        """Return the one list for all lines of ``text``."""
        return self.suggest_many([Request(text, wanted, top, explain=explain, related=related)])[0]

    def suggest_each(
        self,
        text: str,
        *,
        wanted: Filter | None = None,
        top: int | None = None,
        explain: bool = False,
        related: int = 0,
    ) -> list[tuple[Segment, SuggestResult]]:
        """Return one list a non-empty line, in the order of the lines."""
        lines = segments(text)
        answers = self.suggest_many(
            [Request(line.text, wanted, top, explain=explain, related=related) for line in lines]
        )
        return list(zip(lines, answers, strict=True))

    def suggest_many(self, requests: Sequence[Request]) -> list[SuggestResult]:
        """Return one answer a request; the phrases of all requests go through each step together.

        Raises:
            UsageError: a filter's value cannot be meant.
        """
        started = time.perf_counter()
        prepared = [self._prepare(request) for request in requests]
        tasks = [task for each in prepared for task in each.tasks if task.queries]
        begun = self._begin(tasks)
        ranked = iter(
            rank_rows(
                self.build,
                [query.text for task in tasks for query in task.queries],
                self.config.lexical,
                [task.allow for task in tasks for _ in task.queries],
            )
        )
        lexical = [[next(ranked) for _ in task.queries] for task in tasks]
        lexical_ms = _since(started)
        outcome = cast("ModeA", self._mode_a).rank(tasks, lexical, begun) if begun else None
        timings = {"lexical_ms": lexical_ms, "semantic_ms": outcome.milliseconds if outcome else 0.0}
        merged = (
            outcome.ranked
            if outcome
            else [merge_queries(task, own) for task, own in zip(tasks, lexical, strict=True)]
        )
        ranking = Ranking(
            {id(task): place for place, task in enumerate(tasks)},
            lexical,
            outcome,
            merged,
            [self._as_said(task, own) for task, own in zip(tasks, merged, strict=True)],
        )
        return [self._answer(each, ranking, timings, started) for each in prepared]

    def _as_said(self, task: Task, ranked: RankedRows) -> RankedRows:
        """Return a line's ranking with what its degrees, sites, side and time decide."""
        undegreed = [query.how == WITHOUT_DEGREE for query in task.queries]
        # What lies behind first: how long ago is a degree of it.
        ranked = apply_past(self.build, task, ranked)
        ranked = apply_degrees(self.build, task.reading.degrees, ranked, task.allow, undegreed)
        ranked = apply_sites(self.build, task.reading.sites, ranked, task.allow)
        return apply_side(self.build, task.reading, ranked)

    def _prepare(self, request: Request) -> Prepared:
        wanted = request.filter or self.config.filter
        top = request.top or self.config.top
        passing = self._filters.get(wanted)
        if passing is None:
            passing = self._filters[wanted] = CodeFilter(self.build.codes, wanted)
        lines = segments(request.text)
        tasks = [
            make_task(
                self.build,
                piece,
                passing,
                excluded=request.excluded_rows,
                top=top,
                settings=self.config.reading,
            )
            for line in lines
            if has_text(line.text)
            for piece in self._pieces(line)
        ]
        return Prepared(request, passing, top, lines, tasks)

    def _pieces(self, line: Segment) -> list[Segment]:
        """Return the diagnoses that a line lists, each to be matched by itself; mostly the line."""
        listed = enumerated(self.build, line.text) if self.config.reading.enabled else ()
        return [Segment(line.index, piece) for piece in listed] or [line]

    def _begin(self, tasks: list[Task]) -> Begun | None:
        """Set the semantic search on its way, which runs beside the lexical one; None in mode C."""
        if self.config.mode != "a":
            return None
        if self._mode_a is None:
            from alpha_id_runtime.mode_a import ModeA  # noqa: PLC0415 -- mode C must not load it

            self._mode_a = ModeA(self.build, self.config, self.semantic)
        return self._mode_a.begin(tasks)

    def _answer(
        self,
        prepared: Prepared,
        ranking: Ranking,
        timings: dict[str, float],
        started: float,
    ) -> SuggestResult:
        outcome = ranking.outcome
        phrases = []
        floor = self._floor(outcome)
        skipped = [Skipped(line.index, NO_TEXT) for line in prepared.lines if not has_text(line.text)]
        for task in prepared.tasks:
            hits = code_hits(self.build, task, ranking.of(task))
            enough = hits if hits and self._is_alike(task, ranking) else floor.above(hits)
            if enough:
                phrases.append(PhraseHits(task.segment, enough, task.reading.laterality))
            else:
                reason = _too_unlike(task, floor) if hits else _why_no_hit(task)
                skipped.append(Skipped(task.segment.index, reason))
        # Of a line that lists several, one that yields codes speaks for it.
        answered = {phrase.segment.index for phrase in phrases}
        skipped = list(dict.fromkeys(each for each in skipped if each.segment not in answered))
        skipped.sort(key=lambda each: each.segment)
        suggestions, unrepresented = assemble(
            phrases, prepared.top, self.build.codes, _Entries(self.build.phrases)
        )
        if prepared.request.explain or prepared.request.related > 0:
            from alpha_id_runtime.on_demand import with_demanded  # noqa: PLC0415 -- only when asked for

            suggestions = with_demanded(self.build, self.config, prepared, ranking, phrases, suggestions)
        manifest = self.build.manifest
        return SuggestResult(
            suggestions,
            Diagnostics(
                mode="a" if outcome and outcome.semantic else "c",
                degraded=bool(outcome and outcome.problem),
                degraded_reason=outcome.problem if outcome else None,
                reason=None if suggestions else _empty_reason(prepared.lines, skipped),
                timings={**timings, "total_ms": _since(started)},
                segment_count=len(prepared.lines),
                skipped=tuple(skipped),
                unrepresented=tuple(dict.fromkeys(unrepresented)),
                warnings=self._warnings(prepared.passing.wanted, prepared.lines),
                hints=hints_of(phrases, self.build.codes),
                ionos_calls=outcome.calls if outcome else 0,
                editions={"alpha_id": manifest.alpha_id.edition, "claml": manifest.claml.edition},
                system=SYSTEM,
                version=str(manifest.claml.edition),
                build_id=manifest.build_id,
                notice=NOTICE,
            ),
        )

    def _floor(self, outcome: Outcome | None) -> Floor:
        """Return the floor as configured, else that of the mode that answered."""
        if self.config.min_score is not None:
            return Floor(self.config.min_score, of_each=True)
        semantic = outcome is not None and outcome.semantic
        return Floor(self.config.fusion.min_score if semantic else self.config.lexical.min_score)

    def _is_alike(self, task: Task, ranking: Ranking) -> bool:
        """Return whether a line that mode A doubts is enough like an entry by its letters to be answered."""
        if self.config.min_score is not None or not (ranking.outcome and ranking.outcome.semantic):
            return False
        return ranking.lexical_best(task) >= self.config.fusion.min_lexical

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


class _Entries(dict[int, Entry]):
    """Entries by row, read when first looked up: of all that is found, few get a place in the list."""

    def __init__(self, phrases: PhraseTable) -> None:
        super().__init__()
        self._phrases = phrases

    def __missing__(self, row: int) -> Entry:
        entry = self[row] = self._phrases.entries([row])[0]
        return entry


def _too_unlike(task: Task, floor: Floor) -> str:
    passing = "" if task.allow is None else " that passes the filters"
    return TOO_UNLIKE.format(passing=passing, floor=floor.least)


def _why_no_hit(task: Task) -> str:
    return task.no_match or (NO_HIT if task.allow is None else NO_PASSING)


def _empty_reason(lines: list[Segment], skipped: list[Skipped]) -> str:
    if not lines:
        return NO_LINE
    return " ".join(dict.fromkeys(each.reason for each in skipped))


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
