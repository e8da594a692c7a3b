"""Words that mean the same: Latin and German, lay words, practice jargon, spelling.

Holds: ``tables/synonyms.tsv`` as look-ups and the rewritten texts of a line. Refuses: abbreviations, and
taking apart a word that the table keeps whole ("Abbruch" is no Fraktur).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.tables import Folded, folded, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

COLUMNS = ("said", "means", "kind", "way", "where")
# A term of the field in place of a plain word leads; the other way round seldom helps.
WORDS, OTHERS, REVERSED, SPELLING = 0.98, 0.85, 0.84, 0.6
_MAX_TEXTS = 5
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_ENDINGS = ("", "s", "es", "n", "en", "e", "er")
_INFLECTED = ("", "s", "es", "en", "e")
_LEAST_COMPOUND = 7
_LEAST_REST = 3
_SHORTEST_STEM = 5


Meanings = tuple[tuple[str, bool], ...]  # (text, True where the table says it in this direction)


class Synonyms(NamedTuple):
    """The table as look-ups, keys in lower case with umlauts in both spellings.

    ``phrases`` by first word, the longest first.
    """

    phrases: dict[str, tuple[tuple[tuple[str, ...], Meanings], ...]]
    kept: frozenset[str]
    starts: dict[str, str]
    ends: dict[str, str]
    parts: dict[str, str]
    start_lengths: tuple[int, ...]
    end_lengths: tuple[int, ...]


class Rewriting(NamedTuple):
    """A text with words replaced, and what was ("Zucker: Diabetes mellitus")."""

    text: str
    weight: float
    spelling: bool
    notes: tuple[str, ...]


class _Site(NamedTuple):
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
            kept.add(fold(said))
            continue
        where = row.one_of("where", ("word", "part", "start", "end"))
        row.filled("means")
        pairs = [(said, meaning, True) for meaning in row.many("means")]
        if row.one_of("way", ("both", "to")) == "both":
            pairs += [(meaning, said, False) for meaning in row.many("means")]
        for key, meaning, forward in pairs:
            low = fold(key)
            if low == fold(meaning):
                raise row.fail(f"{key!r} stands for itself.")
            if where == "word":
                phrases.setdefault(tuple(_WORD.findall(low)), {}).setdefault(meaning, forward)
            else:
                places[where].setdefault(low, meaning.lower())
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
        parts=dict(sorted(places["part"].items(), key=lambda pair: -len(pair[0]))),
        start_lengths=_lengths(places["start"]),
        end_lengths=_lengths(places["end"]),
    )


def _lengths(keys: Iterable[str]) -> tuple[int, ...]:
    return tuple(sorted({len(key) for key in keys}, reverse=True))


def rewrite(text: str) -> tuple[Rewriting, ...]:
    """Return ``text`` with words of the same meaning: at most five texts, best first."""
    table = load_synonyms()
    whole = folded(text)
    words = list(_WORD.finditer(whole.low))
    sites = list(_sites(table, whole.low, words))
    results: list[Rewriting] = []
    if sites:
        first = [0] * len(sites)
        results.append(_rewritten(whole, sites, first, WORDS))
        for index, site in enumerate(sites):
            results.extend(
                _rewritten(whole, sites, [option if i == index else 0 for i in range(len(sites))], OTHERS)
                for option in range(1, len(site.options))
            )
        if len(sites) > 1:
            results.extend(_rewritten(whole, [site], [0], OTHERS) for site in sites)
    spelled = _spelled(table, whole)
    if spelled is not None:
        results.append(Rewriting(spelled, SPELLING, spelling=True, notes=("spelling",)))
    if not results:
        return ()
    unique = {fold(result.text): result for result in reversed(results)}
    changed = sorted((result for low, result in unique.items() if low != whole.low), key=lambda r: -r.weight)
    plainer = [r for r in changed if r.weight == REVERSED]
    return tuple(r for r in changed if r not in plainer[1:])[:_MAX_TEXTS]


def _spelled(table: Synonyms, whole: Folded) -> str | None:
    """Return the text with parts of words in the other spelling, None where it has no such part."""
    spans: list[tuple[int, int]] = []
    for part in table.parts:
        start = whole.low.find(part)
        while start >= 0:
            end = start + len(part)
            if not any(start < e and s < end for s, e in spans):
                spans.append((start, end))
            start = whole.low.find(part, end)
    if not spans:
        return None
    spans.sort()
    texts = []
    for start, end in spans:
        other = table.parts[whole.low[start:end]]
        capital = whole.text[whole.span(start, end)[0]].isupper()
        texts.append(other.capitalize() if capital else other)
    return " ".join(whole.replaced(spans, texts).split())


def _rewritten(whole: Folded, sites: list[_Site], pick: list[int], weight: float) -> Rewriting:
    notes, meanings = [], []
    for site, option in zip(sites, pick, strict=True):
        meaning, forward = site.options[option]
        weight = weight if forward else min(weight, REVERSED)
        start, end = whole.span(site.start, site.end)
        meanings.append(meaning)
        notes.append(f"{whole.text[start:end]}: {meaning}")
    text = whole.replaced([(site.start, site.end) for site in sites], meanings)
    return Rewriting(" ".join(text.split()), weight, spelling=False, notes=tuple(notes))


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
            options = tuple(m for m in meanings if not _said_already(fold(m[0]), lowered, start, end))
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
    """Return the folded ``word`` with the parts that the table knows replaced, None where it knows none."""
    changed = word
    end = _end_of(table, changed)
    if end:
        place, key = end
        changed = changed[:place].rstrip("-") + table.ends[key]
    for length in table.start_lengths:
        key = changed[:length]
        if key in table.starts and len(changed) - length >= _LEAST_REST:
            rest = changed[length:]
            joined = rest.startswith("s") and rest[:2] not in ("st", "sp", "sc")
            changed = table.starts[key] + (rest[1:] if joined else rest)
            break
    return changed.capitalize() if changed != word else None


def _end_of(table: Synonyms, word: str) -> tuple[int, str] | None:
    """Return where the known end of a compound starts and which it is, an ending of inflection left aside."""
    best: tuple[int, str] | None = None
    for inflected in _INFLECTED:
        stem = word.removesuffix(inflected) if word.endswith(inflected) else None
        if stem is None:
            continue
        for length in table.end_lengths:
            place = len(stem) - length
            if place >= _LEAST_REST and stem[place:] in table.ends:
                if best is None or place < best[0]:
                    best = (place, stem[place:])
                break
    return best
