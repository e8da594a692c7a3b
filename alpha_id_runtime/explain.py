"""Why a suggestion stands where it stands, computed when it is asked for and for what is shown. Pure.

Holds: what was tried, taken off and decided, each part of a score, and the sentence that compares two
neighbours of the list. Refuses: changing an answer, calling a provider, and the order of the steps, which it
is told by ``Trace``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.matching import WRITTEN, best_of_each_code, entry_factors
from alpha_id_runtime.model import Explanation, OriginExplanation
from alpha_id_runtime.score_parts import way_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from alpha_id_runtime.assembly import CodeHit
    from alpha_id_runtime.build import Build
    from alpha_id_runtime.matching import Task
    from alpha_id_runtime.model import Suggestion, Way
    from alpha_id_runtime.ranked import RankedRows
    from alpha_id_runtime.score_parts import Parts

_WAY_WORDS: dict[Way, str] = {
    "written code": "stands in the line as a code",
    "exact": "is the very phrase of an entry",
    "same words": "has the same words as an entry",
    "degree decided": "was decided by a degree",
    "site decided": "was decided by a site",
    "alike": "is like an entry",
}
# What is said of two merely alike ones, the part that differs most.
_REASONS = {
    "dice": "it shares more with its phrase ({0:.2f} to {1:.2f} of the trigrams)",
    "rank": "its phrase ranks higher by words and trigrams ({0:.2f} to {1:.2f})",
    "agreement": "more phrases of its code are like the text ({0:.2f} to {1:.2f})",
    "dense": "its phrase is nearer in meaning (cosine {0:.2f} to {1:.2f})",
    "prototype": "the phrases of its code are nearer in meaning on the whole (cosine {0:.2f} to {1:.2f})",
}
_FACTORS = {
    "said_factor": "degree, site, side or time said speaks for it, or against the other ({0:.2f} to {1:.2f})",
    "query_weight": "its text counts for more ({0:.2f} to {1:.2f})",
    "entry_factor": "the other's entry is no longer valid, or of a code that was subdivided",
}
# The nearer ways first: a nearer one is the reason, a farther one is not.
_NEARNESS: tuple[Way, ...] = (
    "written code", "exact", "same words", "degree decided", "site decided", "alike"
)  # fmt: skip
_SAME = 1e-9
_DIGITS = 6


@dataclass(frozen=True)
class Trace:
    """What became of one line: its hits, and its rows before degrees and sites had a say."""

    build: Build
    task: Task
    hits: tuple[CodeHit, ...]
    before: RankedRows | None
    parts: Parts

    @cached_property
    def of_code(self) -> Mapping[str, CodeHit]:
        """Each hit by its code."""
        return {hit.code: hit for hit in self.hits}

    @cached_property
    def scores_before(self) -> Mapping[int, float]:
        """The score of each code's best row before degrees and sites."""
        if self.before is None:
            return {}
        best = best_of_each_code(self.build, self.before)
        return dict(zip(best.rows.tolist(), best.scores.tolist(), strict=True))


def with_explanations(
    suggestions: Sequence[Suggestion], traces: Mapping[tuple[int, str], Trace]
) -> tuple[Suggestion, ...]:
    """Return the same list with ``explanation``; ``traces`` by index and text of each phrase."""
    origins = [
        tuple(_origin(traces[origin.segment, origin.phrase], each.icd_code) for origin in each.origins)
        for each in suggestions
    ]
    explained = []
    for place, (each, own) in enumerate(zip(suggestions, origins, strict=True)):
        sentence = None
        if place + 1 < len(suggestions):
            sentence = outranks(each, own[0], suggestions[place + 1], origins[place + 1][0])
        explained.append(replace(each, explanation=Explanation(own, sentence)))
    return tuple(explained)


def outranks(
    this: Suggestion, why: OriginExplanation, other: Suggestion, why_other: OriginExplanation
) -> str:
    """Return in one sentence why ``this`` stands before ``other``; the steps are those of the one list."""
    code = other.icd_code
    if _excluded(other) and not _excluded(this):
        return f"Before {code}, which the input says to be excluded."
    if other.conflict and not this.conflict:
        return f"Before {code}, which is in conflict with {' and '.join(other.conflict)}."
    if this.score > other.score:
        return f"Before {code} by score ({this.score:.3f} to {other.score:.3f}): {_reason(why, why_other)}."
    if len(this.source_segments) > len(other.source_segments):
        return f"Before {code} at the same score: more lines lead to it."
    return f"Before {code} at the same score: the order of the codes decides."


def _excluded(suggestion: Suggestion) -> bool:
    return all(origin.certainty == "A" for origin in suggestion.origins)


def _reason(why: OriginExplanation, other: OriginExplanation) -> str:
    if _NEARNESS.index(why.way) < _NEARNESS.index(other.way):
        return f"its text {_WAY_WORDS[why.way]}, the other's {_WAY_WORDS[other.way]}"
    if why.way == other.way == "written code":
        return "the line names it first, or names it and not a code above it"
    mine, its = why.parts, other.parts
    if "reranked" in mine and "reranked" in its:
        return f"the reranker ranks it higher ({mine['reranked']:.2f} to {its['reranked']:.2f})"
    shared = {name: mine[name] - its[name] for name in _REASONS if name in mine and name in its}
    factors = {name: mine.get(name, 1.0) - its.get(name, 1.0) for name in _FACTORS}
    factor = max(factors, key=lambda name: factors[name])
    part = max(shared, key=lambda name: shared[name], default=None)
    if factors[factor] > max(0.0, shared[part] if part else 0.0):
        return _FACTORS[factor].format(mine.get(factor, 1.0), its.get(factor, 1.0))
    if part and shared[part] > 0:
        return _REASONS[part].format(mine[part], its[part])
    return "on the whole it is more like its line"


def _origin(trace: Trace, code: str) -> OriginExplanation:
    hit, task = trace.of_code[code], trace.task
    entry = trace.build.phrases.entries([hit.row])[0]
    query = None if hit.query == WRITTEN else task.queries[hit.query]
    if query is None:
        return OriginExplanation(
            task.segment.index, None, None, task.reading.removed, entry.text, "written code", (),
            {"text_score": round(hit.score, _DIGITS)},
        )  # fmt: skip
    text_parts = trace.parts(hit.query, hit.row)
    known = trace.scores_before.get(hit.row)
    parts = {**text_parts, "query_weight": query.weight if len(task.queries) > 1 else 1.0}
    if known is None:
        parts = {"of_sibling": hit.score}
    elif text_parts:
        own = parts["text_score"] * parts["query_weight"]
        factor = float(entry_factors(trace.build, np.array([hit.row]))[0])
        if abs(own * factor - known) <= _SAME:
            parts["entry_factor"] = factor
        else:
            parts["reranked"] = known
    if known is not None and known > 0:
        parts["said_factor"] = hit.score / known
    raised = known is None or hit.score > known * (1 + _SAME)
    decided, by_degree = _decided_by(trace, code)
    way = way_of(query.text, entry.text)
    if raised and decided:
        way = "degree decided" if by_degree else "site decided"
    return OriginExplanation(
        segment=task.segment.index,
        tried=query.text,
        how=query.how,
        removed=task.reading.removed,
        matched_phrase=entry.text,
        way=way,
        decided_by=decided,
        parts={name: round(value, _DIGITS) for name, value in parts.items()},
    )


def _decided_by(trace: Trace, code: str) -> tuple[tuple[str, ...], bool]:
    """Return (what degrees and sites say of a code, in words; whether one of those degrees names it)."""
    reading, title = trace.task.reading, trace.build.codes.title(code)
    said: list[str] = []
    by_degree = False
    for degree in reading.degrees:
        if not degree.applies_to(code) or degree.decides == "none":
            continue
        name = f"{degree.scale.partition('/')[0]} {degree.value}"
        if degree.as_complement:
            said.append(f"degree {name} is a code of its own beside it")
        elif degree.fits(code):
            said.append(f"degree {name} is this code's")
            by_degree = True
        elif degree.is_unsaid(code):
            said.append(f"degree {name}: this code says none")
        else:
            said.append(f"degree {name} is another code's")
    for site in reading.sites:
        if site.applies_to(code):
            whose = "this" if site.fits(title) else "another"
            said.append(f"site {site.label} is {whose} code's")
    return tuple(said), by_degree
