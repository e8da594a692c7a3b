"""How much of a phrase and a candidate is the same: idf-weighted trigrams, for a whole pool at once.

Holds: the trigrams of every corpus phrase as one sparse array, read by memory map. Refuses: finding
candidates; it compares those that an index found.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from tokenize import TokenError
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError
from alpha_id_runtime.manifest import BUILD_CURE
from alpha_id_runtime.retrieval.schema import UNIT_FILES
from alpha_id_runtime.text import trigrams

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt


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

    def weight_of(self, normalised: str) -> tuple[float, int]:
        """Return (the idf in sum, the number) of the distinct trigrams of a normalised text.

        A trigram that the corpus lacks weighs as much as its rarest one: it can match nothing.
        """
        grams = set(trigrams(normalised))
        known = [self.vocabulary[gram] for gram in grams if gram in self.vocabulary]
        rarest = float(self.idf.max()) if len(self.idf) else 0.0
        return float(self.idf[known].sum()) + (len(grams) - len(known)) * rarest, len(grams)

    def dice(self, normalised: str, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the idf-weighted Dice coefficient, 0 to 1, of a normalised phrase with each of ``rows``.

        A trigram that the corpus lacks weighs as much as its rarest one: it can match nothing.
        """
        grams = set(trigrams(normalised))
        known = [self.vocabulary[gram] for gram in grams if gram in self.vocabulary]
        own = np.zeros(len(self.idf), dtype=np.float64)
        own[known] = self.idf[known]
        weight = own.sum() + (len(grams) - len(known)) * (float(self.idf.max()) if len(self.idf) else 0.0)
        if not len(rows) or weight == 0:
            return np.zeros(len(rows))
        starts, ends = self.indptr[rows], self.indptr[rows + 1]
        lengths = ends - starts
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        positions = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts, lengths)
        running = np.concatenate(([0.0], np.cumsum(own[self.ids[positions]])))
        shared = running[offsets[1:]] - running[offsets[:-1]]
        return np.asarray(2 * shared / (weight + self.weight[rows]), dtype=np.float64)


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
