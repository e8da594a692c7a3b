"""Words that mean the same: Latin and German, lay words, practice jargon, spelling.

Holds: ``tables/synonyms.tsv`` as look-ups and the rewritten texts of a line. A phrase of several words is
found in any inflection and with or without articles ("Wasser in den Beinen", "Wasser im Bein"); an adjective
or a person stands for the condition only where it stands alone in its clause ("dement", "Drogenabhängiger",
"Rheumapatientin"; not "Psychose, schizophren reagierend"). Refuses: abbreviations, and taking apart a word
that the table keeps whole ("Abbruch" is no Fraktur).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.synonym_table import (
    ARTICLES,
    WORD,
    Meanings,
    Synonyms,
    condition_of,
    load_synonyms,
    meanings_of,
    stem_in_phrase,
)
from alpha_id_runtime.understanding.tables import Folded, folded

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

# A term of the field in place of a plain word leads; the other way round seldom helps.
WORDS, OTHERS, REVERSED, SPELLING = 0.98, 0.85, 0.84, 0.6
_MAX_TEXTS = 5
_INFLECTED = ("", "s", "es", "en", "e")
_LEAST_COMPOUND = 7
_LEAST_REST = 3
# A word alone in its clause: who may stand beside it, and what may follow.
_BEARERS = frozenset({"pat", "patient", "patientin", "pt"})
_PREPOSITIONS = frozenset(
    {
        "bei",
        "beim",
        "mit",
        "nach",
        "seit",
        "durch",
        "wegen",
        "aufgrund",
        "infolge",
        "unter",
        "vor",
        "in",
        "im",
        "von",
    }
)
_JOINERS = frozenset({"und", "u", "sowie", "oder", "bzw"})
_NO_SEAM = "()[]:"


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


def rewrite(text: str) -> tuple[Rewriting, ...]:
    """Return ``text`` with words of the same meaning: at most five texts, best first."""
    table = load_synonyms()
    whole = folded(text)
    words = list(WORD.finditer(whole.low))
    sites = list(_sites(table, whole, words))
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


def _sites(table: Synonyms, whole: Folded, words: list[re.Match[str]]) -> Iterator[_Site]:
    lowered = whole.low
    index = 0
    while index < len(words):
        word = words[index].group()
        if word in table.kept:
            index += 1
            continue
        found = (
            _whole_at(table, whole, words, index)
            or _phrase_at(table, words, index)
            or _alone_at(table, whole, words, index)
        )
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
    word = words[index].group()
    for phrase, meanings in table.phrases.get(stem_in_phrase(word), ()):
        count = _length_of(phrase, words, index)
        if count:
            return count, meanings
    meant = meanings_of(table, word)
    if not meant and "-" in word:  # "Defi-Träger" is "Defiträger"
        meant = meanings_of(table, word.replace("-", ""))
    return (1, meant) if meant else None


def _length_of(phrase: tuple[str, ...], words: list[re.Match[str]], index: int) -> int:
    """Return how many words from ``index`` on say ``phrase``, 0 where they do not."""
    at = index + 1
    for stem in phrase[1:]:
        while at < len(words) and words[at].group() in ARTICLES:
            at += 1
        if at == len(words) or stem_in_phrase(words[at].group()) != stem:
            return 0
        at += 1
    return at - index


def _whole_at(
    table: Synonyms, whole: Folded, words: list[re.Match[str]], index: int
) -> tuple[int, Meanings] | None:
    """Return what the word at ``index`` stands for where its clause says no other word."""
    meant = table.whole.get(words[index].group())
    if not meant or not _ends_clause(whole, words, index):
        return None
    starts = index == 0 or _ends_clause(whole, words, index - 1) or words[index - 1].group() in _JOINERS
    return (1, meant) if starts else None


def _alone_at(
    table: Synonyms, whole: Folded, words: list[re.Match[str]], index: int
) -> tuple[int, Meanings] | None:
    """Return the condition of an adjective or a person at ``index``, if it is alone in its clause."""
    word = words[index]
    condition = condition_of(table, word.group())
    if condition is None:
        return None
    meant, inflected = condition
    following = words[index + 1].group() if index + 1 < len(words) else ""
    bearer = following in _BEARERS
    if not bearer and following not in _PREPOSITIONS and not _ends_clause(whole, words, index):
        return None
    if (index and not _free_before(whole, words, index - 1)) or (
        inflected and not bearer and not _capital(whole, word)
    ):
        return None
    return (2 if bearer else 1, meant)


def _ends_clause(whole: Folded, words: list[re.Match[str]], index: int) -> bool:
    """Return whether the clause ends behind the word at ``index``; brackets and colons end none."""
    if index + 1 == len(words):
        return True
    between = whole.low[words[index].end() : words[index + 1].start()].strip()
    if between:
        return between[0] not in _NO_SEAM and between[-1] not in _NO_SEAM
    return words[index + 1].group() in _JOINERS


def _free_before(whole: Folded, words: list[re.Match[str]], index: int) -> bool:
    """Return whether the word at ``index`` claims not the one behind it: as its noun, or by a preposition."""
    before = words[index]
    word = before.group()
    if word in _BEARERS or word in _JOINERS:
        return True
    if whole.low[before.end() : words[index + 1].start()].strip(" ."):
        return _ends_clause(whole, words, index)
    return not (word in ARTICLES or word in _PREPOSITIONS or _capital(whole, before))


def _capital(whole: Folded, word: re.Match[str]) -> bool:
    return whole.text[whole.span(word.start(), word.end())[0]].isupper()


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
