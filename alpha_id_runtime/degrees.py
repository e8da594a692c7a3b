"""A degree said in a phrase, applied to the codes found: it wins over the sibling that says none.

Holds: raising the code a degree stands for, lowering its siblings, and degrees that are codes of their own
(complements). Refuses: inventing a degree that was not said, and any code the corpus lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.model import Complement
from alpha_id_runtime.ranked import RankedRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.retrieval.dense import Allow
    from alpha_id_runtime.understanding.reading import Degree

# What a sibling keeps of its score when a degree was said that it does not name.
_OTHER_DEGREE = 0.9
# The several codes a value spans come one behind the other, after the code without degree.
_STEP = 0.999


def apply_degrees(
    build: Build, degrees: Sequence[Degree], ranked: RankedRows, allow: Allow | None
) -> RankedRows:
    """Return the ranking with what ``degrees`` decide: a code they name leads its category.

    Under ``several`` the code without a degree leads and the spanned ones follow; under ``none``, and for
    degrees that are complements, nothing changes. A code not yet found is added by its title, at the score of
    its best sibling: the wording was that sibling's, the degree makes it this one's.
    """
    for degree in degrees:
        if degree.decides != "none" and not degree.as_complement:
            ranked = _apply(build, degree, ranked, allow)
    return ranked


def complements_of(build: Build, degrees: Iterable[Degree], code: str) -> tuple[Complement, ...]:
    """Return the degrees that are ``!`` codes of their own and go with ``code``."""
    return tuple(
        Complement(added, "optional")
        for degree in degrees
        if degree.as_complement and degree.applies_to(code)
        for added in degree.codes
        if added != code and build.codes.is_terminal(added)
    )


def _apply(build: Build, degree: Degree, ranked: RankedRows, allow: Allow | None) -> RankedRows:
    codes = [build.phrases.codes[number] for number in build.phrases.code_index[ranked.rows]]
    concerned = np.array([degree.applies_to(code) for code in codes], dtype=np.bool_)
    if not concerned.any():
        return ranked
    best = int(np.argmax(np.where(concerned, ranked.scores, -np.inf)))
    ceiling = float(ranked.scores[best])
    leading = list(_leading(build, degree, codes[best]))
    scores = np.where(concerned, ranked.scores * _OTHER_DEGREE, ranked.scores)
    for place, code in enumerate(leading):
        rows = build.phrases.rows_of(code)
        rows = rows if allow is None else rows[allow(rows)]
        if not len(rows):
            continue
        score = ceiling * _STEP**place
        there = np.isin(ranked.rows, rows)
        if there.any():
            own = np.flatnonzero(there)
            scores[own] = np.minimum(scores[own], score)
            scores[own[np.argmax(ranked.scores[own])]] = score
        else:
            title = rows[build.phrases.is_title[rows]]
            row = int(title[0]) if len(title) else int(rows[0])
            ranked = ranked.with_row(row, score, int(ranked.queries[best]))
            scores = np.append(scores, score)
            concerned = np.append(concerned, [True])
    return RankedRows(ranked.rows, scores, ranked.queries)


def _leading(build: Build, degree: Degree, like: str) -> Iterable[str]:
    """Return the codes that lead, in order; ``?`` is filled from ``like``, the best code of the category."""
    patterns = (*degree.without_degree, *degree.codes) if degree.decides == "several" else degree.codes
    for pattern in patterns:
        filled = "".join(
            like[place] if sign == "?" and place < len(like) else sign for place, sign in enumerate(pattern)
        )
        if build.codes.is_terminal(filled):
            yield filled
        elif "?" in pattern:
            # The category's best code has no such sibling: all that fit, in order.
            yield from (code for code in build.phrases.codes if degree.fits(code) and code[:3] == like[:3])
