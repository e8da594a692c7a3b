"""What the corpus itself says about wording: interchangeable spans, articles, known words, abbreviations.

Holds: lookups that paraphrases are made with, drawn from the corpus and from nowhere else. Refuses: use by
any matcher (it belongs to the harness alone) and synonyms across codes: a span is exchanged only where two
phrases of one code differ by just that span.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MIN_EVIDENCE = 2  # contexts in which a pair of spans must be exchanged before it counts as synonymous
LONGEST_SPAN = 2  # words
SHORTEST = 3  # letters of a word that may be exchanged
MOST_PHRASES = 400  # of one category that are compared: keeps the work bounded

# Words whose exchange changes the meaning even where the code stays: side, negation, relation, number.
_FIXED = frozenset(
    [
        "links",
        "rechts",
        "linke",
        "rechte",
        "linken",
        "rechten",
        "beidseits",
        "ohne",
        "mit",
        "nicht",
        "kein",
        "keine",
        "bei",
        "durch",
        "nach",
        "und",
        "oder",
        "der",
        "die",
        "das",
        "des",
        "dem",
        "den",
        "ein",
        "eine",
        "eines",
        "einer",
        "am",
        "an",
        "im",
        "in",
        "zum",
        "zur",
        "von",
        "vom",
        "als",
        "auf",
        "aus",
    ]
)
# Stems that name one side of an opposition: a code may hold both, yet one does not mean the other.
_OPPOSED = (
    "akut", "subakut", "chron", "autosomal", "dominant", "rezessiv", "angeboren", "kongenital", "erworben",
    "prim",
    "sekund", "gutartig", "bösartig", "benign", "malign", "ober", "unter", "innere", "äußere", "vorder",
    "hinter",
    "proximal", "distal", "medial", "lateral", "hyper", "hypo", "männl", "weibl", "offene", "geschlossen",
)  # fmt: skip
_ROMAN = re.compile(r"[IVX]*")
_INNER_NOUN = re.compile(r"(?<=[\w,] )[A-ZÄÖÜ][a-zäöüß]+(?![\w-])")
_ARTICLE = re.compile(r"\b(der|des) ([A-ZÄÖÜ][\w]+)(?![\w-])")

Span = tuple[str, ...]


@dataclass(frozen=True)
class Lexicon:
    """Lookups for one corpus.

    Args:
        text: the phrases, in corpus order.
        icd_code: the code of each.
        norms: all normalised phrases.
        nouns: words that are written with a capital inside a phrase.
        articles: folded noun in its base form -> its genitive with the article ("klavikula" -> "der
            Klavikula").
        abbreviations: (short, long) pairs, as written.
    """

    text: Sequence[str]
    icd_code: Sequence[str]
    norms: frozenset[str]
    nouns: frozenset[str]
    articles: Mapping[str, str]
    abbreviations: tuple[tuple[str, str], ...]
    rows_of_category: Mapping[str, Sequence[int]]
    _pairs: dict[str, dict[str, dict[Span, set[Span]]]] = field(default_factory=dict)

    def synonyms(self, code: str) -> Mapping[Span, set[Span]]:
        """Return the spans that phrases of ``code`` exchange, each with what stands in its place.

        A pair must be exchanged in two contexts within the category (the first three characters).
        """
        category = code[:3]
        if category not in self._pairs:
            self._pairs[category] = self._mine(category)
        return self._pairs[category].get(code, {})

    def used_in(self, code: str, wording: str) -> bool:
        """Tell whether a phrase of the category of ``code`` holds ``wording``."""
        return any(wording in self.text[row] for row in self.rows_of_category.get(code[:3], ()))

    def _mine(self, category: str) -> dict[str, dict[Span, set[Span]]]:
        frames: dict[tuple[str, Span, Span], set[Span]] = defaultdict(set)
        for row in self.rows_of_category.get(category, ())[:MOST_PHRASES]:
            for before, span, after in _spans(self.text[row].split()):
                frames[self.icd_code[row], before, after].add(span)
        seen: dict[tuple[Span, Span], int] = defaultdict(int)
        of_code: dict[str, set[tuple[Span, Span]]] = defaultdict(set)
        for (code, _, _), spans in frames.items():
            for a in spans:
                for b in spans:
                    if a != b and _exchangeable(a, b):
                        seen[a, b] += 1
                        of_code[code].add((a, b))
        mined: dict[str, dict[Span, set[Span]]] = {}
        for code, pairs in of_code.items():
            for a, b in pairs:
                if seen[a, b] >= MIN_EVIDENCE:
                    mined.setdefault(code, {}).setdefault(a, set()).add(b)
        return mined


def build_lexicon(
    text: Sequence[str], norm: Sequence[str], icd_code: Sequence[str], abbreviations: Mapping[str, str]
) -> Lexicon:
    """Return the lexicon of a corpus given as equally long columns.

    Args:
        text: the phrases.
        norm: ``normalise`` of each.
        icd_code: the code of each.
        abbreviations: abbreviation -> long form, as mined from the brackets of the corpus.
    """
    rows: dict[str, list[int]] = defaultdict(list)
    articles: dict[str, str] = {}
    for row, (phrase, code) in enumerate(zip(text, icd_code, strict=True)):
        rows[code[:3]].append(row)
        for article, noun in _ARTICLE.findall(phrase):
            base = noun if article == "der" else re.sub(r"s$", "", noun)
            articles.setdefault(normalise(base), f"{article} {noun}")
    return Lexicon(
        text=text,
        icd_code=icd_code,
        norms=frozenset(norm),
        nouns=frozenset(word for phrase in text for word in _INNER_NOUN.findall(phrase)),
        articles=articles,
        abbreviations=tuple(
            sorted((a, b) for a, b in abbreviations.items() if b and not _ROMAN.fullmatch(a))
        ),
        rows_of_category=dict(rows),
    )


def _spans(words: list[str]) -> Iterator[tuple[Span, Span, Span]]:
    """Yield each span of a phrase that leaves a context, with what stands before and after it."""
    for length in range(1, LONGEST_SPAN + 1):
        if length >= len(words):
            return
        for at in range(len(words) - length + 1):
            yield tuple(words[:at]), tuple(words[at : at + length]), tuple(words[at + length :])


def _exchangeable(a: Span, b: Span) -> bool:
    """Tell whether two spans are words that may mean the same: no number, side or negation among them.

    Spans that share a word are left out: the pair of shorter spans says the same.
    """
    if set(a) & set(b):
        return False
    return all(
        len(w) >= SHORTEST and w.lower() not in _FIXED and w[-1].isalpha() and not any(c.isdigit() for c in w)
        and not w.lower().startswith(_OPPOSED)
        and not (w.isupper() and len(w) <= SHORTEST)  # Roman numerals and types
        for w in (*a, *b)
    )  # fmt: skip
