"""Other wordings of a corpus phrase that keep its code: what a physician writes instead of the printed entry.

Holds: the families of rewriting and how one or two are drawn from a seed. Refuses: the corpus string itself,
any text that equals another phrase of the corpus, and outside knowledge beyond the few endings and prefixes
of German below: synonyms come from the same code, abbreviations from the corpus's own brackets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from alpha_id_runtime.evaluation.lexicon import Lexicon

SECOND = 0.3  # probability that a second family is applied on top of the first
WEAK = 0.7  # probability that inflection is tried only after all other families

Variant = tuple[str, str]  # the new text, what was done

_HEADS = (
    "fraktur", "karzinom", "krebs", "tumor", "entzündung", "verletzung", "zyste", "abszess", "fistel",
    "stenose",
    "insuffizienz", "thrombose", "embolie", "infarkt", "blutung", "hernie", "ruptur", "luxation", "prellung",
    "verbrennung", "fehlbildung", "deformität", "tuberkulose", "infektion", "erkrankung", "krankheit",
    "störung",
    "schmerz", "ödem", "ulkus", "polyp", "metastase", "sarkom", "adenom", "fibrom", "lipom", "spasmus",
    "lähmung",
    "atrophie", "hypertrophie", "hyperplasie", "dysplasie", "nekrose", "verschluss", "obstruktion",
    "prolaps", "riss",
)  # fmt: skip
_ADJECTIVE = r"[A-ZÄÖÜ]?[a-zäöü-]+(?:isch|lich|ig|är|al|ell|iv|ös|oid|bar|end|ent|ant|at|ut|iert|ekt)"
_LEADING = re.compile(rf"^({_ADJECTIVE})(e|er|es) (?=(?:[a-zäöü-]+(?:e|er|es) )?[A-ZÄÖÜ])")
_GENITIVE = re.compile(r"^([A-ZÄÖÜ][a-zäöüß]{3,}) (der|des) ([A-ZÄÖÜ][a-zäöüß]{3,})$")
_NOUN = (
    r"[A-ZÄÖÜ][\w-]+(?: (?!mit|bei)[a-z]\w+)?"  # with a Latin adjective behind it, as in "Diabetes mellitus"
)
_BRACKET = re.compile(r"\s*\[([^\]]+)\]")
_CUT = re.compile(rf"\b({_ADJECTIVE})(?:e|er|es|en|em)?\b")
_SPOKEN = (
    ("Zustand nach", "Z.n."), ("Verdacht auf", "V.a."), ("Bösartige Neubildung", "BN"),
    ("Diabetes mellitus", "DM"),
    ("Morbus", "M."), ("Syndrom", "Sy."), ("Arteria", "A."), ("Nervus", "N."), ("Musculus", "M."),
    ("Vena", "V."),
    ("Erkrankung", "Erkr."), ("beidseitig", "bds."), ("rechts", "re."), ("links", "li."),
    ("nicht näher bezeichnet", "o.n.A."), ("Insuffizienz", "Insuff."), ("insuffizienz", "insuff."),
)  # fmt: skip
_PLURALS = (
    ("ung", "ungen"), ("ion", "ionen"), ("ose", "osen"), ("om", "ome"), ("ur", "uren"), ("zyste", "zysten"),
    ("ie", "ien"), ("enz", "enzen"), ("ät", "äten"), ("ekt", "ekte"), ("itis", "itiden"),
)  # fmt: skip


def paraphrase(
    text: str, code: str, lexicon: Lexicon, rng: random.Random
) -> tuple[str, tuple[str, ...]] | None:
    """Return another wording of ``text`` and the names of what was done; None where none is found.

    The result's normalised form equals that of no corpus phrase.

    Args:
        text: a phrase of the corpus.
        code: its code; synonyms come from phrases of the same code.
        lexicon: of the corpus.
        rng: drawn from; the same state gives the same answer.
    """
    families = list(FAMILIES)
    rng.shuffle(families)
    if rng.random() < WEAK:
        # A plural is nearly always possible and is the easiest of all: it must not fill the table.
        families.sort(key=lambda family: family == "inflection")
    wanted = 2 if rng.random() < SECOND else 1
    new, done = text, []
    for family in families:
        variants = [v for v in FAMILIES[family](new, code, lexicon) if _fresh(v[0], text, lexicon)]
        if variants:
            new, what = rng.choice(sorted(set(variants)))
            done.append(f"{family}:{what}" if what else family)
        if len(done) == wanted:
            break
    return (new, tuple(done)) if done else None


def _word_order(text: str, _code: str, lexicon: Lexicon) -> list[Variant]:
    found: list[Variant] = []
    if genitive := _GENITIVE.match(text):
        head, article, noun = genitive.groups()
        found.append((_compound(noun, article, lexicon) + head.lower(), "compound"))
    for head in _HEADS:
        if re.fullmatch(rf"[A-ZÄÖÜ][a-zäöüß]{{3,}}{head}", text):
            found += [(v, "resolved") for v in _resolved(text.removesuffix(head), head.capitalize(), lexicon)]
    if leading := _LEADING.match(text):
        found.append((f"{text[leading.end() :]}, {_lower(leading.group(1))}", "inverted"))
    if swapped := re.fullmatch(rf"({_NOUN}) (mit|bei) ({_NOUN})", text):
        other = {"mit": "bei", "bei": "mit"}[swapped.group(2)]
        found.append((f"{swapped.group(3)} {other} {swapped.group(1)}", "swapped"))
    return found


def _compound(noun: str, article: str, lexicon: Lexicon) -> str:
    """Return the first part of a compound, with the linking letter that German asks for."""
    if article == "des":
        shorter = [s for s in (re.sub(r"es$", "", noun), re.sub(r"s$", "", noun)) if s in lexicon.nouns]
        return shorter[0] if shorter else re.sub(r"s$", "", noun)
    if re.search(r"(ung|heit|keit|ion|tät|schaft)$", noun):
        return noun + "s"
    return noun + "n" if noun.endswith("e") else noun


def _resolved(first: str, head: str, lexicon: Lexicon) -> list[str]:
    """Return "Fraktur der Klavikula" where the corpus shows the article, else "Fraktur Klavikula"."""
    known = [w for w in (first.removesuffix("n"), first.removesuffix("s"), first) if w in lexicon.nouns]
    return [f"{head} {lexicon.articles.get(normalise(word), word)}" for word in known[:1]]


def _synonym(text: str, code: str, lexicon: Lexicon) -> list[Variant]:
    words, found = text.split(), []
    for span, others in lexicon.synonyms(code).items():
        for at in range(len(words) - len(span) + 1):
            if tuple(words[at : at + len(span)]) == span:
                found += [(" ".join((*words[:at], *o, *words[at + len(span) :])), "") for o in others]
    return found


def _shortening(text: str, _code: str, _lexicon: Lexicon) -> list[Variant]:
    found: list[Variant] = []
    for long, short in _SPOKEN:
        if re.search(rf"\b{long}\b", text) or (long[0].islower() and text.endswith(long)):
            found.append((re.sub(rf"{long}\b", short, text, count=1), "spoken"))
    for adjective in _CUT.finditer(text):
        stem = re.match(r".{3,}?[bcdfghjklmnprstvwxz](?=[aeiouäöü])", adjective.group(1))
        if stem and len(stem.group()) <= len(adjective.group()) - 4:
            found.append((text[: adjective.start()] + stem.group() + "." + text[adjective.end() :], "cut"))
    bare = re.sub(r" (?:der|des|am|im|beim|einer|eines) (?=[A-ZÄÖÜ])", " ", text)
    found += [(bare, "no article")] if bare != text else []
    unsaid = re.sub(r",? (?:a\.n\.k\.|nicht näher bezeichnet|ohne nähere Angaben?)", "", text)
    return [*found, (unsaid, "unsaid")] if unsaid != text else found


def _inflection(text: str, _code: str, _lexicon: Lexicon) -> list[Variant]:
    found: list[Variant] = []
    if leading := _LEADING.match(text):
        rest = re.sub(r"^([a-zäöü-]+)(?:e|er|es) ", r"\1en ", text[leading.end() :])
        found.append((f"{_lower(leading.group(1))}en {rest}", "case"))
    for noun in re.finditer(r"\b[A-ZÄÖÜ][a-zäöüß]{4,}\b", text):
        found += [
            (text[: noun.start()] + noun.group().removesuffix(one) + many + text[noun.end() :], "plural")
            for one, many in _PLURALS
            if noun.group().endswith(one)
        ]
    return found


def _abbreviation(text: str, code: str, lexicon: Lexicon) -> list[Variant]:
    found: list[Variant] = []
    for bracket in _BRACKET.finditer(text):
        without = text[: bracket.start()] + text[bracket.end() :]
        found.append((without, "bracket dropped"))
        if short := re.search(r"\w*[A-Z]\w*[A-Z]\w*$", text[: bracket.start()]):
            # "Hüft-TBC [Tuberkulose]" is "Hüft-Tuberkulose" when spoken out.
            start = short.start()
            found.append((text[:start] + bracket.group(1) + text[bracket.end() :], "bracket spoken"))
    for abbreviation, long in lexicon.abbreviations:
        if long in text and abbreviation not in text:
            found.append((_replaced(text, long, abbreviation), "short"))
        # One abbreviation may have several long forms: only the one that phrases of this category use.
        if abbreviation in text and long not in text and lexicon.used_in(code, long):
            found.append((_replaced(text, abbreviation, long), "long"))
    return found


def _replaced(text: str, old: str, new: str) -> str:
    """Return ``text`` with ``old``, where it stands as a word and outside brackets, replaced once."""
    return re.sub(rf"(?<![\w\[]){re.escape(old)}(?!\w| ?\[|\])", lambda _: new, text, count=1)


FAMILIES: dict[str, Callable[[str, str, Lexicon], list[Variant]]] = {
    "word order": _word_order,
    "synonym": _synonym,
    "shortening": _shortening,
    "inflection": _inflection,
    "abbreviation": _abbreviation,
}


def _fresh(new: str, text: str, lexicon: Lexicon) -> bool:
    norm = normalise(new)
    return bool(norm) and norm not in lexicon.norms and norm != normalise(text)


def _lower(word: str) -> str:
    return word[:1].lower() + word[1:]
