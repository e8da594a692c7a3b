"""The parts of a score, line by line and in either mode, for an explanation. Computed when first asked for.

Holds: the same steps that rank, once more, with each part kept. Refuses: calling a provider; mode A's parts
come from what was found near the text when it was ranked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from alpha_id_runtime.lexical_ranking import ALIKE_CEILING, EXACT_SCORE, TWIN_SCORE, alike_rows
from alpha_id_runtime.text import normalise, twin_key, without_tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alpha_id_runtime.build import Build
    from alpha_id_runtime.config import LexicalConfig
    from alpha_id_runtime.matching import Task
    from alpha_id_runtime.model import Way
    from alpha_id_runtime.ranked import RankedRows
    from alpha_id_runtime.rerank import FusionReranker
    from alpha_id_runtime.semantic import Neighbours


class Parts(Protocol):
    """What knows the parts of a score in the mode that answered."""

    def __call__(self, query: int, row: int) -> dict[str, float]:
        """Return the parts of the score of a corpus row for one text of the line, ``text_score`` last."""


def way_of(text: str, phrase: str) -> Way:
    """Return how a text found a phrase: ``exact``, ``same words`` or ``alike``."""
    tried, whole = normalise(text), normalise(phrase)
    found = (whole, without_tail(whole))
    if tried in found:
        return "exact"
    return "same words" if twin_key(tried) in map(twin_key, found) else "alike"


class LexicalParts:
    """The parts of mode C's scores of one line; each text is searched again, once, when first asked for."""

    def __init__(self, build: Build, task: Task, settings: LexicalConfig) -> None:
        """Take the line."""
        self._build, self._task, self._settings = build, task, settings
        self._found: dict[int, dict[int, dict[str, float]]] = {}

    def __call__(self, query: int, row: int) -> dict[str, float]:
        """Return the parts; only ``text_score`` for what is the same and was in no pool."""
        if query not in self._found:
            self._found[query] = self._search(query)
        parts = dict(self._found[query].get(row, {}))
        way = way_of(self._task.queries[query].text, self._build.phrases.texts([row])[0])
        if way != "alike":
            parts["text_score"] = EXACT_SCORE if way == "exact" else TWIN_SCORE
        return parts

    def _search(self, query: int) -> dict[int, dict[str, float]]:
        normalised = normalise(self._task.queries[query].text)
        [alike] = alike_rows(self._build, [normalised], self._settings, [self._task.allow])
        ranks = {
            "trigram_rank": {row: rank for rank, row in enumerate(alike.trigram_rows.tolist(), start=1)},
            "word_rank": {row: rank for rank, row in enumerate(alike.word_rows.tolist(), start=1)},
        }
        columns = (alike.rows, alike.fused, alike.dice, alike.agreement, ALIKE_CEILING * alike.joined)
        return {
            row: {
                **{name: float(of_row[row]) for name, of_row in ranks.items() if row in of_row},
                "rank": fused,
                "dice": dice,
                "agreement": agreement,
                "text_score": score,
            }
            for row, fused, dice, agreement, score in zip(*(each.tolist() for each in columns), strict=True)
        }


class SemanticParts:
    """The parts of mode A's scores of one line, from what was found near it; nothing is embedded again."""

    def __init__(
        self, task: Task, fusion: FusionReranker, lexical: Sequence[RankedRows], near: Sequence[Neighbours]
    ) -> None:
        """Take, for each text of the line, mode C's ranking and what lies near."""
        self._task, self._fusion, self._lexical, self._near = task, fusion, lexical, near
        self._found: dict[int, dict[int, dict[str, float]]] = {}

    def __call__(self, query: int, row: int) -> dict[str, float]:
        """Return the parts; none for a row that only a degree or site brought in."""
        if query not in self._found:
            self._found[query] = self._rank(query)
        return dict(self._found[query].get(row, {}))

    def _rank(self, query: int) -> dict[int, dict[str, float]]:
        asked = (
            [self._task.queries[query].text],
            [self._lexical[query]],
            [self._near[query]],
            [self._task.allow],
        )
        pool, total = self._fusion.pools(*asked)
        ranked = self._fusion(*asked)[0]
        scores = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
        columns = (pool.rows, pool.dense, pool.prototype, pool.dice, pool.lexical, total)
        names = ("dense", "prototype", "dice", "lexical", "sum")
        return {
            int(row): {**dict(zip(names, values, strict=True)), "text_score": scores[int(row)]}
            for row, *values in zip(*(np.asarray(each).tolist() for each in columns), strict=True)
        }
