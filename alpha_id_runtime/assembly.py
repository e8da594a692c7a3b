"""From each phrase's ranked codes to the ONE list: places, order, origins. Pure.

Holds: the contract of the list ("One list" on the architecture page). Refuses: retrieval and scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from alpha_id_runtime.model import NamedComplement, OriginHit, Suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alpha_id_runtime.codes import CodeTable
    from alpha_id_runtime.filters import Conflict
    from alpha_id_runtime.model import Certainty, Complement, Entry, Laterality, Segment

SCORE_DIGITS = 6
# The share of a phrase's best score from which on a code counts as said by that phrase.
_SUPPORT = 0.8


@dataclass(frozen=True)
class CodeHit:
    """One code found for one phrase: the winning row, its score, what it is in conflict with.

    ``query``: the place of the text that found it among those tried, below 0 for a code written in the line.
    """

    code: str
    row: int
    score: float
    conflict: tuple[Conflict, ...] = ()
    certainty: Certainty | None = None
    added: tuple[Complement, ...] = ()
    query: int = 0

    @property
    def key(self) -> tuple[bool, bool, float]:
        """Sort key: what is said to be excluded last, before it what is in conflict, then by score."""
        return self.certainty == "A", bool(self.conflict), -self.score


@dataclass(frozen=True)
class PhraseHits:
    """All codes found for one phrase, by score, one hit a code."""

    segment: Segment
    hits: tuple[CodeHit, ...]
    laterality: Laterality | None = None


def choose_codes(phrases: Sequence[PhraseHits], top: int) -> tuple[list[str], list[int]]:
    """Return (the codes that get a place, the segments left without one).

    Every phrase's best candidate gets a place before any phrase's second; where there are more phrases than
    places, those without conflict win, then the better scored ones, then the earlier ones. A candidate
    already placed takes no new place. A phrase whose best candidate got no place is left without one, even
    if a lesser candidate of its own stands in the list for another phrase's sake.
    """
    chosen: dict[str, None] = {}
    depth = max((len(phrase.hits) for phrase in phrases), default=0)
    for turn in range(depth):
        in_turn = [(phrase.hits[turn], phrase.segment.index) for phrase in phrases if turn < len(phrase.hits)]
        for hit, _ in sorted(in_turn, key=lambda pair: (pair[0].key, pair[1])):
            if len(chosen) >= top:
                break
            chosen.setdefault(hit.code)
    unrepresented = [
        phrase.segment.index for phrase in phrases if phrase.hits and phrase.hits[0].code not in chosen
    ]
    return list(chosen), unrepresented


def assemble(
    phrases: Sequence[PhraseHits], top: int, codes: CodeTable, entries: dict[int, Entry]
) -> tuple[tuple[Suggestion, ...], tuple[int, ...]]:
    """Return (the list, the segments left without a place).

    ``entries`` maps every row that hits speak of to its entry. Order: without conflict first, score (the best
    over the phrases), number of phrases, code; what every phrase says to be excluded comes last.
    """
    chosen, unrepresented = choose_codes(phrases, top)
    found: dict[str, list[tuple[CodeHit, PhraseHits]]] = {code: [] for code in chosen}
    for phrase in phrases:
        for hit in phrase.hits:
            if hit.code in found:
                found[hit.code].append((hit, phrase))
    suggestions = [_suggestion(_supporting(pairs), codes, entries) for pairs in found.values()]
    suggestions.sort(
        key=lambda s: (_is_excluded(s), bool(s.conflict), -s.score, -len(s.source_segments), s.icd_code)
    )
    return tuple(suggestions), tuple(unrepresented)


def _supporting(pairs: list[tuple[CodeHit, PhraseHits]]) -> list[tuple[CodeHit, PhraseHits]]:
    """Return the phrases a code came from: the one it scores best for, and those it is near the best of.

    A code that is somewhere far down another phrase's candidates was not said there.
    """
    best = min(pairs, key=lambda pair: (pair[0].key, pair[1].segment.index))
    return [pair for pair in pairs if pair is best or pair[0].score >= _SUPPORT * pair[1].hits[0].score]


def _is_excluded(suggestion: Suggestion) -> bool:
    return all(origin.certainty == "A" for origin in suggestion.origins)


def _suggestion(
    pairs: list[tuple[CodeHit, PhraseHits]], codes: CodeTable, entries: dict[int, Entry]
) -> Suggestion:
    ordered = sorted(pairs, key=lambda pair: (pair[0].key, pair[1].segment.index))
    best = ordered[0][0]
    entry = entries[best.row]
    tags = codes.tags(best.code, valid=entry.valid)
    if all(hit.certainty == "A" for hit, _ in pairs):
        # What is excluded is documented, never billed.
        tags = replace(tags, billable=False, billable_ambulant=False, billable_stationaer=False)
    complements = {
        each.icd_code: each for each in (*entry.complements, *(a for h, _ in pairs for a in h.added))
    }
    return Suggestion(
        icd_code=best.code,
        description=codes.title(best.code),
        score=round(best.score, SCORE_DIGITS),
        matched_phrase=entry.text,
        alpha_id=entry.alpha_id,
        orpha=entry.orpha,
        origin=entry.origin,
        source_segments=tuple(sorted({phrase.segment.index for _, phrase in pairs})),
        origins=tuple(_origin(hit, phrase, entries[hit.row]) for hit, phrase in ordered),
        secondary_only=tags.usage in ("aster", "optional"),
        edition_gap=entry.edition_gap,
        conflict=best.conflict,
        tags=tags,
        complements=tuple(
            NamedComplement(each.icd_code, each.usage, codes.title(each.icd_code))
            for each in complements.values()
        ),
    )


def _origin(hit: CodeHit, phrase: PhraseHits, entry: Entry) -> OriginHit:
    return OriginHit(
        segment=phrase.segment.index,
        phrase=phrase.segment.text,
        matched_phrase=entry.text,
        alpha_id=entry.alpha_id,
        orpha=entry.orpha,
        origin=entry.origin,
        valid=entry.valid,
        score=round(hit.score, SCORE_DIGITS),
        certainty=hit.certainty,
        laterality=phrase.laterality,
    )
