"""Other wordings: each family, and what they never are."""

import random

import pytest
from evaluation_corpus import corpus

from alpha_id_runtime.evaluation.lexicon import build_lexicon
from alpha_id_runtime.evaluation.paraphrase import FAMILIES, paraphrase
from alpha_id_runtime.text import normalise

ABBREVIATIONS = {"TBC": "Tuberkulose", "II": "Carnitinmangel Typ zwei"}


@pytest.fixture(scope="module")
def lexicon():
    """Return the lexicon of the small corpus."""
    columns = corpus()
    return build_lexicon(columns.text, columns.norm, columns.icd_code, ABBREVIATIONS)


@pytest.mark.parametrize(
    ("family", "text", "code", "expected"),
    [
        ("word order", "Fraktur der Klavikula", "S42.0", "Klavikulafraktur"),
        ("word order", "Klavikulafraktur", "S42.0", "Fraktur der Klavikula"),
        ("word order", "Entzündung der Niere", "N28.2", "Nierenentzündung"),
        ("word order", "Nierenzyste", "N28.1", "Zyste der Niere"),
        ("word order", "Arterielle Hypertonie", "I10.90", "Hypertonie, arteriell"),
        ("word order", "Hypertonie mit Herzinsuffizienz", "I11.00", "Herzinsuffizienz bei Hypertonie"),
        ("synonym", "Karzinom des unteren Ureters", "C67.6", "Krebs des unteren Ureters"),
        ("shortening", "Chronische Bronchitis", "J42", "Chron. Bronchitis"),
        ("shortening", "Fraktur der Klavikula", "S42.0", "Fraktur Klavikula"),
        ("shortening", "Verdacht auf Zyste a.n.k.", "N28.1", "V.a. Zyste a.n.k."),
        ("shortening", "Gelenkleiden a.n.k.", "M25.9", "Gelenkleiden"),
        ("inflection", "Arterielle Hypertonie", "I10.90", "arteriellen Hypertonie"),
        ("inflection", "Entzündung der Milz", "D73.2", "Entzündungen der Milz"),
        ("abbreviation", "Tuberkulose der Hüfte", "A18.0", "TBC der Hüfte"),
        ("abbreviation", "TBC der Hand", "A18.0", "Tuberkulose der Hand"),
        ("abbreviation", "Hüft-TBC [Tuberkulose]", "A18.0", "Hüft-Tuberkulose"),
        ("abbreviation", "Hüft-TBC [Tuberkulose]", "A18.0", "Hüft-TBC"),
    ],
)
def test_each_family_words_as_physicians_do(lexicon, family, text, code, expected):
    """A family offers the wording it stands for."""
    assert expected in {new for new, _ in FAMILIES[family](text, code, lexicon)}


def test_a_synonym_needs_two_contexts_of_its_code(lexicon):
    """A pair that two phrases of a code exchange only once is no evidence."""
    assert lexicon.synonyms("C67.6")["Karzinom",] == {("Krebs",)}
    assert not FAMILIES["synonym"]("Arterielle Hypertonie", "I10.90", lexicon)
    assert not FAMILIES["synonym"]("Karzinom des Harnleiters", "C66", lexicon)


def test_an_abbreviation_is_spoken_out_only_where_its_category_uses_the_long_form(lexicon):
    """One abbreviation has several long forms; a Roman numeral is none."""
    assert not FAMILIES["abbreviation"]("TBC der Hand", "I10.90", lexicon)
    assert not FAMILIES["abbreviation"]("Diabetes Typ II", "E11.90", lexicon)


def test_a_paraphrase_is_never_a_phrase_of_the_corpus(lexicon):
    """Over all phrases and many seeds, no paraphrase equals any corpus phrase once normalised."""
    columns = corpus()
    made = [
        paraphrase(text, code, lexicon, random.Random(seed))
        for seed in range(10)
        for text, code in zip(columns.text, columns.icd_code, strict=True)
    ]
    found = [m for m in made if m]
    assert len(found) > len(made) / 2
    assert not {normalise(new) for new, _ in found} & set(columns.norm)
    assert all(1 <= len(done) <= 2 for _, done in found)
    assert {d.partition(":")[0] for _, done in found for d in done} == set(FAMILIES)


def test_what_cannot_be_reworded_yields_nothing(lexicon):
    """A bare word without a known ending, head or abbreviation is left alone."""
    assert paraphrase("Husten", "R05", lexicon, random.Random(0)) is None


def test_the_same_seed_gives_the_same_wording(lexicon):
    """A paraphrase is a function of phrase, corpus and seed."""
    text = "Chronische Bronchitis mit Husten"
    first = [paraphrase(text, "J42", lexicon, random.Random(s)) for s in range(20)]
    assert first == [paraphrase(text, "J42", lexicon, random.Random(s)) for s in range(20)]
    assert len({m[0] for m in first if m}) > 1
