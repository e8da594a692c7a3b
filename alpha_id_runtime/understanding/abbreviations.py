"""Abbreviations written out: the curated table applied to a line.

Holds: ``tables/abbreviations.tsv`` as look-ups, and the readings of a line. An abbreviation with several
readings is settled by the other words of the line, else all readings are given. Refuses: guessing a meaning
that no table gives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from alpha_id_runtime.understanding.tables import lower, read_table, spell_out

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COLUMNS = ("short", "case", "long", "context", "join", "field")
SETTLED, OPEN = 0.95, (0.85, 0.7, 0.6)
_MAX_TEXTS = 4
_TOKEN = re.compile(r"[^\W_]+(?:[-/][^\W_]+)*\.?")
_PIECE = re.compile(r"[^\W_]+")
_GLUED = re.compile(r"([A-ZÄÖÜ][a-zäöüß]{3,})(C[Aa])\.?")
_SHORT_WORD, _MERE_ENDING = 4, 3
# Words that stand for themselves in a line written in capitals.
_CAPITAL_WORDS = frozenset(
    {"AN", "IN", "AM", "IM", "AS", "ES", "SO", "DA", "ET", "OS", "OL", "MIT", "HIT", "ALL", "ENT"}
)


@dataclass(frozen=True)
class Long:
    """One reading of a short form."""

    text: str
    context: re.Pattern[str] | None
    glue: bool


@dataclass(frozen=True)
class Abbreviations:
    """The table as look-ups: as written, in lower case, and those of several pieces by their first piece."""

    exact: dict[str, tuple[Long, ...]]
    any_case: dict[str, tuple[Long, ...]]
    pieces: dict[str, tuple[tuple[re.Pattern[str], tuple[Long, ...]], ...]]
    glued: dict[str, Long]


@dataclass(frozen=True)
class Expansion:
    """A text with its abbreviations written out, and what was written out ("KHK: koronare Herzkrankheit")."""

    text: str
    weight: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Site:
    start: int
    end: int
    short: str
    options: tuple[str, ...]
    settled: bool


@lru_cache(maxsize=4)
def load_abbreviations(folder: Path | None = None) -> Abbreviations:
    """Return the table, read once.

    Raises:
        ConfigError: a row is broken, or a reading stands twice.
    """
    readings: dict[tuple[str, str], list[Long]] = {}
    for row in read_table("abbreviations.tsv", COLUMNS, folder):
        row.one_of("join", ("", "glue"))
        key = (row.filled("short"), row.one_of("case", ("exact", "any")))
        stems = row.many("context")
        context = (
            re.compile("|".join(spell_out(re.escape(stem.lower())) for stem in stems)) if stems else None
        )
        long = Long(row.filled("long"), context, row["join"] == "glue")
        if any(other.text == long.text for other in readings.get(key, [])):
            raise row.fail(f"the reading {long.text!r} of {key[0]!r} stands twice.")
        readings.setdefault(key, []).append(long)
    exact: dict[str, tuple[Long, ...]] = {}
    any_case: dict[str, tuple[Long, ...]] = {}
    pieces: dict[str, list[tuple[re.Pattern[str], tuple[Long, ...]]]] = {}
    glued: dict[str, Long] = {}
    for (short, case), found in readings.items():
        longs = tuple(found)
        parts = _PIECE.findall(short)
        if len(parts) > 1:
            flags = re.IGNORECASE if case == "any" else 0
            pieces.setdefault(parts[0].lower(), []).append((re.compile(_loosely(short), flags), longs))
        elif case == "exact":
            exact[short] = longs
        else:
            any_case[short.lower()] = longs
        if longs[0].glue and short.endswith("."):
            glued[short.lower()] = longs[0]
    ordered = {
        first: tuple(sorted(found, key=lambda pair: -len(pair[0].pattern))) for first, found in pieces.items()
    }
    return Abbreviations(exact, any_case, ordered, glued)


def _loosely(short: str) -> str:
    """Return a pattern of ``short``: blanks after dots, hyphen or blank alike, the last dot optional."""
    body = re.escape(short.rstrip("."))
    body = body.replace(r"\.\ ", r"\.").replace(r"\.", r"\.\s?")
    body = body.replace(r"\ ", r"\s").replace(r"\-", r"[-\s]?")
    return body + (r"(?:\.|(?![\w.]))" if short.endswith(".") else r"(?!\w)")


def expand(text: str, mined: Mapping[str, tuple[str, ...]] | None = None) -> tuple[Expansion, ...]:
    """Return ``text`` with its abbreviations written out: at most four texts, best first, or none.

    Args:
        text: a line, certainty words taken off.
        mined: further short forms with their long ones, used where the table knows none.
    """
    sites = _sites(text, mined or {})
    if not sites:
        return ()
    picks = [tuple(0 for _ in sites)]
    for index, site in enumerate(sites):
        picks.extend(
            tuple(option if i == index else 0 for i in range(len(sites)))
            for option in range(1, len(site.options))
        )
    settled = all(site.settled for site in sites)
    results = []
    for rank, pick in enumerate(picks[:_MAX_TEXTS]):
        weight = SETTLED if settled and rank == 0 else OPEN[min(rank, len(OPEN) - 1)]
        results.append(Expansion(_written(text, sites, pick), weight, _notes(sites, pick)))
    return tuple(results)


def _written(text: str, sites: list[_Site], pick: tuple[int, ...]) -> str:
    out, last = [], 0
    for site, option in zip(sites, pick, strict=True):
        out.append(text[last : site.start])
        out.append(site.options[option])
        if site.end < len(text) and text[site.end].isalnum():
            out.append(" ")
        last = site.end
    out.append(text[last:])
    return " ".join("".join(out).split())


def _notes(sites: list[_Site], pick: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{site.short}: {site.options[option]}" for site, option in zip(sites, pick, strict=True))


def _sites(text: str, mined: Mapping[str, tuple[str, ...]]) -> list[_Site]:
    table = load_abbreviations()
    lowered = lower(text)
    shouted = text.isupper() and " " in text
    sites: list[_Site] = []
    position = 0
    while match := _TOKEN.search(text, position):
        site = _pieces_at(table, text, lowered, match.start()) or _token_at(
            table, text, lowered, match, mined
        )
        if site and not (shouted and site.short in _CAPITAL_WORDS):
            sites.append(site)
            position = site.end
        else:
            position = match.end()
    return sites


def _pieces_at(table: Abbreviations, text: str, lowered: str, start: int) -> _Site | None:
    first = _PIECE.match(lowered, start)
    for pattern, longs in table.pieces.get(first.group(), ()) if first else ():
        match = pattern.match(text, start)
        if match:
            return _site(match.start(), match.end(), text, lowered, longs)
    return None


def _token_at(
    table: Abbreviations, text: str, lowered: str, match: re.Match[str], mined: Mapping[str, tuple[str, ...]]
) -> _Site | None:
    start, end = match.span()
    longs = _look_up(table, match.group(), mined)
    if longs:
        keeps_dot = match.group().endswith(".") and end < len(text)
        return _site(
            start, end if not keeps_dot or _has_dot(table, match.group()) else end - 1, text, lowered, longs
        )
    glued = _glued(table, match.group())
    if glued:
        return _Site(start, end, match.group(), (glued,), settled=True)
    parts = match.group().rstrip(".").split("-")
    if len(parts) > 1 and "/" not in match.group():
        for index, part in enumerate(parts):
            longs = _look_up(table, part, mined)
            if longs and len(part) != 1:
                return _compound(start, end, match.group(), parts, index, longs, text, lowered)
    return None


def _has_dot(table: Abbreviations, token: str) -> bool:
    return token in table.exact or token.lower() in table.any_case


def _compound(  # noqa: PLR0917  # the pieces of one match, passed on once
    start: int,
    end: int,
    token: str,
    parts: list[str],
    index: int,
    longs: tuple[Long, ...],
    text: str,
    lowered: str,
) -> _Site:
    inner = _site(start, end, text, lowered, longs)
    options = []
    for long in inner.options:
        if index == len(parts) - 1 and longs[0].glue and index > 0:
            options.append(" ".join([*parts[: index - 1], parts[index - 1] + long[:1].lower() + long[1:]]))
        else:
            options.append(" ".join([*parts[:index], long, *parts[index + 1 :]]))
    return _Site(start, end, token, tuple(options), inner.settled)


def _glued(table: Abbreviations, token: str) -> str | None:
    camel = _GLUED.fullmatch(token)
    if camel:
        return camel.group(1) + "karzinom"
    if token.endswith("."):
        low = token.lower()
        for short, long in table.glued.items():
            if low.endswith(short) and len(low) > len(short) + 2:
                return token[: -len(short)].rstrip("-") + long.text[:1].lower() + long.text[1:]
    return None


def _look_up(table: Abbreviations, token: str, mined: Mapping[str, tuple[str, ...]]) -> tuple[Long, ...]:
    for form in (token, token.rstrip(".")):
        found = table.exact.get(form) or table.any_case.get(form.lower())
        if found:
            return found
    low = token.lower()
    if len(token) >= _SHORT_WORD:
        dotted = table.any_case.get(low + ".", ())
        long = dotted[0].text.lower() if dotted else ""
        if dotted and (not long.startswith(low) or len(long) > len(low) + _MERE_ENDING):
            return dotted
    return tuple(Long(text, None, glue=False) for text in mined.get(token.rstrip("."), ()))


def _site(start: int, end: int, text: str, lowered: str, longs: tuple[Long, ...]) -> _Site:
    short = text[start:end]
    if len(longs) == 1:
        return _Site(start, end, short, (longs[0].text,), settled=True)
    rest = lowered[:start] + " " + lowered[end:]
    fitting = [long for long in longs if long.context and long.context.search(rest)]
    if fitting:
        return _Site(start, end, short, tuple(long.text for long in fitting), settled=len(fitting) == 1)
    ordered = sorted(longs, key=lambda long: long.context is not None)
    return _Site(start, end, short, tuple(long.text for long in ordered), settled=False)
