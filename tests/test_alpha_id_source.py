"""Reading Alpha-ID files: every layout, and every kind of fault in words."""

from __future__ import annotations

import polars as pl
import pytest

from alpha_id_assets.sources.alpha_id import ENTRIES_SCHEMA, read_alpha_id
from alpha_id_runtime.errors import SourceError
from tests.reference import SHARED, needs_shared

EIGHT = [
    "1|I91|||U61.2!|||200 bis 499 T-Helferzellen",
    '1|I1|A01.0+|M01.39*||||Arthritis bei "Typhus"; chronisch',
    "0|I2|M00.89||B96.2!|||Gelenkpyämie durch Escherichia coli ",
    "1|I3|C50.9|||Z80.3|227535|Familiärer Brustkrebs",
    "1|I4||G63.2*||||Größte Neuropathie",
]


def _bytes(rows: list[str], *, eol: str = "\n", encoding: str = "utf-8") -> bytes:
    return (eol.join(rows) + eol).encode(encoding)


def _seven(rows: list[str], separator: str = "|") -> list[str]:
    fields = [row.replace("; ", ", ").split("|") for row in rows]
    return [separator.join(f[:6] + f[7:]) for f in fields]


def _problems(rows: list[str], **options: str) -> list[str]:
    with pytest.raises(SourceError) as caught:
        read_alpha_id(_bytes(rows, **options), "a.txt")
    return caught.value.problems


def test_eight_fields_are_read_without_marks_and_with_their_line() -> None:
    """Marks go, the dagger stays as a flag, empty fields are null, quotes and semicolons are text."""
    edition = read_alpha_id(_bytes(EIGHT), "a.txt")

    assert edition.rows.schema == pl.Schema(ENTRIES_SCHEMA)
    assert (edition.encoding, edition.separator, edition.fields, edition.left_out) == ("UTF-8", "|", 8, [])
    assert edition.rows.rows() == [
        (1, True, "I91", None, False, None, "U61.2", None, None, "200 bis 499 T-Helferzellen"),
        (2, True, "I1", "A01.0", True, "M01.39", None, None, None, 'Arthritis bei "Typhus"; chronisch'),
        (3, False, "I2", "M00.89", False, None, "B96.2", None, None, "Gelenkpyämie durch Escherichia coli"),
        (4, True, "I3", "C50.9", False, None, None, "Z80.3", "227535", "Familiärer Brustkrebs"),
        (5, True, "I4", None, False, "G63.2", None, None, None, "Größte Neuropathie"),
    ]


@pytest.mark.parametrize(
    ("data", "encoding", "separator", "fields"),
    [
        (b"\xef\xbb\xbf" + _bytes(EIGHT, eol="\r\n"), "UTF-8", "|", 8),
        (_bytes(_seven(EIGHT)), "UTF-8", "|", 7),
        (_bytes(_seven(EIGHT), eol="\r\n", encoding="cp1252"), "CP1252", "|", 7),
        (_bytes(_seven(EIGHT, ";"), encoding="cp1252") + b"\x1a", "CP1252", ";", 7),
        (_bytes(EIGHT).rstrip(b"\n"), "UTF-8", "|", 8),
    ],
    ids=["bom-crlf", "seven", "cp1252", "semicolon", "no-last-newline"],
)
def test_every_layout_gives_the_same_rows(data: bytes, encoding: str, separator: str, fields: int) -> None:
    """Old layouts differ in form only; without an ORPHA field that column is null."""
    edition = read_alpha_id(data, "a.txt")
    wanted = read_alpha_id(_bytes(EIGHT), "a.txt").rows
    if fields == 7:
        wanted = wanted.with_columns(pl.lit(None, dtype=pl.String).alias("orpha"))
        wanted = wanted.with_columns(pl.col("text").str.replace("; ", ", "))

    assert (edition.encoding, edition.separator, edition.fields) == (encoding, separator, fields)
    assert edition.rows.equals(wanted)


def test_blank_lines_are_no_rows_but_count_as_lines() -> None:
    """A blank line is skipped, and the rows after it keep the number an editor shows."""
    edition = read_alpha_id(_bytes(["", EIGHT[0], "  ", EIGHT[1], ""]), "a.txt")

    assert edition.rows["line"].to_list() == [2, 4]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("2|I9|A00.0|||||x", '2, validity: "2" is not 0 or 1'),
        ("|I9|A00.0|||||x", '2, validity: "" is not 0 or 1'),
        ("1|9|A00.0|||||x", '2, Alpha-ID: "9" is not I and digits'),
        ("1|I9|A0.0|||||x", '2, primary: "A0.0" is not a code of ICD-10-GM'),
        ("1|I9|A00.-|||||x", '2, primary: "A00.-" is not a code of ICD-10-GM'),
        ("1|I9|L86*|||||x", '2, primary: "L86*" belongs into the field star'),
        ("1|I9|U61.2!|||||x", '2, primary: "U61.2!" belongs into the field addon'),
        ("1|I9|A00.0+|L86||||x", '2, star: "L86" lacks its mark *'),
        ("1|I9|A00.0||L86*|||x", '2, addon: "L86*" belongs into the field star'),
        ("1|I9|A00.0+|||||x", "2, star: empty, but primary A00.0+ has a dagger"),
        ("1|I9|||||29207|x", "2, primary: no code in any field"),
        ("1|I9||||Z80.3||x", "2, primary: empty, but there is a second primary"),
        ("1|I9|A00.0||||29a|x", '2, ORPHAcode: "29a" is not digits'),
        ("1|I9|A00.0|||||", "2, text: is empty"),
        ("1|I9|A00.0|||||  ", "2, text: is empty"),
        ("1|I9|A00.0|||||x\ty", "2, text: a control character in 'x\\ty'"),
        ("1|I9|A00.0|||||x\x1fy", "2, text: a control character in 'x\\x1ey'"),
        ("1|I9|A00.0|||||x\x00y", "2, text: a control character in 'x\\x00y'"),
        ("1|I9|A00.0", "2, number of fields: 3 instead of 8"),
        ("1|I9|A00.0|||||x|y", "2, number of fields: 9 instead of 8"),
        ("1|I91|A00.0|||||x", "2, Alpha-ID: I91 stands in line 1 already"),
        ("1|x|A0|||||x", '2, Alpha-ID: "x" is not I and digits and primary: "A0" is not a code of ICD-10-GM'),
    ],
)
def test_a_malformed_row_is_named_with_file_line_and_field(row: str, problem: str) -> None:
    """The problem says where and what; the rows around it are not blamed."""
    assert _problems([EIGHT[0], row, *EIGHT[1:]]) == [f"a.txt:{problem}"]


def test_all_malformed_rows_are_collected_and_the_first_twenty_shown() -> None:
    """The message stays a paragraph, the error keeps everything."""
    rows = [f"1|I{i}|A00.0|||||x" if i % 2 else f"7|I{i}|A00.0|||||x" for i in range(100)]
    with pytest.raises(SourceError) as caught:
        read_alpha_id(_bytes(rows), "a.txt")

    assert len(caught.value.problems) == 50
    assert "a.txt: 50 of 100 rows are malformed" in str(caught.value)
    assert "and 30 more" in str(caught.value)


def test_a_tolerance_leaves_malformed_rows_out_and_lists_them() -> None:
    """Up to the tolerance the good rows are read; one more bad row is an error."""
    rows = [EIGHT[0], "1|I8", "1|I91|A00.0|||||twice", *EIGHT[1:]]
    edition = read_alpha_id(_bytes(rows), "a.txt", tolerance=2)

    assert edition.rows["alpha_id"].to_list() == ["I91", "I1", "I2", "I3", "I4"]
    assert edition.left_out == [
        "a.txt:2, number of fields: 2 instead of 8",
        "a.txt:3, Alpha-ID: I91 stands in line 1 already",
    ]
    with pytest.raises(SourceError, match="tolerated are 1"):
        read_alpha_id(_bytes(rows), "a.txt", tolerance=1)


def test_a_few_bytes_of_cp1252_in_a_utf8_file_are_faults_of_their_lines() -> None:
    """One wrong byte does not turn a UTF-8 file into a CP1252 one full of broken umlauts."""
    data = _bytes(EIGHT) + "1|I5|A00.0|||||Mürbe".encode("cp1252")
    with pytest.raises(SourceError) as caught:
        read_alpha_id(data, "a.txt")

    assert caught.value.problems == ["a.txt:6, text: bytes that the encoding of the file does not have"]


def test_utf8_umlauts_in_a_cp1252_file_are_faults_of_their_lines() -> None:
    """The other way round no broken umlaut gets into the corpus either, nor a byte CP1252 lacks."""
    data = _bytes(EIGHT, encoding="cp1252") + "1|I5|A00.0|||||Mürbe\n".encode() + b"1|I6|A00.0|||||M\x81rbe\n"
    with pytest.raises(SourceError) as caught:
        read_alpha_id(data, "a.txt")

    assert caught.value.problems == [
        "a.txt:6, text: a mixture of UTF-8 and CP1252",
        "a.txt:7, text: bytes that the encoding of the file does not have",
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.txt is empty"),
        (b"\xef\xbb\xbf\r\n", "a.txt is empty"),
        ("\n".join(EIGHT).encode("utf-16"), "UTF-16"),
        ("\n".join(EIGHT).encode("utf-16-le"), "binary or UTF-16"),
        (bytes(range(256)) * 20, "not in the layout of Alpha-ID"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\nendobj\n", "not in the layout of Alpha-ID"),
        (b"1|I9|A00.0\n", "no line has eight or seven fields"),
        (b"a;b\nc;d\n", "no line has eight or seven fields"),
    ],
    ids=["empty", "bom-only", "utf-16", "utf-16-no-bom", "binary", "pdf", "three-fields", "other-table"],
)
def test_what_is_no_alpha_id_file_is_one_clear_error(data: bytes, message: str) -> None:
    """The message says what the file is instead of blaming rows."""
    with pytest.raises(SourceError, match=message):
        read_alpha_id(data, "a.txt", tolerance=100)


def test_a_file_whose_rows_were_all_left_out_is_an_error() -> None:
    """A tolerance never turns a broken file into an empty source."""
    with pytest.raises(SourceError, match="no usable row"):
        read_alpha_id(b"7|I9|A00.0|||||x\n", "a.txt", tolerance=5)


@pytest.mark.full
@needs_shared
def test_the_full_file_and_the_excerpt_of_2026_are_read_without_a_fault() -> None:
    """85,686 rows of 2023 and 52 of the official 2026 file, every column in use."""
    full = SHARED / "full" / "icd10gm2023_alphaidse_edvtxt_20220930.txt"
    excerpt = SHARED / "excerpts" / "icd10gm2026_alphaidse_excerpt.txt"
    rows = read_alpha_id(full.read_bytes(), full.name).rows
    few = read_alpha_id(excerpt.read_bytes(), excerpt.name).rows

    assert rows.height == 85_686
    assert rows["dagger"].sum() == rows["aster"].count() == 3_891
    assert few.height == excerpt.read_bytes().count(b"\n") == 52
    assert few.filter(pl.col("primary").is_null())["addon"].to_list() == [
        "U61.2", "B96.5", "U63.5", "U07.1", "U81.20", "Z37.9", "U09.9",
    ]  # fmt: skip
    assert few.filter(pl.col("primary2").is_not_null())["primary2"].to_list() == ["Z80.3"]
    assert few["valid"].sum() == few.height - 5
