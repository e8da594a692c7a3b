"""Body sites said in a phrase, where the last digit of a code is the site.

Holds: ``tables/sites.tsv`` as look-ups, the sites of a line, and checking the labels against the titles of an
edition. Refuses: choosing a code, and choosing between several sites of one family: then none is returned.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from alpha_id_runtime.understanding.reading import Site, label_of
from alpha_id_runtime.understanding.tables import RowPattern, folded, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

COLUMNS = ("family", "base", "label", "words", "pattern")
NO_SITE = "-"
_WORD = re.compile(r"[^\W_]+")


class _Family(NamedTuple):
    """The sites of one family: words with their site, the longest first; None where a word is no site."""

    words: tuple[tuple[str, Site | None], ...]
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
            tuple(sorted(words.get(family, {}).items(), key=lambda pair: -len(pair[0]))),
            tokens.get(family, {}),
            tuple(patterns.get(family, ())),
            tuple(found),
        )
        for family, found in labels.items()
    )


def find_sites(text: str) -> tuple[Site, ...]:
    """Return the site that ``text`` says of each family; none of a family of which it says several."""
    low = folded(text).low
    said = [_said(family, low) for family in load_sites()]
    return tuple(site for sites in said if len(sites) == 1 for site in sites)


def _said(family: _Family, low: str) -> set[Site]:
    """Return the sites of a family that stand in ``low``: levels in figures, words, else short forms."""
    sites: set[Site] = set()
    left = low
    if family.patterns and any(map(str.isdecimal, low)):
        for pattern, site in family.patterns:
            rest = pattern().sub(" ", left)
            if rest != left:
                left = rest
                sites.add(site)
    for word, meant in family.words:
        if word in left:
            left = left.replace(word, " ")
            if meant is not None:
                sites.add(meant)
    if not sites and family.tokens:
        sites.update(family.tokens[token] for token in _WORD.findall(low) if token in family.tokens)
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
