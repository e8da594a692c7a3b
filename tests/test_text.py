"""What counts as the same text: the frozen hash, and the normalisation that phrases are matched by."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alpha_id_runtime.text import canonical, content_hash, fold, normalise, trigrams, twin_key, words


def test_the_content_hash_never_changes() -> None:
    """Drawn once from sha256 of the UTF-8 bytes: another value would buy every vector again."""
    assert content_hash(" Müller-Weiss-Syndrom  [Os naviculare]") == (
        "158c01ffc5f7c51b54c32257dcde1f6798eacc3b73eb9e78a2b8ed415e96ffe5"
    )


def test_the_content_hash_sees_nfc_trimmed_and_with_single_blanks_and_nothing_else() -> None:
    """Blanks of every kind and the form of umlauts do not count; case, hyphens and umlauts do."""
    text = "Ulcus cruris, venös"
    same = [f"  {text}\n", "Ulcus\u00a0cruris,\t venös", unicodedata.normalize("NFD", text)]
    other = [text.lower(), text.replace("ö", "oe"), text.replace(",", ""), text + "."]

    assert {content_hash(each) for each in same} == {content_hash(text)}
    assert content_hash(text) not in {content_hash(each) for each in other}
    assert canonical(same[1]) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ösophagusvarizen", "Oesophagusvarizen"),
        ("ÖSOPHAGUSVARIZEN", "ösophagusvarizen"),
        (unicodedata.normalize("NFD", "Lymphödem"), "Lymphödem"),
        ("Fuß", "Fuss"),
        ("FUẞ", "fuß"),
        ("Ménière-Krankheit", "Meniere-Krankheit"),
        ("Typ-2-Diabetes", "Typ 2 Diabetes"),
        ("Typ\u20112\u2013Diabetes", "Typ-2-Diabetes"),
        ("Mitral-/Aortenvitium", "Mitral Aortenvitium"),
        ("Diabetes mellitus Typ II", "Diabetes mellitus Typ 2"),
        ("DIABETES MELLITUS TYP II", "diabetes mellitus typ ii"),
        ("Diabetes mellitus TypII", "Diabetes mellitus, Typ2"),
        ("NYHA III", "NYHA 3"),
        ("nyha iii", "NYHA III"),
        ("AV-Block I. Grades", "AV-Block 1. Grades"),
        ("AV-Block II. Grades", "AV-Block 2. Grades"),
        ("Läsion des XII. Hirnnervs", "Läsion des 12. Hirnnervs"),
        ("pAVK Stadium IIb", "pAVK Stadium 2b"),
        ("Faktor-VIII-Mangel", "Faktor 8 Mangel"),
        ("Niereninsuffizienz XIV", "Niereninsuffizienz 14"),
        ("β-Thalassämie", "Beta-Thalassämie"),
        ("Hyper\u00adtonie", "Hypertonie"),
        ("Hyper\u200btonie", "Hypertonie"),
        ("Hypertonie\u00a0, arterielle", "Hypertonie arterielle"),
        ("COVID19", "COVID-19"),
    ],
)
def test_two_spellings_of_one_phrase_are_the_same(one: str, other: str) -> None:
    """Case, umlauts in both spellings, NFC, ß, hyphens, slashes, Roman numerals, invisible signs."""
    assert normalise(one) == normalise(other) != ""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("V. a. Pneumonie", "v a pneumonie"),
        ("Thrombose der V. femoralis", "thrombose der v femoralis"),
        ("I.v.-Drogenabusus", "i v drogenabusus"),
        ("100 I. E.", "100 i e"),
        ("MIX", "mix"),
        ("DIX", "dix"),
        ("Vitamin C", "vitamin c"),
        ("Faktor-Xa-Hemmer", "faktor xa hemmer"),
        ("via falsa", "via falsa"),
        ("Hepatitis i", "hepatitis i"),
    ],
)
def test_letters_that_are_no_numeral_stay(text: str, wanted: str) -> None:
    """V. for suspected or vein, i.v., words made of Roman letters."""
    assert normalise(text) == wanted


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("α-Thalassämie", "β-Thalassämie"),
        ("Typ I", "Typ II"),
        ("Schwäche", "Schwache"),
        ("Mukoviszidose", "Mukoviszidosen"),
        ("Infarkt Typ 1", "Infarkt Typ 11"),
    ],
)
def test_what_tells_diagnoses_apart_is_not_folded_away(one: str, other: str) -> None:
    """Greek letters, numbers, umlauts against plain vowels."""
    assert normalise(one) != normalise(other)


@pytest.mark.parametrize("text", ["", " \t", "?!", "\u200b", '"(+*!~^', "–—"])
def test_a_text_without_word_is_empty(text: str) -> None:
    """Nothing but punctuation, blanks or invisible signs."""
    assert normalise(text) == ""


@given(st.text(max_size=60))
def test_normalised_text_is_plain_and_stays_as_it_is(text: str) -> None:
    """Of any text: words of a-z and 0-9 with single blanks, the same for NFD, and for itself again."""
    plain = normalise(text)

    assert all(word.isascii() and word.isalnum() and word == word.lower() for word in words(plain))
    assert plain == " ".join(words(plain))
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(unicodedata.normalize("NFC", text))
    assert canonical(canonical(text)) == canonical(text)


def test_trigrams_mark_the_ends_of_words() -> None:
    """A term of the index holds no blank."""
    assert trigrams("ca ov") == ["_ca", "ca_", "_ov", "ov_"]
    assert trigrams("") == []


def test_twins_have_the_same_words_in_any_order() -> None:
    """And however often."""
    assert twin_key(normalise("Hypertonie, arterielle")) == twin_key(normalise("arterielle Hypertonie"))
    assert twin_key("a b") != twin_key("a b c")


def test_folding_keeps_punctuation() -> None:
    """Only letters change."""
    assert fold("Größe (NÄHE)") == "groesse (naehe)"
