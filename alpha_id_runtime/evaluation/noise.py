"""Transcription errors as German dictation makes them, each drawn from a seed and named.

Holds: the sites of each kind of error in a text, and how a few of them are drawn. Refuses: typing errors that
no listener makes (neighbouring keys), any knowledge of codes, and a result that is itself a phrase of the
corpus: "Hypotonie" for "Hypertonie" would be another diagnosis, not a misspelt one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Container, Mapping


class Edit(NamedTuple):
    """One possible error: ``text[start:end]`` becomes ``new``; ``what`` names the rule."""

    start: int
    end: int
    new: str
    what: str


# Pattern of the written form, what a listener may write instead.
_HOMOPHONES = (
    (r"f", "v"), (r"\bv", "f"), (r"v", "w"), (r"ph", "f"), (r"f", "ph"),
    (r"c(?=[aoulr])", "k"), (r"k(?=[aoulr])", "c"), (r"c(?=[eiäy])", "z"), (r"z(?=[ei])", "c"), (r"ck", "k"),
    (r"dt\b", "t"), (r"d\b", "t"), (r"t\b", "dt"), (r"tz", "z"),
    (r"ie", "ih"), (r"ie", "i"), (r"ih", "ie"), (r"(?<=[a-zäöü])i(?=[rtnlm][a-z])", "ie"),
    (r"ä(?!u)", "e"), (r"(?<=\b[bdfghklmnprstw])e(?=[b-df-hj-tv-z]{2})", "ä"), (r"äu", "eu"), (r"eu", "äu"),
    (r"ei", "ai"), (r"th", "t"), (r"\bt(?=[eo])", "th"), (r"rh", "r"), (r"y", "ü"), (r"y", "i"),
    (r"x", "ks"), (r"chs", "x"), (r"qu", "kw"), (r"ß", "s"), (r"pt", "bt"),
)  # fmt: skip

# Parts of terms that a listener takes for one another, both directions; "^" binds to the beginning of a word.
_CONFUSED = (
    ("hyper", "hypo"), ("^inter", "^intra"), ("^intra", "^infra"), ("^supra", "^super"), ("^ante", "^anti"),
    ("^prä", "^per"), ("^para", "^peri"), ("^epi", "^hypo"), ("^endo", "^ekto"), ("tachy", "brady"),
    ("makro", "mikro"), ("^ab", "^ad"), ("^dys", "^dis"),
    ("itis", "ose"), ("itis", "osis"), ("ektomie", "otomie"), ("ostomie", "otomie"), ("algie", "asie"),
    ("plasie", "phasie"), ("penie", "pathie"), ("ämie", "urie"), ("perineal", "peritoneal"),
    ("peroneus", "peritoneus"), ("ureter", "urethra"), ("afferent", "efferent"), ("dysphagie", "dysphasie"),
    ("ileum", "ilium"), ("zyst", "zyt"), ("melanom", "myelom"), ("lipom", "lymphom"), ("myom", "myelom"),
    ("zerebral", "zervikal"), ("nekrose", "neurose"), ("nephr", "neur"), ("arthritis", "arteriitis"),
    ("koxa", "kosta"), ("kolon", "kollum"), ("prostata", "prostrata"), ("karzinom", "karzinon"),
)  # fmt: skip

_ENDINGS = ("e", "er", "es", "en", "em")
_SYLLABLES = re.compile(r"(?<=[a-zäöüß]{3})(?<![cpst])(?=[bcdfghjklmnprstvwxz][aeiouäöü][a-zäöüß]{2})")


def _homophones(text: str) -> list[Edit]:
    return [
        Edit(m.start(), m.end(), _cased(m.group(), heard), f"homophone:{_plain(written)}>{heard}")
        for written, heard in _HOMOPHONES
        for m in re.finditer(written, text, re.IGNORECASE)
        if m.group()
    ]


def _merged(text: str) -> list[Edit]:
    # The second word loses its capital, as in a compound.
    return [
        Edit(m.start(), m.end(), m.group(1).lower(), "merged")
        for m in re.finditer(r"(?<=[^\W\d]{2})[ -]([^\W\d])(?=[^\W\d])", text)
    ]


def _split(text: str) -> list[Edit]:
    return [
        Edit(word.start() + at.start(), word.start() + at.start(), " ", "split")
        for word in re.finditer(r"[^\W\d]{8,}", text)
        for at in _SYLLABLES.finditer(word.group())
    ]


def _digits(text: str) -> list[Edit]:
    return [
        Edit(m.start(), m.start() + 2, m.group(1) + text[m.start()], "digits")
        for m in re.finditer(r"\d(?=(\d))", text)
        if m.group(1) != text[m.start()]
    ]


def _umlauts(text: str) -> list[Edit]:
    spelled = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"}
    bare = {"ä": "a", "ö": "o", "ü": "u", "Ä": "A", "Ö": "O", "Ü": "U"}
    return [
        Edit(i, i + 1, table[c], what)
        for table, what in ((spelled, "umlaut:spelled"), (bare, "umlaut:bare"))
        for i, c in enumerate(text)
        if c in table
    ]


def _dropped(text: str) -> list[Edit]:
    # The first letter of a word is heard best and is kept.
    return [
        Edit(m.start(), m.end(), "", "dropped")
        for m in re.finditer(r"(?<=[^\W\d]{2})[^\W\d](?=[^\W\d])", text)
    ]


def _doubled(text: str) -> list[Edit]:
    twice = r"(?<=[aeiouäöü])([bdfgklmnprst])(?=[aeiouäöü])"
    once = r"([bdfgklmnprst])\1"
    return [
        *(Edit(m.start(), m.end(), m.group() * 2, "doubled:added") for m in re.finditer(twice, text)),
        *(Edit(m.start(), m.end(), m.group(1), "doubled:lost") for m in re.finditer(once, text)),
    ]


def _endings(text: str) -> list[Edit]:
    # Long words in -e, -er, -es, -en, -em are mostly adjectives or plurals: the ending is what is mumbled.
    return [
        Edit(m.start(1), m.end(1), ending, "ending")
        for m in re.finditer(r"\b[^\W\d]{4,}?(e|er|es|en|em)\b", text)
        for ending in _ENDINGS
        if ending != m.group(1)
    ]


def _confusions(text: str) -> list[Edit]:
    both = (*_CONFUSED, *((b, a) for a, b in _CONFUSED))
    return [
        Edit(m.start(), m.end(), _cased(m.group(), b.lstrip("^")), f"confusion:{a}>{b}".replace("^", ""))
        for a, b in both
        for m in re.finditer(a.replace("^", r"\b"), text, re.IGNORECASE)
    ]


_SITES: dict[str, Callable[[str], list[Edit]]] = {
    "homophone": _homophones,
    "merged": _merged,
    "split": _split,
    "digits": _digits,
    "umlaut": _umlauts,
    "dropped": _dropped,
    "doubled": _doubled,
    "ending": _endings,
    "confusion": _confusions,
}
NOISE_KINDS = tuple(_SITES)


def _default_rates() -> dict[str, float]:
    return {
        "homophone": 0.4, "merged": 0.1, "split": 0.1, "digits": 0.3, "umlaut": 0.3,
        "dropped": 0.15, "doubled": 0.15, "ending": 0.15, "confusion": 0.1,
    }  # fmt: skip


@dataclass(frozen=True)
class NoiseRates:
    """How often each kind of error befalls a text that has a site for it.

    Args:
        rates: kind -> probability (0 to 1) that it happens once; a kind that is not named never happens.
        at_most: errors of one text. At least one always happens, as a text without is no noise case.
    """

    rates: Mapping[str, float] = field(default_factory=_default_rates)
    at_most: int = 3


def add_noise(
    text: str, rng: random.Random, rates: NoiseRates, taken: Container[str]
) -> tuple[str, tuple[str, ...]] | None:
    """Return ``text`` with one to ``rates.at_most`` errors and what was done; None where nothing can be done.

    Args:
        text: a phrase as written.
        rng: drawn from; the same state gives the same answer.
        rates: how often each kind happens.
        taken: normalised phrases that the result must not equal (the corpus).
    """
    kinds = [kind for kind in NOISE_KINDS if rates.rates.get(kind, 0) > 0]
    rng.shuffle(kinds)
    wanted = [kind for kind in kinds if rng.random() < rates.rates[kind]][: rates.at_most]
    noisy = text
    done: list[str] = []
    # What was drawn; then, as long as the corpus holds the text, one more error of any kind.
    for planned, kind in [*((True, k) for k in wanted), *((False, k) for k in kinds)]:
        if not planned and (len(done) >= rates.at_most or _fresh(noisy, text, taken)):
            break
        edit = _draw(_SITES[kind](noisy), rng)
        if edit is not None:
            noisy = noisy[: edit.start] + edit.new + noisy[edit.end :]
            done.append(edit.what)
    if not _fresh(noisy, text, taken):
        return None
    return noisy, tuple(done)


def kind_of(done: str) -> str:
    """Return the kind of a note in ``done``: ``homophone:ph>f`` is ``homophone``."""
    return done.partition(":")[0]


def _fresh(noisy: str, text: str, taken: Container[str]) -> bool:
    norm = normalise(noisy)
    return bool(norm) and norm not in taken and norm != normalise(text)


def _draw(edits: list[Edit], rng: random.Random) -> Edit | None:
    """Draw a rule, then a site: a letter that is everywhere must not crowd out the rare confusions."""
    if not edits:
        return None
    rule = rng.choice(sorted({e.what for e in edits}))
    return rng.choice([e for e in edits if e.what == rule])


def _cased(old: str, new: str) -> str:
    """Return ``new`` with the capital that ``old`` begins with."""
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def _plain(pattern: str) -> str:
    """Return the letters that a pattern of ``_HOMOPHONES`` replaces."""
    return re.sub(r"\(\?[^)]*\)|\\b", "", pattern)
