"""The single spelling of "the same text".

Holds: ``content_hash`` (what a vector is keyed by; frozen), ``normalise`` (what phrases are matched by; may
change with a new schema version) and the word and trigram units drawn from it. Refuses: meaning.
Abbreviations, certainty and degrees are read elsewhere.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

_BLANKS = re.compile(r"\s+")
# Greek letters tell codes apart (D56.0 alpha, D56.1 beta thalassaemia) and are as often spelled out.
_SPELLED_OUT = str.maketrans(
    {
        "ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "œ": "oe", "ø": "oe",
        "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "κ": "kappa", "λ": "lambda",
    }
)  # fmt: skip
# Soft hyphens, joiners and marks of direction that copying from documents leaves inside words.
_INVISIBLE = dict.fromkeys([0x00AD, *range(0x200B, 0x2010), 0x2060, 0xFEFF])
_ROMAN = {
    "i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6",
    "vii": "7", "viii": "8", "ix": "9", "x": "10", "xi": "11", "xii": "12",
}  # fmt: skip
_NOT_WORD = re.compile(r"[^0-9a-z]+")
_LETTER = "0-9A-Za-zÄÖÜäöüß"
_END = f"(?![{_LETTER}])"
_ROMAN_TOKEN = re.compile(
    rf"(?<![{_LETTER}])(?:"
    # "IIb" is as often written "2b"
    rf"(?:X?(?:IX|IV|V?I{{2,3}}|VI)|X[IV])(?=[a-c]?{_END})"
    rf"|(?:x?(?:ix|iv|v?i{{2,3}}|vi)|x[iv]){_END}"
    # "I. Grades", but neither "I.v." nor "I. E."
    rf"|[IX]{_END}(?!\.\s?[a-zäöü]|\.[A-ZÄÖÜ]|\.\s[A-ZÄÖÜ]{_END})"
    # neither "V. a." (suspected) nor "V. cava" (vein)
    rf"|V{_END}(?!\.\s?[A-Za-zÄÖÜäöü])"
    r")"
)
_TAIL = re.compile(r" (?:s a .*|o n a|a n k|n n b)$")
_CALIBRATION_BELOW = 64
_GLUED_NUMBER = re.compile(r"(?<=[a-z]{3})(?=\d)")
_GLUED_ROMAN = re.compile(r"(?<=[A-Za-zÄÖÜäöüß][a-zäöüß]{2})(?=(?:IV|V?I{1,3})(?![0-9A-Za-zÄÖÜäöüß]))")


def canonical(text: str) -> str:
    """Return ``text`` after NFC, trimming and collapsing of blanks: the very string a provider is sent."""
    return _BLANKS.sub(" ", unicodedata.normalize("NFC", text)).strip()


def content_hash(text: str) -> str:
    """Return the sha256 (64 hex digits) of ``canonical(text)``.

    Frozen: a change here would buy every vector again.
    """
    return hashlib.sha256(canonical(text).encode()).hexdigest()


def fold(text: str) -> str:
    """Return ``text`` in NFC, lower case, umlauts, ß and Greek letters spelled out, other accents dropped.

    The length may grow; punctuation and blanks stay.
    """
    if text.isascii():
        return text.lower()
    lowered = unicodedata.normalize("NFC", text).lower().translate(_SPELLED_OUT)
    if lowered.isascii():
        return lowered
    decomposed = unicodedata.normalize("NFKD", lowered)
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def normalise(text: str) -> str:
    """Return the words of ``text`` as matched: folded, blank-separated, Roman numerals as Arabic ones.

    Hyphens, slashes and all punctuation part words, invisible signs go; a number glued to a word is parted
    from it ("TypI", "Typ1"). Of the Roman numerals I to XIX those of one letter count only in capitals, as in
    "NYHA I", so that no word is hurt. Empty when nothing but punctuation is left.
    """
    visible = unicodedata.normalize("NFC", text if text.isascii() else text.translate(_INVISIBLE))
    parted = _GLUED_ROMAN.sub(" ", visible)
    arabic = _ROMAN_TOKEN.sub(lambda m: _arabic(m.group()), parted)
    return " ".join(_GLUED_NUMBER.sub(" ", _NOT_WORD.sub(" ", fold(arabic))).split())


def _arabic(roman: str) -> str:
    token = roman.lower()
    return _ROMAN.get(token) or str(10 + int(_ROMAN[token[1:]]))


def without_tail(normalised: str) -> str:
    """Return a normalised phrase of the corpus without what the register puts behind the diagnosis.

    "s.a. Diabetes mellitus" refers to other entries, "o.n.A." and "a.n.k." say that no more was said: whoever
    writes the diagnosis alone means the same.
    """
    return _TAIL.sub("", normalised)


def words(normalised: str) -> list[str]:
    """Return the words of a normalised text, in order."""
    return normalised.split()


def trigrams(normalised: str) -> list[str]:
    """Return the trigrams of each word of a normalised text, word ends marked by ``_``.

    "ca ov" gives ``_ca ca_ _ov ov_``: a token index needs no blank inside a token.
    """
    grams: list[str] = []
    for word in normalised.split():
        marked = f"_{word}_"
        grams.extend(marked[i : i + 3] for i in range(len(marked) - 2))
    return grams


def twin_key(normalised: str) -> str:
    """Return the sorted set of words: two phrases with one key are twins, whatever their word order."""
    return " ".join(sorted(set(normalised.split())))


def is_calibration(key: str) -> bool:
    """Tell whether phrases of this ``twin_key`` may calibrate or train a ranking: a fixed quarter of all.

    Evaluation cases are drawn from the other three quarters alone, whatever their seed, so that no ranking is
    ever judged by what it was fitted to. Frozen: the first byte of the key's sha256 is below 64.
    """
    return hashlib.sha256(key.encode()).digest()[0] < _CALIBRATION_BELOW
