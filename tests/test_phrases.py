"""Input text to phrases, and the codes written in a line."""

from __future__ import annotations

import pytest

from alpha_id_runtime.errors import UsageError
from alpha_id_runtime.phrases import decode, segments, written_codes

CATEGORIES = {"E11", "E11.7", "E11.72", "E11.90", "I10", "I10.90", "G63.2", "U80.00", "T12"}


def _lines(text: str) -> list[str]:
    return [segment.text for segment in segments(text)]


def _codes(text: str) -> tuple[tuple[str, ...], str]:
    return written_codes(text, CATEGORIES.__contains__)


def test_one_non_empty_line_is_one_phrase_counted_from_0() -> None:
    """BOM, CRLF, a lone CR, blank lines and blanks around are tolerated."""
    found = segments("\ufeffHypertonie\r\n\r\n  \t \n NSTEMI \rCOPD")

    assert [(segment.index, segment.text) for segment in found] == [
        (0, "Hypertonie"),
        (1, "NSTEMI"),
        (2, "COPD"),
    ]


@pytest.mark.parametrize(
    "line",
    ["- Gicht", "• Gicht", "•Gicht", "* Gicht", "– Gicht", "1. Gicht", "1) Gicht", "(1) Gicht", "1.) Gicht",
     "- 1. Gicht", "1. - Gicht", "1.Gicht", "\t·  Gicht"],
)  # fmt: skip
def test_bullets_and_numbering_are_taken_off(line: str) -> None:
    """Whatever a list is marked with."""
    assert _lines(line) == ["Gicht"]


def test_numbering_goes_on_over_lines_without_a_number() -> None:
    """Also where a part of a list was copied."""
    assert _lines("1. Gicht\nmit Tophi\n\n2. COPD\n3.NSTEMI") == ["Gicht", "mit Tophi", "COPD", "NSTEMI"]
    assert _lines("7. Gicht\n8. COPD") == ["Gicht", "COPD"]
    assert _lines("9. Gicht\n10. COPD") == ["Gicht", "COPD"]


@pytest.mark.parametrize("line", ["34. SSW", "3. Grades Verbrennung", "33+2 SSW", "-5 Dioptrien", "12.5 mg"])
def test_a_number_that_is_part_of_the_diagnosis_stays(line: str) -> None:
    """It counts nothing: no line before or after goes on from it."""
    assert _lines(line) == [line]
    assert _lines(f"1. Gicht\n{line}\n2. COPD") == ["Gicht", line, "COPD"]


@pytest.mark.parametrize("line", ["", "-", "- ", "•", "* * *", "1.", "2)", "\u2003"])
def test_a_line_that_is_nothing_but_a_bullet_is_empty(line: str) -> None:
    """It is no segment, and the next one takes its number."""
    expected = [line] if line == "2)" else []  # a lone 2 numbers nothing
    assert _lines(line) == expected


def test_input_must_be_utf_8() -> None:
    """The error names the byte and the cure, and nothing of the text."""
    assert decode(b"\xef\xbb\xbfGr\xc3\xb6\xc3\x9fe") == "Größe"
    with pytest.raises(UsageError, match=r"not UTF-8 \(byte 9\).*iconv") as caught:
        decode("Geheimes ä".encode("cp1252"))
    assert "Geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "codes", "rest"),
    [
        ("E11.90", ("E11.90",), ""),
        ("e11.90", ("E11.90",), ""),
        ("E1190", ("E11.90",), ""),
        ("E11.7-", ("E11.7",), ""),
        ("I10.-", ("I10",), ""),
        ("G63.2*", ("G63.2",), ""),
        ("U80.00!", ("U80.00",), ""),
        ("E11.72+", ("E11.72",), ""),
        ("arterielle Hypertonie, I10", ("I10",), "arterielle Hypertonie"),
        ("arterielle Hypertonie (I10.90)", ("I10.90",), "arterielle Hypertonie"),
        ("Hypertonie [ICD-10: I10.90]", ("I10.90",), "Hypertonie"),
        ("I10.90: Hypertonie", ("I10.90",), "Hypertonie"),
        ("E11.90, I10.90", ("E11.90", "I10.90"), ""),
        ("E11.90,I10.90", ("E11.90", "I10.90"), ""),
        ("E11.90; I10; E11.90", ("E11.90", "I10"), ""),
        ("E11.90.", ("E11.90",), "."),
    ],
)
def test_codes_of_the_edition_are_found_in_a_line(text: str, codes: tuple[str, ...], rest: str) -> None:
    """Printed, without dot, in small letters, with mark, in brackets, several; each once, in their order."""
    assert _codes(text) == (codes, rest)


@pytest.mark.parametrize(
    "text",
    [
        "Vitamin-B12-Mangel",
        "Vitamin B12",
        "HbA1c 7,5",
        "T12-Fraktur",
        "E10-E14",
        "XI10",
        "I10.900",
        "I100a",
        "K99.9",
    ],
)
def test_what_only_looks_like_a_code_stays_text(text: str) -> None:
    """A vitamin, a vertebra in a compound, a group, a code the edition lacks."""
    assert _codes(text) == ((), text)
