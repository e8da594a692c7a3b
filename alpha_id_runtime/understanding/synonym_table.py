"""The table of synonyms as look-ups: words, phrases, words alone in their clause, parts of words.

Holds: ``tables/synonyms.tsv`` read once, and how a word of a line is found in it, in any inflection. Refuses:
the text around a word.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from alpha_id_runtime.text import fold
from alpha_id_runtime.understanding.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from alpha_id_runtime.understanding.tables import Row

COLUMNS = ("said", "means", "kind", "way", "where")
WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
# What takes off the inflection of a word in a phrase, the longest first; a stem keeps four signs.
_FLEXION = ("es", "er", "en", "em", "e", "n", "s")
_SHORTEST_IN_PHRASE = 4
ARTICLES = frozenset(
    {"der", "die", "das", "den", "dem", "des", "ein", "eine", "einer", "einem", "einen", "eines"}
)
_WITH_ARTICLE = {
    "im": "in", "ins": "in", "am": "an", "ans": "an", "vom": "von", "zum": "zu", "zur": "zu", "beim": "bei",
}  # fmt: skip
_ENDINGS = ("s", "es", "n", "en", "e", "er")
_SHORTEST_STEM = 5
_LEAST_REST = 3
_TAIL = 3
_PERSONS = ("er", "en", "e", "in")  # Alkoholkranker, Epileptikerin
_PATIENTS = ("patient", "patientin", "patienten", "patientinnen")
_WHERE = ("word", "part", "start", "end", "whole", "alone", "alone end")

Meanings = tuple[tuple[str, bool], ...]  # (text, True where the table says it in this direction)


class Synonyms(NamedTuple):
    """The table as look-ups, keys folded.

    ``words`` by the word; ``phrases``, those of several words, by the stem of the first one, as stems without
    articles, the longest first. ``alone`` and ``alone_ends`` hold of words alone in their clause, inflected
    forms (True) among them; the ends by their last three signs. ``whole`` holds where a clause says no other
    word ("Fieber", not "Fieber bei Malaria").
    """

    words: dict[str, Meanings]
    phrases: dict[str, tuple[tuple[tuple[str, ...], Meanings], ...]]
    whole: dict[str, Meanings]
    alone: dict[str, tuple[Meanings, bool]]
    alone_ends: dict[str, tuple[tuple[str, str, bool], ...]]
    kept: frozenset[str]
    starts: dict[str, str]
    ends: dict[str, str]
    parts: dict[str, str]
    start_lengths: tuple[int, ...]
    end_lengths: tuple[int, ...]


@lru_cache(maxsize=4)
def load_synonyms(folder: Path | None = None) -> Synonyms:
    """Return the table, read once.

    Raises:
        ConfigError: a row is broken, or says the same of a word twice.
    """
    words: dict[str, dict[str, bool]] = {}
    phrases: dict[tuple[str, ...], dict[str, bool]] = {}
    clauses: dict[str, dict[str, Meanings]] = {"whole": {}, "alone": {}}
    places: dict[str, dict[str, str]] = {"start": {}, "end": {}, "part": {}, "alone end": {}}
    kept: set[str] = set()
    for row in read_table("synonyms.tsv", COLUMNS, folder):
        if row["kind"] == "keep":
            kept.add(fold(row.filled("said")))
            continue
        where = row.one_of("where", _WHERE)
        for key, meaning, forward in _pairs(row):
            if where in clauses:
                clauses[where][key] = (*clauses[where].get(key, ()), (meaning, True))
            elif where != "word":
                places[where].setdefault(key, meaning.lower())
            else:
                said = WORD.findall(key)
                into = (
                    words.setdefault(key, {}) if said == [key] else phrases.setdefault(_in_phrase(said), {})
                )
                into.setdefault(meaning, forward)
    return Synonyms(
        words={word: _ordered(meanings) for word, meanings in words.items()},
        phrases=_by_first(phrases),
        whole=clauses["whole"],
        alone=_inflected(clauses["alone"]),
        alone_ends=_by_tail(places["alone end"]),
        kept=frozenset(kept),
        starts=places["start"],
        ends=places["end"],
        parts=dict(sorted(places["part"].items(), key=lambda pair: -len(pair[0]))),
        start_lengths=_lengths(places["start"]),
        end_lengths=_lengths(places["end"]),
    )


def _pairs(row: Row) -> Iterator[tuple[str, str, bool]]:
    """Yield what is said (folded), what it means, and whether the row says it in this direction."""
    said = row.filled("said")
    row.filled("means")
    meanings = row.many("means")
    pairs = [(said, meaning, True) for meaning in meanings]
    if row.one_of("way", ("both", "to")) == "both":
        pairs += [(meaning, said, False) for meaning in meanings]
    for key, meaning, forward in pairs:
        low = fold(key)
        if low == fold(meaning):
            raise row.fail(f"{key!r} stands for itself.")
        yield low, meaning, forward


def _ordered(meanings: dict[str, bool]) -> Meanings:
    return tuple(sorted(meanings.items(), key=lambda m: not m[1]))


def _by_first(
    phrases: dict[tuple[str, ...], dict[str, bool]],
) -> dict[str, tuple[tuple[tuple[str, ...], Meanings], ...]]:
    by_first: dict[str, list[tuple[tuple[str, ...], Meanings]]] = {}
    for words, meanings in phrases.items():
        by_first.setdefault(words[0], []).append((words, _ordered(meanings)))
    return {first: tuple(sorted(found, key=lambda f: -len(f[0]))) for first, found in by_first.items()}


def _inflected(alone: dict[str, Meanings]) -> dict[str, tuple[Meanings, bool]]:
    forms = {word + ending: (meant, True) for word, meant in alone.items() for ending in _PERSONS}
    return forms | {word: (meant, False) for word, meant in alone.items()}


def _by_tail(ends: dict[str, str]) -> dict[str, tuple[tuple[str, str, bool], ...]]:
    forms = {(end + ending): (meaning, True) for end, meaning in ends.items() for ending in _PERSONS}
    forms |= {end: (meaning, False) for end, meaning in ends.items()}
    forms |= dict.fromkeys(_PATIENTS, ("", False))
    tails: dict[str, tuple[tuple[str, str, bool], ...]] = {}
    for end, (meaning, inflected) in sorted(forms.items(), key=lambda pair: -len(pair[0])):
        tails[end[-_TAIL:]] = (*tails.get(end[-_TAIL:], ()), (end, meaning, inflected))
    return tails


def _lengths(keys: Iterable[str]) -> tuple[int, ...]:
    return tuple(sorted({len(key) for key in keys}, reverse=True))


@lru_cache(maxsize=4096)
def stem_in_phrase(word: str) -> str:
    """Return ``word`` without its inflection, as words of a phrase are compared ("offenes", "offen")."""
    for ending in _FLEXION:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_IN_PHRASE:
            return stem_in_phrase(word[: -len(ending)])
    return _WITH_ARTICLE.get(word, word)


def _in_phrase(words: Iterable[str]) -> tuple[str, ...]:
    """Return the stems of the words of a phrase, its articles left out."""
    return tuple(stem_in_phrase(word) for word in words if word not in ARTICLES)


def meanings_of(table: Synonyms, word: str) -> Meanings | None:
    """Return what the folded ``word`` means, in any inflection; None where the table does not know it."""
    words = table.words
    meant = words.get(word)
    if meant:
        return meant
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            meant = words.get(word[: -len(ending)])
            if meant:
                return meant
    return None


def condition_of(table: Synonyms, word: str) -> tuple[Meanings, bool] | None:
    """Return the condition that an adjective or a person stands for, and whether ``word`` is inflected.

    It holds only of a word alone in its clause. A patient suffers from what stands before in the word
    ("Rheumapatientin", "COPD-Patient").
    """
    known = table.alone.get(word)
    if known:
        return known
    for end, meaning, inflected in table.alone_ends.get(word[-_TAIL:], ()):
        if len(word) - len(end) >= _LEAST_REST and word.endswith(end):
            noun = word[: -len(end)].rstrip("-") + meaning
            meant = _term(table, fold(noun)) or (() if meaning else _term(table, noun.removesuffix("s")))
            return meant or ((noun.capitalize(), True),), inflected
    return None


def _term(table: Synonyms, noun: str) -> Meanings:
    """Return what the table gives in place of ``noun``, but no plainer word for it."""
    meant = table.whole.get(noun) or meanings_of(table, noun) or ()
    return tuple(each for each in meant if each[1])
