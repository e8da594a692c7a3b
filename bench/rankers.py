"""What a user would else take for the same task, each over all phrases of the corpus, and mode C.

Holds: one class a peer, none of them tuned. Refuses: the measuring (``peers``). A peer that is not installed
says so by ``NotAvailableError``, and the others are measured without it.

Every ranker gets the entry's text and the rows that must not answer. The peers rank normalised phrases, as
mode C does, and a code ranks by its best phrase.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

import numpy as np

from alpha_id_runtime.pipeline import Request
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import polars as pl

    from alpha_id_runtime.pipeline import Suggester
    from bench.setting import HeldOut, Setting

PLACES = 10
# Phrases a peer hands out before they are grouped by code: ten codes are in them nearly always.
DEPTH = 200
_CUTOFF = 50


@dataclass(frozen=True)
class Offer:
    """One ranked code with the codes that go with its best phrase."""

    code: str
    complements: tuple[str, ...]


class NotAvailableError(Exception):
    """A peer cannot run here; the message says why."""


class Ranker(Protocol):
    """Answers a held-out entry with at most ten codes, best first."""

    def __call__(self, entry: HeldOut) -> list[Offer]:
        """Return the codes for ``entry.text`` without ``entry.excluded``."""


class ModeC:
    """alpha-id's own mode C: the entry and its twins are out before the pools are cut."""

    def __init__(self, suggester: Suggester) -> None:
        """Take an opened build."""
        self._suggester = suggester

    def __call__(self, entry: HeldOut) -> list[Offer]:
        """Return the suggestions' codes in order."""
        request = Request(entry.text, top=PLACES, excluded_rows=entry.excluded)
        return [
            Offer(each.icd_code, tuple(other.icd_code for other in each.complements))
            for each in self._suggester.suggest_many([request])[0].suggestions
        ]


class _Peer(ABC):
    """The part that all peers share: from ranked rows to ranked codes."""

    def __init__(self, phrases: pl.DataFrame) -> None:
        self._codes: list[str] = phrases["icd_code"].to_list()
        self._complements = [
            tuple(each["icd_code"] for each in complements or ())
            for complements in phrases["complements"].to_list()
        ]

    @abstractmethod
    def rows(self, text: str) -> Iterable[int]:
        """Return the rows most like a normalised text, best first."""

    def __call__(self, entry: HeldOut) -> list[Offer]:
        """Return the codes of the rows in order, each by its best one."""
        best: dict[str, int] = {}
        for row in self.rows(normalise(entry.text)):
            if row not in entry.excluded:
                best.setdefault(self._codes[row], row)
                if len(best) == PLACES:
                    break
        return [Offer(code, self._complements[row]) for code, row in best.items()]


class RapidFuzz(_Peer):
    """rapidfuzz: ``token_set_ratio`` with every phrase, cut off below half alike."""

    def __init__(self, phrases: pl.DataFrame) -> None:
        """Take the corpus.

        Raises:
            NotAvailableError: rapidfuzz is not installed.
        """
        super().__init__(phrases)
        try:
            fuzz, process = (import_module(f"rapidfuzz.{name}") for name in ("fuzz", "process"))
        except ImportError as error:
            raise NotAvailableError("rapidfuzz is not installed (extra [bench])") from error
        self._extract, self._scorer = process.extract, fuzz.token_set_ratio
        self._norms: list[str] = phrases["norm"].to_list()

    def rows(self, text: str) -> Iterable[int]:
        """Return the rows most like a normalised text, best first."""
        found = self._extract(text, self._norms, scorer=self._scorer, limit=DEPTH, score_cutoff=_CUTOFF)
        return [row for _, _, row in found]


class Fts5(_Peer):
    """SQLite FTS5 with its trigram tokenizer: the text's trigrams joined by OR, ranked by BM25."""

    def __init__(self, phrases: pl.DataFrame) -> None:
        """Take the corpus.

        Raises:
            NotAvailableError: this Python's SQLite has no FTS5, or none with trigrams (before 3.34).
        """
        super().__init__(phrases)
        self._connection = sqlite3.connect(":memory:")
        try:
            self._connection.execute("CREATE VIRTUAL TABLE phrases USING fts5(norm, tokenize = 'trigram')")
        except sqlite3.OperationalError as error:
            raise NotAvailableError(f"SQLite {sqlite3.sqlite_version} cannot: {error}") from error
        self._connection.executemany(
            "INSERT INTO phrases (rowid, norm) VALUES (?, ?)", enumerate(phrases["norm"].to_list())
        )
        self._connection.execute("INSERT INTO phrases (phrases) VALUES ('optimize')")

    def rows(self, text: str) -> Iterable[int]:
        """Return the rows most like a normalised text, best first."""
        grams = dict.fromkeys(text[at : at + 3] for at in range(len(text) - 2))
        if not grams:
            return []
        query = " OR ".join(f'"{gram}"' for gram in grams)
        sql = "SELECT rowid FROM phrases WHERE phrases MATCH ? ORDER BY rank LIMIT ?"
        return [row for (row,) in self._connection.execute(sql, (query, DEPTH))]


class CharTfidf(_Peer):
    """scikit-learn: TF-IDF of characters (3 to 5, within words), nearest by a sparse product."""

    def __init__(self, phrases: pl.DataFrame) -> None:
        """Take the corpus.

        Raises:
            NotAvailableError: scikit-learn is not installed.
        """
        super().__init__(phrases)
        try:
            text = import_module("sklearn.feature_extraction.text")
        except ImportError as error:
            raise NotAvailableError("scikit-learn is not installed (extra [bench])") from error
        self._vectoriser = text.TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), dtype=np.float32)
        self._by_gram = self._vectoriser.fit_transform(phrases["norm"].to_list()).T.tocsr()

    def rows(self, text: str) -> Iterable[int]:
        """Return the rows most like a normalised text, best first."""
        alike = self._vectoriser.transform([text]) @ self._by_gram
        order = (-alike.data).argsort(kind="stable")[:DEPTH]
        found: list[int] = alike.indices[order].tolist()
        return found


# Mode A joins here: a name, and how its ranker is made of the run's setting.
OURS: dict[str, Callable[[Setting], Ranker]] = {"mode C": lambda setting: ModeC(setting.suggester)}
PEERS: dict[str, Callable[[Setting], Ranker]] = {
    "rapidfuzz token_set_ratio": lambda setting: RapidFuzz(setting.phrases),
    "SQLite FTS5 trigrams": lambda setting: Fts5(setting.phrases),
    "scikit-learn char TF-IDF": lambda setting: CharTfidf(setting.phrases),
}
