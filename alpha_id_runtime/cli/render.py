"""Answers as tables for a terminal. Pure: results in, lines out.

Holds: layout of text. Refuses: printing.
"""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alpha_id_runtime.model import Explanation, NamedComplement, Suggestion, SuggestResult, Tags

_NARROWEST = 72
_INDENT = " " * 18
_PART_WORDS = {
    "trigram_rank": "rank by trigrams",
    "word_rank": "rank by words",
    "rank": "both ranks, fused",
    "dice": "trigrams shared",
    "agreement": "other phrases of the code",
    "dense": "cosine with the entry",
    "prototype": "cosine with the code",
    "lexical": "score of mode C",
    "sum": "weighted sum",
    "text_score": "score of the text",
    "query_weight": "weight of the text",
    "entry_factor": "for the entry",
    "reranked": "dealt out anew by the reranker",
    "of_sibling": "that of its best sibling",
    "said_factor": "for degree or site",
}
_FACTORS = ("query_weight", "entry_factor", "said_factor")
_USAGE_MARK = {"aster": "*", "optional": "!", "second_primary": ""}


def width() -> int:
    """Return the columns to use."""
    return max(_NARROWEST, min(shutil.get_terminal_size((100, 24)).columns, 120))


def render_result(result: SuggestResult) -> list[str]:
    """Return an answer as lines: the list, then what diagnostics a reader must know."""
    diagnostics = result.diagnostics
    lines: list[str] = []
    for place, suggestion in enumerate(result.suggestions, start=1):
        lines.extend(_suggestion(place, suggestion))
    if not result.suggestions:
        lines.append(f"No suggestion. {diagnostics.reason}")
    lines.append("")
    if diagnostics.degraded:
        lines.extend(_wrap(f"Degraded to mode {diagnostics.mode}: {diagnostics.degraded_reason}"))
    lines.extend(
        line
        for each in diagnostics.skipped
        for line in _wrap(f"Line {each.segment} yields no code: {each.reason}")
    )
    if diagnostics.unrepresented:
        left = ", ".join(str(index) for index in diagnostics.unrepresented)
        lines.extend(_wrap(f"Lines without a place in the list: {left} (more places: --top)"))
    lines.extend(line for hint in diagnostics.hints for line in _wrap(f"Hint: {hint}"))
    lines.extend(line for warning in diagnostics.warnings for line in _wrap(f"Warning: {warning}"))
    editions = diagnostics.editions
    lines.append(
        f"Mode {diagnostics.mode.upper()}, Alpha-ID {editions['alpha_id']}, ICD-10-GM {editions['claml']}, "
        f"build {diagnostics.build_id}, {diagnostics.timings['total_ms']:.0f} ms"
    )
    lines.extend(_wrap(diagnostics.notice))
    return lines


def describe_tags(tags: Tags) -> str:
    """Return the tags worth a coder's glance, as words."""
    where = [
        name
        for name, billable in (
            ("ambulatory", tags.billable_ambulant),
            ("inpatient", tags.billable_stationaer),
        )
        if billable
    ]
    words = [f"billable {' and '.join(where)}" if where else "not billable"]
    if tags.role not in (None, "primary"):
        words.append("only with a primary code")
    if tags.usage == "dagger":
        words.append("dagger")
    if not tags.valid:
        words.append("phrase no longer valid")
    if tags.exotic:
        words.append("exotic")
    if tags.ifsg:
        words.append("IfSG")
    if tags.sex:
        words.append("men" if tags.sex == "m" else "women")
    if tags.age_low or tags.age_high:
        words.append(f"age {tags.age_low or ''}-{tags.age_high or ''}")
    return ", ".join(words)


_CERTAINTY = {
    "V": "V suspected", "A": "A excluded: documented, never billed", "Z": "Z state after", "G": "G assured",
}  # fmt: skip
_SIDE = {"R": "R right", "L": "L left", "B": "B both sides"}


def _suggestion(place: int, suggestion: Suggestion) -> list[str]:
    head = f"{place:>2}  {suggestion.icd_code:<7} {suggestion.score:.3f}  "
    lines = textwrap.wrap(
        suggestion.description, width(), initial_indent=head, subsequent_indent=_INDENT
    ) or [head]
    source = suggestion.alpha_id or suggestion.origin
    orpha = f", ORPHA {suggestion.orpha}" if suggestion.orpha else ""
    segments = ", ".join(str(index) for index in suggestion.source_segments)
    lines.extend(_wrap(f"line {segments} ← “{suggestion.matched_phrase}” ({source}{orpha})", indent=_INDENT))
    notes = [*_said(suggestion), describe_tags(suggestion.tags)]
    if suggestion.conflict:
        notes.append(f"CONFLICT with {' and '.join(suggestion.conflict)}")
    if suggestion.edition_gap:
        notes.append("the phrase's code was subdivided since its edition")
    lines.extend(_wrap("; ".join(notes), indent=_INDENT))
    for complement in suggestion.complements:
        lines.extend(_wrap(f"+ {_complement(complement)}", indent=_INDENT))
    if suggestion.explanation is not None:
        lines.extend(_explanation(suggestion.explanation))
    if suggestion.related:
        lines.append(f"{_INDENT}related, not mentioned:")
        for each in suggestion.related:
            lines.extend(_wrap(f"{each.relation} {each.icd_code} {each.description}", indent=_INDENT + "  "))
    return lines


def _said(suggestion: Suggestion) -> list[str]:
    """Return certainty and side as the lines said them: a bill needs both."""
    certainties = dict.fromkeys(origin.certainty for origin in suggestion.origins)
    sides = dict.fromkeys(origin.laterality for origin in suggestion.origins)
    return [
        *(_CERTAINTY[each] for each in certainties if each is not None),
        *(_SIDE[each] for each in sides if each is not None),
    ]


def _explanation(explanation: Explanation) -> list[str]:
    lines: list[str] = []
    for origin in explanation.origins:
        tried = "" if origin.tried is None else f"{origin.how} “{origin.tried}”: "
        said = "; ".join((*origin.removed, *origin.decided_by))
        why = f"why, line {origin.segment}: {tried}{origin.way}" + (f" ({said})" if said else "")
        lines.extend(_wrap(why, indent=_INDENT))
        parts = ", ".join(
            f"{_PART_WORDS[name]} {value:.4g}"
            for name, value in origin.parts.items()
            if not (name in _FACTORS and value == 1)
        )
        lines.extend(_wrap(f"score: {parts}", indent=_INDENT + "  "))
    if explanation.outranks_next:
        lines.extend(_wrap(explanation.outranks_next, indent=_INDENT))
    return lines


def _complement(complement: NamedComplement) -> str:
    second = " (second primary)" if complement.usage == "second_primary" else ""
    return f"{complement.icd_code}{_USAGE_MARK[complement.usage]} {complement.description}{second}"


def _wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width(), initial_indent=indent, subsequent_indent=indent)
