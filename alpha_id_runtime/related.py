"""Neighbours of a suggestion in classification and corpus, as impulses: related, not mentioned. Pure.

Holds: siblings, parent and other wordings of a code. Refuses: scores, and any claim that a line said them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from alpha_id_runtime.model import Related
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.filters import CodeFilter
    from alpha_id_runtime.model import Suggestion


def with_related(
    build: Build,
    suggestions: Sequence[Suggestion],
    passing: CodeFilter,
    most: int,
    *,
    excluded: Collection[int] = (),
) -> tuple[Suggestion, ...]:
    """Return the same list with ``related``: up to ``most`` siblings, the parent, up to ``most`` wordings.

    Args:
        passing: the filter of the request; it holds for what is related, too.
        excluded: rows of the corpus that must not be shown (evaluation).
    """
    listed = {each.icd_code for each in suggestions}
    return tuple(
        replace(
            each,
            related=(
                *_siblings(build, each.icd_code, listed, passing, most),
                *_parent(build, each.icd_code, passing),
                *_wordings(build, each, passing, most, excluded),
            ),
        )
        for each in suggestions
    )


def _siblings(
    build: Build, code: str, listed: Collection[str], passing: CodeFilter, most: int
) -> list[Related]:
    """Return the nearest siblings in the order of the classification that pass without conflict.

    Terminal, assigned, and not in the list already; of two equally near ones the earlier first.
    """
    parent = build.codes.parent(code)
    family = build.codes.children(parent) if parent is not None else []
    own = family.index(code) if code in family else 0
    near = sorted(range(len(family)), key=lambda place: (abs(place - own), place))
    found: list[Related] = []
    for place in near:
        sibling = family[place]
        if len(found) == most:
            break
        if sibling not in listed and build.codes.is_terminal(sibling) and _passes(passing, sibling):
            found.append(Related(sibling, build.codes.title(sibling), "sibling"))
    return found


def _passes(passing: CodeFilter, code: str) -> bool:
    verdict = passing.verdict(code)
    return verdict.passes and not verdict.conflict


def _parent(build: Build, code: str, passing: CodeFilter) -> list[Related]:
    """Return the class right above; none under ``billable_only``, as it is never billable."""
    parent = build.codes.parent(code)
    if parent is None or passing.wanted.billable_only:
        return []
    return [Related(parent, build.codes.title(parent), "parent")]


def _wordings(
    build: Build, suggestion: Suggestion, passing: CodeFilter, most: int, excluded: Collection[int]
) -> list[Related]:
    """Return other phrases of the code, valid ones first, each once however it is spelled."""
    shown = {normalise(suggestion.description), normalise(suggestion.matched_phrase)}
    phrases = build.phrases
    rows = [row for row in phrases.rows_of(suggestion.icd_code).tolist() if row not in excluded]
    rows.sort(key=lambda row: (not phrases.valid[row], row))
    found: list[Related] = []
    for entry in phrases.entries([row for row in rows if phrases.valid[row] or not passing.valid_only]):
        key = normalise(entry.text)
        if len(found) == most:
            break
        if key not in shown:
            shown.add(key)
            found.append(Related(entry.icd_code, entry.text, "wording", entry.alpha_id))
    return found
