"""Body sites said in a phrase, where the last digit of a code is the site.

Holds: ``tables/sites.tsv`` as look-ups, the sites of a line, and checking the labels against the titles of an
edition. Refuses: choosing a code, and choosing between several sites of one family: then none is returned.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from alpha_id_runtime.understanding.reading import Site, label_of
from alpha_id_runtime.understanding.tables import Finder, RowPattern, folded, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

COLUMNS = ("family", "base", "label", "words", "pattern")
NO_SITE = "-"
_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")


class _Family(NamedTuple):
    """The sites of one family: words with their rank (the longest first) and site, None for no site."""

    words: dict[str, tuple[int, Site | None]]
    finder: Finder
    tokens: dict[str, Site]
    patterns: tuple[tuple[RowPattern, Site], ...]
    labels: tuple[str, ...]


@lru_cache(maxsize=4)
def load_sites(folder: Path | None = None) -> tuple[_Family, ...]:
    """Return the families of sites, read once.

    Raises:
        ConfigError: a row is broken.
    """
    words: dict[str, dict[str, Site | None]] = {}
    tokens: dict[str, dict[str, Site]] = {}
    patterns: dict[str, list[tuple[RowPattern, Site]]] = {}
    labels: dict[str, list[str]] = {}
    for row in read_table("sites.tsv", COLUMNS, folder):
        family, label = row.filled("family"), row.filled("label")
        site = Site(family, label, row.many("base"))
        for word in row.stems("words"):
            if word.startswith("="):
                tokens.setdefault(family, {})[word[1:]] = site
            else:
                words.setdefault(family, {})[word] = None if label == NO_SITE else site
        if row["pattern"]:
            patterns.setdefault(family, []).append((row.pattern("pattern"), site))
        if label != NO_SITE:
            labels.setdefault(family, []).append(label)
    return tuple(
        _Family(
            _ranked(words.get(family, {})),
            Finder(words.get(family, {})),
            tokens.get(family, {}),
            tuple(patterns.get(family, ())),
            tuple(found),
        )
        for family, found in labels.items()
    )


def _ranked(words: dict[str, Site | None]) -> dict[str, tuple[int, Site | None]]:
    longest_first = sorted(words, key=lambda word: -len(word))
    return {word: (rank, words[word]) for rank, word in enumerate(longest_first)}


def find_sites(text: str) -> tuple[Site, ...]:
    """Return the site that ``text`` says of each family; none of a family of which it says several."""
    low = folded(text).low
    tokens = frozenset(_WORD.findall(low))
    figures = _DIGIT.search(low) is not None
    said = [_said(family, low, tokens, figures=figures) for family in load_sites()]
    return tuple(site for sites in said if len(sites) == 1 for site in sites)


def _said(family: _Family, low: str, tokens: frozenset[str], *, figures: bool) -> set[Site]:
    """Return the sites of a family that stand in ``low``: levels in figures, words, else short forms."""
    sites: set[Site] = set()
    left = low
    if figures:
        for pattern, site in family.patterns:
            rest = pattern().sub(" ", left)
            if rest != left:
                left = rest
                sites.add(site)
    for word in sorted(family.finder.all_in(low), key=lambda word: family.words[word][0]):
        if word in left:
            left = left.replace(word, " ")
            meant = family.words[word][1]
            if meant is not None:
                sites.add(meant)
    if not sites and family.tokens:
        sites.update(family.tokens[token] for token in tokens & family.tokens.keys())
    return sites


def check_sites(titles: Iterable[tuple[str, str]], folder: Path | None = None) -> list[str]:
    """Return the labels that no code of their base bears in an edition, one sentence each.

    Args:
        titles: code and full title of every code of the edition.
        folder: where the table is; by default that of the package.
    """
    borne = [(code, label_of(title)) for code, title in titles]
    problems = []
    for row in read_table("sites.tsv", COLUMNS, folder):
        site = Site(row["family"], row["label"], row.many("base"))
        if site.label != NO_SITE and not any(
            site.applies_to(code) and site.fits(f"x: {label}") for code, label in borne if label
        ):
            problems.append(f"sites.tsv, line {row.line}: no title of the edition ends in {site.label!r}.")
    return problems
