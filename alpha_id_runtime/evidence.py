"""What all phrases of a code together say for a text: evidence that no single phrase holds.

Holds: the evidence of each candidate code as numbers, for training and query alike, counted at query time
from the phrases that may be found, so that what is held out never counts. Refuses: weighing it, and mode C,
which does without.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.text import normalise, trigrams

if TYPE_CHECKING:
    import numpy.typing as npt

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.retrieval.dense import Allow
    from alpha_id_runtime.retrieval.units import PhraseUnits

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

NAMES = (
    "union_covered", "union_words", "union_gap", "grams_usual", "words_usual",
    "grams_for", "words_for", "grams_for_gap", "sibling_grams", "sibling_words", "rival_grams", "rival_gap",
    "weakest_word", "weakest_word_here", "longest_word", "first_word", "last_word", "rarest_word_here",
    "words_open", "words_open_here", "worst_open", "new_word", "new_words", "unheard_word", "unheard_words",
    "new_words_gap", "unheard_numbers", "query_words",
)  # fmt: skip

# What an unseen unit of a code counts for, in phrases; and against other codes, where zeros meet zeros.
_PRIOR, _SPARE = np.float64(3), np.float64(0.02)
_COUNTED = np.float64(0.3)
_BACKGROUND, _TINY = np.float64(5e-4), np.float64(1e-9)


@dataclass(frozen=True)
class _Words:
    """Distinct words of phrase ``i``: ``ids[indptr[i]:indptr[i + 1]]``; idf of each, by phrases."""

    vocabulary: dict[str, int]
    indptr: Ints
    ids: npt.NDArray[np.int32]
    idf: npt.NDArray[np.float64]

    @cached_property
    def rarest(self) -> float:
        """Idf of the rarest word, by which idf is measured: so a corpus of any size gives like numbers."""
        return max(float(self.idf.max(initial=0.0)), float(_TINY))


@dataclass(frozen=True)
class _Asked:
    """The distinct units of one text. All in double precision: float32 sums differ from process to process.

    ``places``: where among them each unit of the corpus stands, their number where it does not. ``idf``
    (units,): one that the corpus lacks weighs as much as its rarest one, since it can match nothing.
    """

    places: npt.NDArray[np.int32]
    idf: npt.NDArray[np.float64]

    @classmethod
    def of(cls, units: list[str], vocabulary: dict[str, int], idf: npt.NDArray[np.floating]) -> _Asked:
        ids = np.array([vocabulary.get(unit, -1) for unit in units], dtype=np.int64)
        known = np.flatnonzero(ids >= 0)
        places = np.full(len(idf), len(units), dtype=np.int32)
        places[ids[known]] = known
        own = np.full(len(units), idf.max(initial=0.0), dtype=np.float64)
        own[known] = idf[ids[known]]
        return cls(places, own)


class Evidence:
    """The phrases of a build, counted by code. Words are drawn from the phrases at the first question."""

    def __init__(self, build: Build) -> None:
        """Take the build whose phrases count."""
        self._build = build

    def of_codes(
        self, text: str, numbers: Ints, speakers: Ints, categories: Ints, allow: Allow | None
    ) -> npt.NDArray[np.float32]:
        """Return the evidence for each candidate code, (m, len(NAMES)).

        Args:
            text: what is asked; one without a word has no evidence: zeros.
            numbers: of the codes, (m,), distinct.
            speakers: the row that speaks for each code.
            categories: number of each code's category; codes of one are siblings.
            allow: which rows count.
        """
        words = list(dict.fromkeys(normalise(text).split()))
        if not words or not len(numbers):
            return np.zeros((len(numbers), len(NAMES)), dtype=np.float32)
        grams: dict[str, int] = {}
        of_word = [[grams.setdefault(gram, len(grams)) for gram in trigrams(word)] for word in words]
        units, own_words = self._build.units, self._words
        asked = _Asked.of(list(grams), units.vocabulary, units.idf)
        said = _Asked.of(words, own_words.vocabulary, own_words.idf)
        rows, group = self._rows_of(numbers, allow)
        size = np.maximum(np.bincount(group, minlength=len(numbers)), 1).astype(np.float64)
        m = len(numbers)
        by_gram = _counted(units, asked, rows, group, m)
        by_word = _counted(own_words, said, rows, group, m)
        here = _counted(units, asked, speakers, np.arange(m), m)
        # How much of each word of the text stands in the code's phrases, and in the one that speaks for it.
        mass = np.zeros((len(words), len(grams)), dtype=np.float64)
        for row, own in zip(mass, of_word, strict=True):
            row[own] = asked.idf[own]
        lengths = np.maximum(mass.sum(axis=1), _TINY)
        has = np.minimum(by_gram, 1)
        covered = has @ mass.T / lengths
        covered_here = np.minimum(here, 1) @ mass.T / lengths
        share = said.idf / max(said.idf.sum(), _TINY)
        gram_share = asked.idf / max(asked.idf.sum(), _TINY)
        union = has @ gram_share
        for_grams = _log_odds(by_gram, size, asked.idf) @ gram_share
        siblings = (categories[:, None] == categories).astype(np.float64) - np.eye(m, dtype=np.float64)
        against_gram, against_word = _Against(by_gram, size), _Against(by_word, size)
        scale = np.sqrt(len(grams))
        rivals = against_gram.others(by_gram.sum(axis=0) - by_gram, size.sum() - size) / scale
        is_open = covered.max(axis=0) - covered
        open_here = (covered_here.max(axis=0) - covered_here) @ share
        new, new_sum = self._new_words(speakers, said)
        missing = np.where(by_word > 0, np.float64(0), said.idf) / own_words.rarest
        numeric = np.array([any(c.isdigit() for c in word) for word in words])
        columns = (
            union,
            (by_word > 0) @ share,
            union - union.max(),
            by_gram / size[:, None] @ gram_share,
            by_word / size[:, None] @ share,
            for_grams,
            _log_odds(by_word, size, said.idf) @ share,
            for_grams - for_grams.max(),
            against_gram.others(siblings @ by_gram, siblings @ size) / scale,
            against_word.others(siblings @ by_word, siblings @ size),
            rivals,
            rivals - rivals.max(),
            covered.min(axis=1),
            covered_here.min(axis=1),
            covered[:, lengths.argmax()],
            covered[:, 0],
            covered[:, -1],
            covered_here[:, said.idf.argmax()],
            is_open @ share,
            open_here,
            is_open.max(axis=1),
            new,
            new_sum,
            missing.max(axis=1),
            missing.sum(axis=1),
            new_sum - new_sum.min(),
            (by_word[:, numeric] == 0).sum(axis=1),
            np.full(m, float(len(words))),
        )
        return np.array(columns, dtype=np.float32).T

    @cached_property
    def _words(self) -> _Words:
        """Words of all phrases, 8 MB at full size."""
        bounds, ids, words = self._build.phrases.words()
        rows = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        # A phrase that says a word twice says no more by it.
        rows, ids = np.divmod(np.unique(rows * len(words) + ids), max(len(words), 1))
        counts = np.bincount(ids, minlength=len(words))
        idf = np.log(len(bounds) / (counts + 0.5)).astype(np.float64)
        starts = np.searchsorted(rows, np.arange(len(bounds)))
        return _Words({word: place for place, word in enumerate(words)}, starts, ids.astype(np.int32), idf)

    def _rows_of(self, numbers: Ints, allow: Allow | None) -> tuple[Ints, Ints]:
        """Return (the rows of these codes that count, the place of each one's code)."""
        phrases = self._build.phrases
        rows = phrases.rows_of_numbers(numbers)
        if allow is not None:
            rows = rows[allow(rows)]
        place = np.empty(len(phrases.codes), dtype=np.int64)
        place[numbers] = np.arange(len(numbers))
        return rows, place[phrases.code_index[rows]]

    def _new_words(
        self, speakers: Ints, said: _Asked
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return (the largest idf, the sum) of the words of each speaking row that are new."""
        own = self._words
        place, lengths = _places(own.indptr, speakers)
        ids, group = own.ids[place], np.repeat(np.arange(len(speakers)), lengths)
        idf = np.where(said.places[ids] == len(said.idf), own.idf[ids] / own.rarest, 0.0)
        largest = np.zeros(len(speakers))
        np.maximum.at(largest, group, idf)
        return largest, np.bincount(group, idf, len(speakers)).astype(np.float64)


def _places(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return (the places of the units of ``rows``, one row's after another's; how many each row has)."""
    starts = indptr[rows]
    lengths = indptr[rows + 1] - starts
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + lengths, lengths), lengths


def _counted(units: PhraseUnits | _Words, asked: _Asked, rows: Ints, group: Ints, groups: int) -> Floats:
    """Return in how many of each group's ``rows`` each unit that is asked stands: (groups, units)."""
    places, lengths = _places(units.indptr, rows)
    width = len(asked.idf) + 1  # the last column takes what is not asked
    keys = asked.places.take(units.ids.take(places)) + np.repeat(group * width, lengths)
    counts = np.bincount(keys, minlength=groups * width).reshape(groups, width)
    return counts[:, :-1].astype(np.float64)


def _log_odds(counts: Floats, size: Floats, idf: Floats) -> Floats:
    """Return the log of how much likelier each unit is under a code than in the corpus (naive Bayes)."""
    usual = np.exp(-idf)
    odds: Floats = np.log((counts + (_PRIOR * usual + _SPARE)) / (size[:, None] + 1)) - np.log(
        usual + _BACKGROUND
    )
    return odds


class _Against:
    """Log odds of what is asked under a code against other codes. ``counts`` (m, units), ``size`` (m,)."""

    def __init__(self, counts: Floats, size: Floats) -> None:
        self._units = counts.shape[1]
        self._own = np.log(counts + _COUNTED).sum(axis=1) - self._units * np.log(size + 2 * _COUNTED)

    def others(self, counts: Floats, size: Floats) -> Floats:
        """Return the sum over all units against others of these counts and sizes; 0 where there are none."""
        theirs = np.log(counts + _COUNTED).sum(axis=1) - self._units * np.log(size + 2 * _COUNTED)
        odds: Floats = np.where(size > 0, self._own - theirs, 0)
        return odds
