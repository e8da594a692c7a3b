"""Abbreviations that the corpus explains itself in square brackets, both ways.

Holds: ``mine_abbreviations``. "AKI [Acute Kidney Injury]" and "Akutes Nierenversagen [ANV]" are accepted
only when the letters fit. Refuses: a pair whose letters do not stand in the long form in their order.

The rule follows Schwartz and Hearst (A simple algorithm for identifying abbreviation definitions in
biomedical text, 2003): each letter of the short form stands in the long one, in order, the first at the start
of a word; here also half of the letters (or as many as half the words) must start a word, unless the long
form is one compound.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.tables import LazyPattern

if TYPE_CHECKING:
    from collections.abc import Iterable

_BRACKET = LazyPattern(r"(?P<before>[^\[\]]*?)\s*\[(?P<inside>[^\[\]]{2,120})\]")
_SHORT = LazyPattern(r"(?=(?:[^A-ZÄÖÜ]*[A-ZÄÖÜ]){2})[A-Za-zÄÖÜäöü0-9]{2,9}")
_LAST = LazyPattern(r"(?:^|[\s(\-])(?P<short>[^\s()\-,;]+)$")
_WORDS_BEYOND = 5


def mine_abbreviations(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return short form -> its long forms, in the order found; twins in case or umlaut count once."""
    pairs: dict[str, dict[str, str]] = {}
    for text in texts:
        if "[" not in text:
            continue
        for match in _BRACKET().finditer(text):
            pair = _pair(match["before"], match["inside"].strip())
            if pair:
                pairs.setdefault(pair[0], {}).setdefault(fold(pair[1]), pair[1])
    return {short: tuple(longs.values()) for short, longs in pairs.items()}


def _pair(before: str, inside: str) -> tuple[str, str] | None:
    last = _LAST().search(before)
    if last and _SHORT().fullmatch(last["short"]) and not _SHORT().fullmatch(inside):
        return (last["short"], inside) if _fits(last["short"], inside) == 0 else None
    if not _SHORT().fullmatch(inside):
        return None
    words = before.split()
    reach = words[-min(len(inside) + _WORDS_BEYOND, 2 * len(inside)) :]
    candidate = " ".join(reach)
    start = _fits(inside, candidate)
    if start is None:
        return None
    long = candidate[start:].strip(" ,;(")
    return (inside, long) if len(long) > len(inside) + 1 else None


def _fits(short: str, long: str) -> int | None:
    """Return where in ``long`` the long form of ``short`` starts, None where the letters do not fit.

    The start nearest to the end of ``long`` counts.
    """
    low = long.lower()
    letters = [letter for letter in short.lower() if letter.isalnum()]
    for place in range(len(low) - 1, -1, -1):
        if low[place] == letters[0] and _starts_word(low, place):
            starts = _most_starts(letters, low, place)
            words = len(re.findall(r"[^\W_]+", low[place:]))
            needed = 1 if words <= 2 else min(len(letters), words) / 2  # noqa: PLR2004  # one or two: a compound
            if starts >= needed:
                return place
    return None


def _most_starts(letters: list[str], low: str, place: int) -> int:
    """Return how many of ``letters``, in order from ``place`` on, can start a word; 0 if one is missing."""
    reached = {place: 1}
    for letter in letters[1:]:
        following: dict[int, int] = {}
        best = 0
        for at in range(place, len(low)):
            if best and low[at] == letter:
                following[at] = best + _starts_word(low, at)
            best = max(best, reached.get(at, 0))
        reached = following
    return max(reached.values(), default=0)


def _starts_word(low: str, at: int) -> bool:
    return at == 0 or not low[at - 1].isalnum()
