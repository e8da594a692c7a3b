"""Abbreviations written out: the curated table applied to a line.

Holds: ``tables/abbreviations.tsv`` as look-ups, and the readings of a line. An abbreviation with several
readings is settled by the other words of the line, else all readings are given. Refuses: guessing a meaning
that no table gives.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.tables import Folded, LazyPattern, folded, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COLUMNS = ("short", "case", "long", "context", "join", "field")
SETTLED, OPEN = 0.98, (0.85, 0.7, 0.6)
_MAX_TEXTS = 4
_TOKEN = re.compile(r"[^\W_]+(?:[-/][^\W_]+)*\.?")
_PIECE = re.compile(r"[^\W_]+")
_GLUED = LazyPattern(r"([A-ZÄÖÜ][a-zäöüß]{3,})(C[Aa])\.?")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "AE", "Ö": "OE", "Ü": "UE", "ß": "ss"})
_SHORT_WORD, _MERE_ENDING = 4, 3
# Words that stand for themselves in a line written in capitals.
_CAPITAL_WORDS = frozenset(
    {"AN", "IN", "AM", "IM", "AS", "ES", "SO", "DA", "ET", "OS", "OL", "MIT", "HIT", "ALL", "ENT"}
)


class Long(NamedTuple):
    """One reading of a short form."""

    text: str
    context: tuple[str, ...]
    glue: bool


class Abbreviations(NamedTuple):
    """The table as look-ups: by case, folded, and those of several pieces by their folded first piece.

    Keys of ``exact`` keep their case; umlauts are spelled out in all.
    """

    exact: dict[str, tuple[Long, ...]]
    any_case: dict[str, tuple[Long, ...]]
    pieces: dict[str, tuple[tuple[LazyPattern, bool, tuple[Long, ...]], ...]]
    glued: dict[str, Long]


class Expansion(NamedTuple):
    """A text with its abbreviations written out, and what was written out ("KHK: koronare Herzkrankheit")."""

    text: str
    weight: float
    notes: tuple[str, ...]


class _Site(NamedTuple):
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
        long = Long(row.filled("long"), row.stems("context"), row["join"] == "glue")
        known = readings.setdefault(key, [])
        if any(other.text == long.text for other in known):
            raise row.fail(f"the reading {long.text!r} of {key[0]!r} stands twice.")
        known.append(long)
    exact: dict[str, tuple[Long, ...]] = {}
    any_case: dict[str, tuple[Long, ...]] = {}
    pieces: dict[str, list[tuple[LazyPattern, bool, tuple[Long, ...]]]] = {}
    glued: dict[str, Long] = {}
    for (short, case), found in readings.items():
        longs = tuple(found)
        parts = _PIECE.findall(short)
        if len(parts) > 1:
            exactly = case == "exact"
            pattern = LazyPattern(_loosely(_spelled(short) if exactly else fold(short)))
            pieces.setdefault(fold(parts[0]), []).append((pattern, exactly, longs))
        elif case == "exact":
            exact[_spelled(short)] = longs
        else:
            any_case[fold(short)] = longs
        if longs[0].glue and short.endswith("."):
            glued[fold(short)] = longs[0]
    ordered = {
        first: tuple(sorted(found, key=lambda each: -len(each[0].source))) for first, found in pieces.items()
    }
    return Abbreviations(exact, any_case, ordered, glued)


def _spelled(short: str) -> str:
    """Return ``short`` in its case, umlauts spelled out."""
    return short if short.isascii() else short.translate(_UMLAUTS)


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


def is_short(token: str) -> bool:
    """Return whether ``token`` is a short form of the table ("V.a.", "Insuff.")."""
    return bool(_sites(token, {}))


def _sites(text: str, mined: Mapping[str, tuple[str, ...]]) -> list[_Site]:
    table = load_abbreviations()
    whole = folded(text)
    shouted = text.isupper() and " " in text
    sites: list[_Site] = []
    position = 0
    for match in _TOKEN.finditer(text):
        if match.start() < position:
            continue
        site = _pieces_at(table, text, match.start()) or _token_at(table, whole, match, mined)
        if site and not (shouted and site.short in _CAPITAL_WORDS):
            sites.append(site)
            position = site.end
    return sites


def _pieces_at(table: Abbreviations, text: str, start: int) -> _Site | None:
    first = _PIECE.match(text, start)
    candidates = table.pieces.get(fold(first.group())) if first else None
    if not candidates:
        return None
    rest = Folded(text[start:])
    for pattern, exactly, longs in candidates:
        if exactly:
            spelled = pattern().match(_spelled(rest.text))
            end = len(rest.text) - len(_unspelled(rest.text, spelled.end())) if spelled else 0
        else:
            match = pattern().match(rest.low)
            end = rest.span(0, match.end())[1] if match else 0
        if end:
            return _site(start, start + end, folded(text), longs)
    return None


def _unspelled(text: str, count: int) -> str:
    """Return what is left of ``text`` behind the first ``count`` signs of its spelling."""
    for place, sign in enumerate(text):
        if count <= 0:
            return text[place:]
        count -= len(_spelled(sign))
    return ""


def _token_at(
    table: Abbreviations, whole: Folded, match: re.Match[str], mined: Mapping[str, tuple[str, ...]]
) -> _Site | None:
    (start, end), token = match.span(), match.group()
    longs = _look_up(token, mined)
    if longs:
        drops_dot = token.endswith(".") and end < len(whole.text) and not _has_dot(table, token)
        return _site(start, end - 1 if drops_dot else end, whole, longs)
    glued = _glued(table, token)
    if glued:
        return _Site(start, end, token, (glued,), settled=True)
    parts = token.rstrip(".").split("-")
    if len(parts) > 1 and "/" not in token:
        for index, part in enumerate(parts):
            longs = _look_up(part, mined)
            site = _site(start, end, whole, longs) if longs and len(part) != 1 else None
            if site:
                return _compound(site, parts, index, glue=longs[0].glue)
    return None


def _has_dot(table: Abbreviations, token: str) -> bool:
    return _spelled(token) in table.exact or fold(token) in table.any_case


def _compound(inner: _Site, parts: list[str], index: int, *, glue: bool) -> _Site:
    options = []
    for long in inner.options:
        if index == len(parts) - 1 and glue and index > 0:
            options.append(" ".join([*parts[: index - 1], parts[index - 1] + long[:1].lower() + long[1:]]))
        else:
            options.append(" ".join([*parts[:index], long, *parts[index + 1 :]]))
    return _Site(inner.start, inner.end, inner.short, tuple(options), inner.settled)


def _glued(table: Abbreviations, token: str) -> str | None:
    if token[-2:] in ("Ca", "CA", "a.", "A."):
        camel = _GLUED().fullmatch(token)
        if camel:
            return camel.group(1) + "karzinom"
    if token.endswith("."):
        low = fold(token)
        for short, long in table.glued.items():
            if low.endswith(short) and len(low) > len(short) + 2:
                return token[: -len(short)].rstrip("-") + long.text[:1].lower() + long.text[1:]
    return None


def _look_up(token: str, mined: Mapping[str, tuple[str, ...]]) -> tuple[Long, ...]:
    return _known(token) or tuple(Long(text, (), glue=False) for text in mined.get(token.rstrip("."), ()))


@lru_cache(maxsize=8192)
def _known(token: str) -> tuple[Long, ...]:
    """Return the readings that the table gives a token; words come again and again."""
    table = load_abbreviations()
    spelled, low = _spelled(token), fold(token)
    found = table.exact.get(spelled) or table.any_case.get(low)
    if found:
        return found
    if token.endswith("."):
        return table.exact.get(spelled.rstrip(".")) or table.any_case.get(low.rstrip(".")) or ()
    if len(token) >= _SHORT_WORD:
        dotted = table.any_case.get(low + ".", ())
        long = fold(dotted[0].text) if dotted else ""
        if dotted and (not long.startswith(low) or len(long) > len(low) + _MERE_ENDING):
            return dotted
    return ()


def _said_around(long: str, whole: Folded, start: int, end: int) -> bool:
    """Return whether the line says ``long`` around its short form: "3MRGN" in "Multiresistenz 3MRGN"."""
    at = long.find(whole.text[start:end])
    return 0 <= at <= start and whole.text.startswith(long, start - at)


def _site(start: int, end: int, whole: Folded, longs: tuple[Long, ...]) -> _Site | None:
    short = whole.text[start:end]
    if _said_around(longs[0].text, whole, start, end):
        return None
    if len(longs) == 1:
        return _Site(start, end, short, (longs[0].text,), settled=True)
    rest = fold(whole.text[:start] + " " + whole.text[end:])
    fitting = [long for long in longs if any(stem in rest for stem in long.context)]
    if fitting:
        return _Site(start, end, short, tuple(long.text for long in fitting), settled=len(fitting) == 1)
    ordered = sorted(longs, key=lambda long: bool(long.context))
    return _Site(start, end, short, tuple(long.text for long in ordered), settled=False)
