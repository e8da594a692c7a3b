"""Lexical retrieval: stemmed words and trigrams, BM25 by tantivy. Queries are objects, never parsed strings.

Holds: the opened index and its searches by row. Refuses: mixing the two rankings (``fusion``) and scoring.
"""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tantivy

from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError
from alpha_id_runtime.manifest import BUILD_CURE
from alpha_id_runtime.retrieval.schema import (
    EXACT,
    ROW,
    TRIGRAMS,
    TWIN,
    WORDS,
    german_analyser,
    register,
    schema,
)
from alpha_id_runtime.text import trigrams, twin_key

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]
    Allow = Callable[[Rows], npt.NDArray[np.bool_]]

# A dictated diagnosis has some ten words; of a longer line the first words name it.
MAX_TERMS = 160
# Measured on 2,500 calibration phrases: R@1 .498 for .500, R@10 .865 for .863, at 0.6 of the time.
MIN_IDF = 3.0
MIN_GRAMS = 6
_KEPT_IDFS = 100_000
_DEEPEN = 4
_OPTION = {WORDS: "freq", TRIGRAMS: "freq", EXACT: "basic", TWIN: "basic"}


class LexicalIndex:
    """The tantivy index of one build, opened for reading."""

    def __init__(self, index: tantivy.Index, view: tempfile.TemporaryDirectory[str] | None = None) -> None:
        """Take an index of ``schema()`` with its analysers registered, and the view it was opened through."""
        self._view = view
        self._searcher = index.searcher()
        self._schema = schema()
        self._analyser = german_analyser()
        self._idfs: dict[str, float] = {}

    @classmethod
    def open(cls, folder: Path) -> LexicalIndex:
        """Open the index of a build.

        Raises:
            ArtefactsMissingError: it is not there.
            ArtefactsIncompatibleError: tantivy cannot read it.
        """
        if not folder.is_dir():
            raise ArtefactsMissingError(f"{folder} is missing. {BUILD_CURE}")
        view = None if os.access(folder, os.W_OK) else _view(folder)
        try:
            return cls(register(tantivy.Index.open(view.name if view else str(folder))), view)
        except ValueError as error:
            raise ArtefactsIncompatibleError(f"{folder} is not a lexical index. {BUILD_CURE}") from error

    def __len__(self) -> int:
        """Return the number of phrases in the index."""
        return self._searcher.num_docs

    def words(self, normalised: str, pool: int, allow: Allow | None = None) -> Rows:
        """Return the rows sharing stemmed words with the phrase, best first, at most ``pool``."""
        return self._ranked(WORDS, self._analyser.analyze(normalised), pool, allow)

    def trigrams(self, normalised: str, pool: int, allow: Allow | None = None) -> Rows:
        """Return the rows sharing trigrams with the phrase, best first, at most ``pool``."""
        grams = trigrams(normalised)
        telling = self._telling(grams)
        rows = self._ranked(TRIGRAMS, telling, pool, allow)
        # A filter that bites deep may pass nothing that shares a rare one.
        if len(rows) >= pool or len(set(telling)) == len(set(grams)):
            return rows
        return self._ranked(TRIGRAMS, grams, pool, allow)

    def exact(self, normalised: str, allow: Allow | None = None) -> Rows:
        """Return the rows whose normalised phrase is this very one, in row order."""
        return np.sort(self._ranked(EXACT, [normalised], len(self), allow))

    def twins(self, normalised: str, allow: Allow | None = None) -> Rows:
        """Return the rows made of the same set of normalised words, in row order."""
        return np.sort(self._ranked(TWIN, [twin_key(normalised)], len(self), allow))

    def _telling(self, grams: list[str]) -> list[str]:
        """Return ``grams`` without those that stand in so many phrases that they tell none apart.

        They cost most of the search. Where few would be left, all stay.
        """
        kept = [gram for gram in grams if self._idf(gram) >= MIN_IDF]
        return kept if len(set(kept)) >= MIN_GRAMS else grams

    def _idf(self, gram: str) -> float:
        known = self._idfs.get(gram)
        if known is None:
            if len(self._idfs) >= _KEPT_IDFS:  # a service that runs for months meets every misspelling
                self._idfs.clear()
            frequency = self._searcher.doc_freq(TRIGRAMS, gram)
            known = self._idfs[gram] = math.log((len(self) + 1) / (frequency + 0.5))
        return known

    def _ranked(self, field: str, terms: list[str], pool: int, allow: Allow | None) -> Rows:
        distinct = list(dict.fromkeys(terms))[:MAX_TERMS]
        if not distinct:
            return np.empty(0, dtype=np.int64)
        query = tantivy.Query.boolean_query(
            [
                (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, field, term, _OPTION[field]))
                for term in distinct
            ]
        )
        # The pool is cut after the filter: search deeper until it is full or nothing is left.
        limit = min(pool, len(self) + 1)
        while True:
            hits = self._searcher.search(query, limit=limit, count=False).hits
            if not hits:
                return np.empty(0, dtype=np.int64)
            rows = np.asarray(
                self._searcher.fast_field_values(ROW, [address for _, address in hits]), dtype=np.int64
            )
            passing = rows if allow is None else rows[allow(rows)]
            if len(passing) >= pool or len(hits) < limit:
                return passing[:pool]
            limit = min(limit * _DEEPEN, len(self) + 1)


def _view(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder of links into ``folder``: tantivy writes a lock beside what it reads.

    So that a build on a read-only volume, or of another user, answers.
    """
    view = tempfile.TemporaryDirectory(prefix="alpha-id.", ignore_cleanup_errors=True)
    for path in folder.iterdir():
        if not path.name.endswith(".lock"):
            (Path(view.name) / path.name).symlink_to(path.absolute())
    return view
