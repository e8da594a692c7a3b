"""How much of a phrase and a candidate is the same: idf-weighted trigrams, for a whole pool at once.

Holds: the trigrams of every corpus phrase as one sparse array, read by memory map. Refuses: finding
candidates; it compares those that an index found.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from tokenize import TokenError
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError
from alpha_id_runtime.manifest import BUILD_CURE
from alpha_id_runtime.retrieval.schema import UNIT_FILES
from alpha_id_runtime.text import trigrams

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt


class TextUnits(NamedTuple):
    """The distinct trigrams of a text: ids of those the corpus has, ascending; idf sum and number of all."""

    known: npt.NDArray[np.int64]
    weight: float
    size: int


@dataclass(frozen=True)
class PhraseUnits:
    """Trigram ids of phrase ``i`` are ``ids[indptr[i]:indptr[i + 1]]``; ``weight[i]`` is their idf in sum."""

    vocabulary: dict[str, int]
    indptr: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]
    idf: npt.NDArray[np.float32]
    weight: npt.NDArray[np.float32]

    @classmethod
    def open(cls, folder: Path) -> PhraseUnits:
        """Map the arrays of a build.

        Raises:
            ArtefactsMissingError: a file is not there.
            ArtefactsIncompatibleError: a file is damaged.
        """
        try:
            vocabulary = json.loads((folder / UNIT_FILES[0]).read_bytes())
            # Plain arrays over the same pages: indexing a memmap subclass costs several times as much.
            arrays = [np.load(folder / name, mmap_mode="r").view(np.ndarray) for name in UNIT_FILES[1:]]
        except FileNotFoundError as error:
            raise ArtefactsMissingError(f"{error.filename} is missing. {BUILD_CURE}") from error
        except (ValueError, EOFError, SyntaxError, TokenError) as error:
            raise ArtefactsIncompatibleError(f"A file under {folder} is damaged. {BUILD_CURE}") from error
        return cls(vocabulary, *arrays)

    def of_text(self, normalised: str) -> TextUnits:
        """Return the distinct trigrams of a normalised text.

        A trigram that the corpus lacks weighs as much as its rarest one: it can match nothing.
        """
        grams = set(trigrams(normalised))
        # In one order: that of a set of strings differs from process to process.
        known = np.array(
            sorted(self.vocabulary[gram] for gram in grams if gram in self.vocabulary), dtype=np.int64
        )
        weight = float(self.idf[known].sum(dtype=np.float64)) + (len(grams) - len(known)) * self._rarest
        return TextUnits(known, weight, len(grams))

    @cached_property
    def _rarest(self) -> float:
        return float(self.idf.max()) if len(self.idf) else 0.0

    def dice(
        self,
        texts: Sequence[TextUnits],
        rows: npt.NDArray[np.int64],
        owner: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return the idf-weighted Dice coefficient, 0 to 1, of each of ``rows`` with the text it is for.

        ``owner`` (n,): which of ``texts`` each row is compared with; None where there is one text.
        """
        if not len(rows):
            return np.zeros(0)
        size = len(self.idf)
        own = np.zeros(len(texts) * size)
        for place, text in enumerate(texts):
            own[text.known + place * size] = self.idf[text.known]
        starts, ends = self.indptr[rows], self.indptr[rows + 1]
        lengths = ends - starts
        offsets = np.cumsum(lengths) - lengths
        total = int(lengths.sum())
        ids = self.ids[np.arange(total) + np.repeat(starts - offsets, lengths)]
        if owner is not None:
            ids = ids + np.repeat(owner * size, lengths)
        # One sum a row, whatever rows stand before it; a row without trigrams shares none.
        shared = np.add.reduceat(np.append(own[ids], 0.0), offsets)
        shared[lengths == 0] = 0.0
        weights = np.array([text.weight for text in texts])
        whole = (weights[0] if owner is None else weights[owner]) + self.weight[rows]
        dice: npt.NDArray[np.float64] = np.divide(2 * shared, whole, out=np.zeros(len(rows)), where=whole > 0)
        return dice


def build_units(normalised: list[str]) -> dict[str, object]:
    """Return the contents of ``UNIT_FILES`` for these phrases, by file name."""
    vocabulary: dict[str, int] = {}
    ids: list[int] = []
    indptr = [0]
    for text in normalised:
        ids.extend(sorted({vocabulary.setdefault(gram, len(vocabulary)) for gram in trigrams(text)}))
        indptr.append(len(ids))
    flat, bounds = np.asarray(ids, dtype=np.int32), np.asarray(indptr, dtype=np.int64)
    frequency = np.bincount(flat, minlength=len(vocabulary))
    idf = np.log((len(normalised) + 1) / (frequency + 0.5)).astype(np.float32)
    running = np.concatenate(([0.0], np.cumsum(idf[flat], dtype=np.float64)))
    weight = (running[bounds[1:]] - running[bounds[:-1]]).astype(np.float32)
    return dict(zip(UNIT_FILES, (vocabulary, bounds, flat, idf, weight), strict=True))
