"""What a phrase says beside the disease, applied to the codes found: degrees and body sites.

Holds: raising the code that a degree or site stands for over the siblings that say another or none, and
degrees that are codes of their own (complements). Refuses: inventing what was not said, and any code the
corpus lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.hierarchy import says_unspecified
from alpha_id_runtime.lexical_ranking import TWIN_SCORE
from alpha_id_runtime.model import Complement
from alpha_id_runtime.ranked import RankedRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.retrieval.dense import Allow
    from alpha_id_runtime.understanding.reading import Degree, Site

# What a sibling keeps of its score when something was said that it does not name.
_OTHER = 0.9
_FEW = 2
# The several codes a value spans come one behind the other, after the code without degree.
_STEP = 0.999
# Sites are decided among the best categories only; those below would but lengthen the list.
_SITED_GROUPS = 5
_INJURIES, _REGION = "ST", "Körperregion"
_CATEGORY, _STEM, _SITED = 3, 5, 6  # "M13", "M13.1", "M13.16"


def apply_degrees(
    build: Build,
    degrees: Sequence[Degree],
    ranked: RankedRows,
    allow: Allow | None,
    undegreed: Sequence[bool] = (),
) -> RankedRows:
    """Return the ranking with what ``degrees`` decide: a code they name leads its category.

    Under ``several`` the code without a degree leads and the spanned ones follow; under ``none`` nothing
    changes. A degree that is a complement leads its own siblings alone, where the line names it. A code not
    yet found is added by its title, at the score of its best sibling: the wording was that sibling's, the
    degree makes it this one's. ``undegreed``: which texts of the line leave the degree out; what only they
    found, outside every category with the degree said, steps back behind a code that has it.
    """
    for degree in degrees:
        if degree.decides != "none":
            ranked = _apply(build, degree, ranked, allow)
    return _unsaid_behind(build, degrees, ranked, undegreed) if any(undegreed) else ranked


def _unsaid_behind(
    build: Build, degrees: Sequence[Degree], ranked: RankedRows, undegreed: Sequence[bool]
) -> RankedRows:
    codes = build.phrases.codes_of(ranked.rows)
    has = np.array([any(degree.applies_to(code) for degree in degrees) for code in codes], dtype=np.bool_)
    if not has.any():
        return ranked
    unsaid = np.array(undegreed, dtype=np.bool_)[ranked.queries] & ~has
    ceiling = float(ranked.scores[has].max()) * _OTHER
    return RankedRows(
        ranked.rows, np.where(unsaid, np.minimum(ranked.scores, ceiling), ranked.scores), ranked.queries
    )


def apply_sites(build: Build, sites: Sequence[Site], ranked: RankedRows, allow: Allow | None) -> RankedRows:
    """Return the ranking with what ``sites`` decide, in each of the best groups of siblings by site.

    The sibling at the site takes the group's best score, the others step back; what says no site is left
    alone where no sibling is at the site said.
    """
    if sites:
        ranked = _unplaced_behind(build, ranked)
    for site in sites:
        codes = build.phrases.codes_of(ranked.rows)
        order = np.argsort(-ranked.scores, kind="stable")
        stems = [codes[n][:_STEM] for n in order if len(codes[n]) == _SITED and site.applies_to(codes[n])]
        for stem in list(dict.fromkeys(stems))[:_SITED_GROUPS]:
            at_site = [
                code for code in build.codes.terminal_descendants(stem) if site.fits(build.codes.title(code))
            ]
            if at_site:
                concerned = np.array(
                    [code.startswith(stem) for code in build.phrases.codes_of(ranked.rows)], dtype=np.bool_
                )
                ranked = _lead(build, ranked, at_site, concerned, concerned, allow)
    return ranked


def _unplaced_behind(build: Build, ranked: RankedRows) -> RankedRows:
    """Return the ranking with injuries "of an unspecified body region" stepping back: a region was said."""
    unplaced = np.array(
        [
            code[0] in _INJURIES and says_unspecified(title := build.codes.title(code)) and _REGION in title
            for code in build.phrases.codes_of(ranked.rows)
        ],
        dtype=np.bool_,
    )
    unplaced &= ranked.scores < TWIN_SCORE
    return RankedRows(ranked.rows, np.where(unplaced, ranked.scores * _OTHER, ranked.scores), ranked.queries)


def complements_of(build: Build, degrees: Iterable[Degree], code: str) -> tuple[Complement, ...]:
    """Return the degrees that are ``!`` codes of their own and go with ``code``; ``?`` is its own digit."""
    return tuple(
        Complement(added, "optional")
        for degree in degrees
        if degree.as_complement and degree.applies_to(code)
        for added in (_filled(pattern, code) for pattern in degree.codes)
        if added != code and build.codes.is_terminal(added)
    )


def _apply(build: Build, degree: Degree, ranked: RankedRows, allow: Allow | None) -> RankedRows:
    codes = build.phrases.codes_of(ranked.rows)
    own = tuple(pattern[:_STEM] for pattern in degree.codes)
    concerned = np.array(
        [code.startswith(own) if degree.as_complement else degree.applies_to(code) for code in codes],
        dtype=np.bool_,
    )
    if not concerned.any():
        return ranked
    other = concerned & ~np.array([degree.fits(code) for code in codes], dtype=np.bool_)
    best = int(np.argmax(np.where(concerned, ranked.scores, -np.inf)))
    if ranked.scores[best] >= TWIN_SCORE and degree.fits(codes[best]):
        return ranked  # an entry says the very same: nothing is left to decide
    return _lead(build, ranked, list(_leading(build, degree, codes[best])), concerned, other, allow)


def _lead(  # noqa: PLR0917  # one ranking and what is done to it
    build: Build,
    ranked: RankedRows,
    leading: Sequence[str],
    concerned: npt.NDArray[np.bool_],
    other: npt.NDArray[np.bool_],
    allow: Allow | None,
) -> RankedRows:
    """Return the ranking with ``leading`` in order at the best score of the ``concerned``, ``other`` lower.

    One row of each code leads: its best, or its title where none was found.
    """
    best = int(np.argmax(np.where(concerned, ranked.scores, -np.inf)))
    ceiling, query = float(ranked.scores[best]), int(ranked.queries[best])
    scores = np.where(other, ranked.scores * _OTHER, ranked.scores)
    found = ranked.rows
    for place, code in enumerate(leading):
        rows = build.phrases.rows_of(code)
        rows = rows if allow is None else rows[allow(rows)]
        if not len(rows):
            continue
        score = ceiling * _STEP**place
        own = np.flatnonzero(np.isin(found, rows))
        if len(own):
            first = own[np.argmax(ranked.scores[own])]
            scores[own] = np.minimum(scores[own], score)
            scores[first] = score
        else:
            title = rows[build.phrases.is_title[rows]]
            ranked = ranked.with_row(int(title[0]) if len(title) else int(rows[0]), score, query)
            scores = np.append(scores, score)
    return RankedRows(ranked.rows, scores, ranked.queries)


def _leading(build: Build, degree: Degree, like: str) -> Iterable[str]:
    """Return the codes that lead, in order; ``?`` is filled from ``like``, the best code of the category.

    A degree of many categories (burns) is that of ``like``'s own, unless it has none there.
    """
    patterns = (*degree.without_degree, *degree.codes) if degree.decides == "several" else degree.codes
    near = [pattern for pattern in patterns if _filled(pattern, like)[:_CATEGORY] == like[:_CATEGORY]]
    for pattern in near or patterns:
        filled = _filled(pattern, like)
        if build.codes.is_terminal(filled):
            yield filled
            if "?" in pattern:
                # What the line leaves open is left open, where few codes remain.
                stem = pattern.partition("?")[0]
                others = [code for code in build.codes.terminal_descendants(stem) if code != filled]
                yield from others if len(others) <= _FEW else ()
        elif "?" in pattern:
            # The category's best code has no such sibling: all that fit, in order.
            yield from (code for code in build.phrases.codes if degree.fits(code) and code[:3] == like[:3])


def _filled(pattern: str, like: str) -> str:
    """Return ``pattern`` with each ``?`` replaced by the sign of ``like`` in its place."""
    return "".join(
        like[place] if sign == "?" and place < len(like) else sign for place, sign in enumerate(pattern)
    )
