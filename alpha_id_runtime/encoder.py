"""The built-in encoder, applied: text to unit vector by numpy alone, offline, in well under a millisecond.

Holds: the features of a text (the single spelling of them, for training too), the encoder read from its
folder, and the reading of the code prototypes saved beside it. Refuses: training, and every import beyond
numpy. Files are memory-mapped: a cold call reads only the rows its text touches.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import numpy as np

from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]
    IntArray = NDArray[np.int64]
    HashArray = NDArray[np.uint64]

FORMAT = 2
"""Version of features and files; part of every fingerprint."""

META_FILE = "encoder.json"
KEYS_FILE = "features.npy"
WEIGHTS_FILE = "weights.npy"
CODES_FILE = "prototype_codes.json"
PROTOTYPES_FILE = "prototypes.npy"

_CURE = "Build it again: python -m alpha_id_runtime index build --full"

# A gram of up to five symbols of six bits is its own key, free of collisions; whole words are hashed and set
# apart by the top bit.
_SYMBOL_BITS = 6
_GRAM_SIZES = (3, 4, 5)
_END, _BLANK = 0, 1
_SYMBOLS = np.full(256, _END, dtype=np.uint8)
_SYMBOLS[ord(" ")] = _BLANK
for _code, _symbol in enumerate(b"0123456789abcdefghijklmnopqrstuvwxyz", start=2):
    _SYMBOLS[_symbol] = _code
_WORD_BIT = np.uint64(1 << 63)
_WORD_MASK = np.uint64((1 << 62) - 1)
_HASH_BASE = 0x9E3779B97F4A7C15
_MAX_POWERS = 256
_POWERS = np.array([pow(_HASH_BASE, i, 1 << 64) for i in range(_MAX_POWERS)], dtype=np.uint64)
_SPELLINGS = (("ph", "f"), ("th", "t"), ("rh", "r"), ("x", "ks"), ("ch", "x"), ("ck", "k"), ("tz", "z"),
              ("ae", "a"), ("oe", "o"), ("ue", "u"))  # fmt: skip
_SOFT_C = re.compile("c(?=[eiy])")
_DOUBLED = re.compile(r"([b-df-hj-np-tv-z])\1")
_MIX = np.uint64(0xBF58476D1CE4E5B9)


def sound(normalised: str) -> str:
    """Return normalised text as it sounds: Latin, Greek and German spellings of a word in one form.

    ph, th, rh, ck, tz and doubled consonants become one letter; c is k, before e, i and y it is z; ch is x, x
    is ks; y is i; umlauts lose their e ("Clavicula" and "Klavikula", "Bruch" and "Brueche" meet).
    """
    for spelling, letter in _SPELLINGS:
        normalised = normalised.replace(spelling, letter)
    normalised = _SOFT_C.sub("z", normalised).replace("c", "k").replace("y", "i")
    return _DOUBLED.sub(r"\1", normalised)


def feature_keys(normalised: Sequence[str]) -> tuple[IntArray, HashArray]:
    """Return the features of normalised texts: (place of the text, key), once for each occurrence.

    Features are whole words (top bit of the key set) and, of the words as they sound, the character n-grams
    of 3 to 5 between blanks. Both arrays have the same length; a text without words has no features.
    """
    joined = "\n " + " \n ".join(normalised) + " \n"
    word_owners, words = _word_keys(joined)
    gram_owners, grams = _gram_keys(sound(joined))
    return np.concatenate((word_owners, gram_owners)), np.concatenate((words, grams))


def _symbols_of(joined: str) -> tuple[NDArray[np.uint8], IntArray]:
    """Return the symbol of each character, and which text it stands in."""
    symbols = _SYMBOLS[np.frombuffer(joined.encode("ascii", "replace"), dtype=np.uint8)]
    return symbols, np.cumsum(symbols == _END) - 1


def _gram_keys(joined: str) -> tuple[IntArray, HashArray]:
    symbols, owner = _symbols_of(joined)
    is_letter = symbols > _BLANK
    wide = symbols.astype(np.uint64)
    owners: list[IntArray] = []
    keys: list[HashArray] = []
    for size in _GRAM_SIZES:
        count = len(symbols) - size + 1
        if count <= 0:
            continue
        # Ends may be a blank, the middle may not; no gram crosses from one text into the next.
        valid = (symbols[:count] != _END) & (symbols[size - 1 :] != _END)
        gram = wide[:count].copy()
        for i in range(1, size):
            gram |= wide[i : i + count] << np.uint64(_SYMBOL_BITS * i)
            if i < size - 1:
                valid &= is_letter[i : i + count]
        places = np.flatnonzero(valid)
        owners.append(owner[places])
        keys.append(gram[places])
    return np.concatenate(owners), np.concatenate(keys)


def _word_keys(joined: str) -> tuple[IntArray, HashArray]:
    symbols, owner = _symbols_of(joined)
    is_letter = symbols > _BLANK
    starts = np.flatnonzero(is_letter[1:] & ~is_letter[:-1]) + 1
    if not len(starts):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    bounds = np.concatenate(([0], starts, [len(symbols)]))
    within = np.arange(len(symbols)) - np.repeat(bounds[:-1], np.diff(bounds))
    terms = symbols.astype(np.uint64) * _POWERS[within % _MAX_POWERS]
    terms[~is_letter] = 0
    sums = np.add.reduceat(terms, starts)
    mixed = (sums ^ (sums >> np.uint64(29))) * _MIX
    return owner[starts], ((mixed ^ (mixed >> np.uint64(32))) & _WORD_MASK) | _WORD_BIT


def is_word_key(keys: HashArray) -> NDArray[np.bool_]:
    """Return which keys stand for whole words."""
    words: NDArray[np.bool_] = (keys & _WORD_BIT) != 0
    return words


def feature_rows(normalised: Sequence[str], vocabulary: HashArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the known features of normalised texts as the parts of a CSR matrix.

    Args:
        normalised: n texts.
        vocabulary: the known keys, sorted ascending.

    Returns:
        ``indptr`` (n + 1), ``indices`` (columns, ascending within a text), ``values`` (1 + ln of the number
        of occurrences; no other weighting and no unit length: both are the weights' concern).
    """
    n = len(normalised)
    if not n or not len(vocabulary):
        return np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    owners, keys = feature_keys(normalised)
    columns = np.searchsorted(vocabulary, keys)
    columns[columns == len(vocabulary)] = 0
    known = vocabulary[columns] == keys
    pairs = owners[known] * len(vocabulary) + columns[known]
    pairs, counts = np.unique(pairs, return_counts=True)
    rows, indices = np.divmod(pairs, len(vocabulary))
    indptr = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
    return indptr, indices.astype(np.int64), (1.0 + np.log(counts)).astype(np.float32)


def unit_rows(matrix: FloatArray) -> FloatArray:
    """Return ``matrix`` with each row at length 1; a row of zeros stays one."""
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float32))
    result: FloatArray = matrix / np.maximum(norms, np.float32(1e-12))[:, None]
    return result


@dataclass(frozen=True)
class Encoder:
    """A trained encoder: vector = sum of the weights of the text's features, at unit length.

    ``vocabulary``: known feature keys, ascending (k). ``weights``: (k, dimension), float16 or float32.
    """

    vocabulary: HashArray
    weights: NDArray[Any]
    fingerprint: str

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.weights.shape[1])

    @classmethod
    def load(cls, folder: Path) -> Encoder:
        """Open the encoder saved in ``folder``; its arrays are memory-mapped.

        Raises:
            ArtefactsMissingError: the folder or one of its files is not there.
            ArtefactsIncompatibleError: another format, or files that do not belong together.
        """
        meta = _read_meta(folder)
        data = folder / meta["data"]
        vocabulary = _open_array(data / KEYS_FILE)
        weights = _open_array(data / WEIGHTS_FILE)
        shape = (meta.get("features"), meta.get("dimension"))
        if vocabulary.dtype != np.uint64 or vocabulary.shape != shape[:1] or weights.shape != shape:
            raise ArtefactsIncompatibleError(
                f"The encoder in {folder} is damaged: {META_FILE} announces {shape[0]} features of "
                f"dimension {shape[1]}, the arrays hold {vocabulary.shape} and {weights.shape}. {_CURE}"
            )
        return cls(vocabulary, weights, str(meta["fingerprint"]))

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of ``texts``: (n, dimension), float32, unit length.

        A text with no known feature (empty, punctuation, another script) gets the zero vector: its cosine
        with everything is 0, so it finds nothing rather than anything. A text's vector does not depend on
        the texts beside it.
        """
        # In double precision: BLAS sums up in single in an order of its own, which differs from run to run.
        result = np.zeros((len(texts), self.dimension), dtype=np.float64)
        for start in range(0, len(texts), _CHUNK):
            chunk = [normalise(text) for text in texts[start : start + _CHUNK]]
            indptr, indices, values = feature_rows(chunk, self.vocabulary)
            for i in range(len(chunk)):
                first, last = indptr[i], indptr[i + 1]
                if first < last:
                    rows = self._rows(indices[first:last])
                    result[start + i] = values[first:last].astype(np.float64) @ rows
        lengths = np.sqrt(np.einsum("ij,ij->i", result, result))
        vectors: FloatArray = (result / np.maximum(lengths, _NO_LENGTH)[:, None]).astype(np.float32)
        return vectors

    def _rows(self, indices: IntArray) -> NDArray[np.float64]:
        rows: NDArray[np.float64] = self.weights[indices].astype(np.float64)
        return rows


_CHUNK = 4096
_NO_LENGTH = 1e-12


@dataclass(frozen=True)
class Prototypes:
    """One vector a code, in the encoder's space: (codes, dimension), float32, unit length."""

    codes: tuple[str, ...]
    matrix: FloatArray
    fingerprint: str

    @cached_property
    def place(self) -> dict[str, int]:
        """Row of each code."""
        return {code: row for row, code in enumerate(self.codes)}

    @classmethod
    def load(cls, folder: Path) -> Prototypes:
        """Open the prototypes saved beside the encoder in ``folder``.

        Raises:
            ArtefactsMissingError: the folder or one of its files is not there.
            ArtefactsIncompatibleError: another format, or files that do not belong together.
        """
        meta = _read_meta(folder)
        data = folder / meta["data"]
        codes = _read_json(data / CODES_FILE)
        matrix = _open_array(data / PROTOTYPES_FILE)
        if not isinstance(codes, list) or matrix.shape != (len(codes), meta.get("dimension")):
            raise ArtefactsIncompatibleError(
                f"The prototypes in {folder} are damaged: {CODES_FILE} and {PROTOTYPES_FILE} do not belong "
                f"together. {_CURE}"
            )
        return cls(tuple(codes), matrix, str(meta["fingerprint"]))


def _read_meta(folder: Path) -> dict[str, Any]:
    """Read the small file that names the arrays: it is replaced last, so what it names is whole."""
    meta = _read_json(folder / META_FILE)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        found = meta.get("format") if isinstance(meta, dict) else None
        raise ArtefactsIncompatibleError(
            f"The encoder in {folder} is of format {found}, this version reads format {FORMAT}. {_CURE}"
        )
    return meta


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArtefactsMissingError(f"There is no {path}. {_CURE}") from error
    except ValueError as error:
        raise ArtefactsIncompatibleError(f"{path} is damaged: {error}. {_CURE}") from error


def _open_array(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise ArtefactsMissingError(f"There is no {path}. {_CURE}") from error
    except (OSError, ValueError, EOFError, SyntaxError, TokenError) as error:
        raise ArtefactsIncompatibleError(f"{path} is damaged: {error}. {_CURE}") from error
    # A plain array over the same pages: indexing a memmap subclass costs several times as much.
    return array.view(np.ndarray)
