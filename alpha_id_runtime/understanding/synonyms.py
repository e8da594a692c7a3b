"""Words that mean the same: Latin and German, lay words, practice jargon, spelling.

Holds: ``tables/synonyms.tsv`` as look-ups and the rewritten texts of a line. Refuses: abbreviations, and
taking apart a word that the table keeps whole ("Abbruch" is no Fraktur).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.tables import lower, read_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNS = ("said", "means", "kind", "way", "where")
# A term of the field in place of a plain word leads; the other way round seldom helps.
WORDS, OTHERS, REVERSED, SPELLING = 0.9, 0.75, 0.65, 0.6
_MAX_TEXTS = 5
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_ENDINGS = ("", "s", "es", "n", "en", "e", "er")
_LEAST_COMPOUND = 7
_LEAST_REST = 3
_SHORTEST_STEM = 5


Meanings = tuple[tuple[str, bool], ...]  # (text, True where the table says it in this direction)


@dataclass(frozen=True)
class Synonyms:
    """The table as look-ups, keys in lower case with umlauts in both spellings.

    ``phrases`` by first word, the longest first.
    """

    phrases: dict[str, tuple[tuple[tuple[str, ...], Meanings], ...]]
    kept: frozenset[str]
    starts: dict[str, str]
    ends: dict[str, str]
    parts: dict[str, str]
    start_pattern: re.Pattern[str]
    end_pattern: re.Pattern[str]
    part_pattern: re.Pattern[str]


@dataclass(frozen=True)
class Rewriting:
    """A text with words replaced, and what was ("Zucker: Diabetes mellitus")."""

    text: str
    weight: float
    spelling: bool
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Site:
    start: int
    end: int
    options: Meanings


@lru_cache(maxsize=4)
def load_synonyms(folder: Path | None = None) -> Synonyms:
    """Return the table, read once.

    Raises:
        ConfigError: a row is broken, or says the same of a word twice.
    """
    phrases: dict[tuple[str, ...], dict[str, bool]] = {}
    places: dict[str, dict[str, str]] = {"start": {}, "end": {}, "part": {}}
    kept: set[str] = set()
    for row in read_table("synonyms.tsv", COLUMNS, folder):
        said = row.filled("said")
        if row["kind"] == "keep":
            kept.update((said.lower(), fold(said)))
            continue
        where = row.one_of("where", ("word", "part", "start", "end"))
        row.filled("means")
        pairs = [(said, meaning, True) for meaning in row.many("means")]
        if row.one_of("way", ("both", "to")) == "both":
            pairs += [(meaning, said, False) for meaning in row.many("means")]
        for key, meaning, forward in pairs:
            if key.lower() == meaning.lower():
                raise row.fail(f"{key!r} stands for itself.")
            for spelled in dict.fromkeys((key.lower(), fold(key))):  # umlauts in both spellings
                if where == "word":
                    phrases.setdefault(_key(spelled), {}).setdefault(meaning, forward)
                elif spelled != meaning.lower():
                    places[where].setdefault(spelled, meaning.lower())
    by_first: dict[str, list[tuple[tuple[str, ...], Meanings]]] = {}
    for words, meanings in phrases.items():
        by_first.setdefault(words[0], []).append(
            (words, tuple(sorted(meanings.items(), key=lambda m: not m[1])))
        )
    return Synonyms(
        phrases={first: tuple(sorted(found, key=lambda f: -len(f[0]))) for first, found in by_first.items()},
        kept=frozenset(kept),
        starts=places["start"],
        ends=places["end"],
        parts=places["part"],
        start_pattern=re.compile(_alternatives(places["start"])),
        end_pattern=re.compile(f"(?:{_alternatives(places['end'])})(?=(?:e?s|en|e)?$)"),
        part_pattern=re.compile(_alternatives(places["part"])),
    )


def _key(said: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(said.lower()))


def _alternatives(keys: dict[str, str]) -> str:
    return "|".join(re.escape(key) for key in sorted(keys, key=len, reverse=True)) or r"(?!)"


def rewrite(text: str) -> tuple[Rewriting, ...]:
    """Return ``text`` with words of the same meaning: at most five texts, best first."""
    table = load_synonyms()
    lowered = lower(text)
    words = list(_WORD.finditer(lowered))
    sites = list(_sites(table, lowered, words))
    results: list[Rewriting] = []
    if sites:
        first = [0] * len(sites)
        results.append(_rewritten(text, sites, first, WORDS))
        for index, site in enumerate(sites):
            results.extend(
                _rewritten(text, sites, [option if i == index else 0 for i in range(len(sites))], OTHERS)
                for option in range(1, len(site.options))
            )
        if len(sites) > 1:
            results.extend(_rewritten(text, [site], [0], OTHERS) for site in sites)
    spelled = table.part_pattern.sub(lambda m: table.parts[m.group()], lowered)
    if spelled != lowered:
        results.append(Rewriting(" ".join(spelled.split()), SPELLING, spelling=True, notes=("spelling",)))
    unique = {result.text.lower(): result for result in reversed(results)}
    ordered = sorted(unique.values(), key=lambda r: -r.weight)
    changed = [r for r in ordered if r.text.lower() != lowered]
    plainer = [r for r in changed if r.weight == REVERSED]
    return tuple(r for r in changed if r not in plainer[1:])[:_MAX_TEXTS]


def _rewritten(text: str, sites: list[_Site], pick: list[int], weight: float) -> Rewriting:
    out, last, notes = [], 0, []
    for site, option in zip(sites, pick, strict=True):
        meaning, forward = site.options[option]
        weight = weight if forward else min(weight, REVERSED)
        out += [text[last : site.start], meaning]
        notes.append(f"{text[site.start : site.end]}: {meaning}")
        last = site.end
    out.append(text[last:])
    return Rewriting(" ".join("".join(out).split()), weight, spelling=False, notes=tuple(notes))


def _sites(table: Synonyms, lowered: str, words: list[re.Match[str]]) -> Iterator[_Site]:
    index = 0
    while index < len(words):
        word = words[index].group()
        if word in table.kept:
            index += 1
            continue
        found = _phrase_at(table, words, index)
        if found:
            count, meanings = found
            start, end = words[index].start(), words[index + count - 1].end()
            options = tuple(m for m in meanings if not _said_already(m[0].lower(), lowered, start, end))
            if options:
                yield _Site(start, end, options)
            index += count
            continue
        compound = _compound(table, word) if len(word) >= _LEAST_COMPOUND else None
        if compound:
            yield _Site(words[index].start(), words[index].end(), ((compound, True),))
        index += 1


def _said_already(meaning: str, lowered: str, start: int, end: int) -> bool:
    """Return whether the line says ``meaning`` around the word: "Diabetes" in "Diabetes mellitus"."""
    said = lowered[start:end]
    at = meaning.find(said)
    if at < 0:
        return False
    return lowered.startswith(meaning, max(0, start - at)) and start >= at


def _phrase_at(table: Synonyms, words: list[re.Match[str]], index: int) -> tuple[int, Meanings] | None:
    for stem in _stems(words[index].group()):
        for phrase, meanings in table.phrases.get(stem, ()):
            count = len(phrase)
            if count == 1:
                return 1, meanings
            if stem != words[index].group() or index + count > len(words):
                continue
            rest = [w.group() for w in words[index + 1 : index + count]]
            if rest[:-1] == list(phrase[1:-1]) and phrase[-1] in _stems(rest[-1]):
                return count, meanings
    return None


def _stems(word: str) -> list[str]:
    return [word] + [
        word[: -len(ending)]
        for ending in _ENDINGS[1:]
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM
    ]


def _compound(table: Synonyms, word: str) -> str | None:
    """Return ``word`` with the parts that the table knows replaced, None where it knows none."""
    changed = word
    end = table.end_pattern.search(changed)
    if end and end.start() >= _LEAST_REST:
        changed = changed[: end.start()].rstrip("-") + table.ends[end.group()]
    start = table.start_pattern.match(changed)
    if start and len(changed) - start.end() >= _LEAST_REST:
        rest = changed[start.end() :]
        changed = table.starts[start.group()] + rest.removeprefix(
            "s" if rest[:2] not in ("st", "sp", "sc") else "\0"
        )
    return changed.capitalize() if changed != word else None
