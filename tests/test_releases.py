"""The search of the data folder and the choice of an edition, on real files and ZIPs."""

from __future__ import annotations

import hashlib
import zipfile
from datetime import date
from typing import TYPE_CHECKING

import pytest

from alpha_id_assets.sources.releases import (
    choose_sources,
    find_editions,
    open_source,
    read_source,
    select_edition,
)
from alpha_id_runtime.errors import SourceError
from tests.reference import SHARED, needs_shared

if TYPE_CHECKING:
    from pathlib import Path

TODAY = date(2026, 3, 1)
ROWS = b"1|I1|A00.0|||||Cholera\n0|I2|A00.9|||||Brechruhr\n"


def _claml(year: int) -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<ClaML version="2.0.0"><Meta name="lang" value="de-DE"/>'
        f'<Title date="{year - 1}-09-12" name="ICD-10" version="{year}">Titel</Title></ClaML>\n'
    ).encode()


def _put(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _zip(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def _found(folder: Path) -> list[tuple[str, int, str]]:
    return [(file.kind, file.year, file.name) for file in find_editions(folder)]


@pytest.mark.parametrize(
    ("name", "year"),
    [
        ("icd10gm2026_alphaidse_edvtxt_20250926.txt", 2026),
        ("icd102020_alphaidse_edvtxt_20191004.txt", 2020),
        ("icd10gm2022_alphaidse_edvtxt_20211001_20220114.txt", 2022),
        ("icd10gm2015_alphaid_edvtxt_20140930.txt", 2015),
        ("Alpha-ID 2009.txt", 2009),
        ("ICD-10-GM-2012 Diagnosen.TXT", 2012),
        ("alphaid_edvtxt_20250926.txt", 2026),
        ("alphaid_edvtxt_2022-01-14.txt", 2022),
    ],
)
def test_the_edition_of_an_alpha_id_text_is_read_from_its_name(tmp_path: Path, name: str, year: int) -> None:
    """Irregular names count; the date of issue is not taken for the edition."""
    (tmp_path / name).write_bytes(ROWS)

    assert _found(tmp_path) == [("alpha_id", year, name)]


def test_an_extracted_text_without_a_year_takes_it_from_its_folder(tmp_path: Path) -> None:
    """The nearest name that tells an edition counts; where none does, the error says how to name it."""
    _put(tmp_path, {"icd10gm2021_alphaid/files.txt": ROWS})
    assert _found(tmp_path) == [("alpha_id", 2021, "files.txt")]

    _put(tmp_path, {"phrases.txt": ROWS})
    with pytest.raises(SourceError, match=r"phrases\.txt tells its edition; name it as BfArM does"):
        find_editions(tmp_path)


def test_the_edition_of_a_claml_file_is_read_from_its_title(tmp_path: Path) -> None:
    """Whatever it is called."""
    _put(tmp_path, {"any2019.dat": _claml(2025)})

    assert _found(tmp_path) == [("claml", 2025, "any2019.dat")]


def test_official_zips_are_read_in_memory(tmp_path: Path) -> None:
    """Members are found under their folder, noise beside them is passed over, nothing is extracted."""
    text = _zip(
        tmp_path / "icd10gm2026_alphaidse_edvtxt.zip",
        {
            "Klassifikationsdateien/icd10gm2026_alphaidse_edvtxt_20250926.txt": ROWS,
            "__MACOSX/Klassifikationsdateien/._icd10gm2026_alphaidse_edvtxt_20250926.txt": ROWS,
            "icd10gm2026_alphaidse_edvtxt_liesmich.txt": "Diese Datei erklärt die Felder.".encode("cp1252"),
            "bild.pdf": b"%PDF-1.7\n",
        },
    )
    _zip(
        tmp_path / "deep" / "x.ZIP",
        {"Klassifikationsdateien/c.xml": _claml(2026), "ClaML.dtd": b"<!ELEMENT a>"},
    )
    _put(tmp_path, {"readme.txt": b"nothing", ".hidden/a.txt": ROWS, "empty.xml": b"<a/>"})
    _zip(tmp_path / "other.zip", {"readme.txt": b"x"})
    _zip(tmp_path / "report.docx", {"../x": b"x"})
    before = sorted(p for p in tmp_path.rglob("*"))

    alpha_id, claml = find_editions(tmp_path)

    assert (alpha_id.kind, alpha_id.path, alpha_id.size) == ("alpha_id", text, len(ROWS))
    assert alpha_id.member == "Klassifikationsdateien/icd10gm2026_alphaidse_edvtxt_20250926.txt"
    assert read_source(alpha_id) == ROWS
    assert alpha_id.sha256 == hashlib.sha256(ROWS).hexdigest()
    with open_source(claml) as stream:
        assert stream.read() == _claml(2026)
    assert sorted(p for p in tmp_path.rglob("*")) == before


def test_extracted_and_packed_files_have_one_digest(tmp_path: Path) -> None:
    """What a build was made of does not depend on whether the ZIP was extracted."""
    _zip(tmp_path / "a.zip", {"icd10gm2026_alphaid_edvtxt.txt": ROWS})
    _put(tmp_path, {"icd10gm2026_alphaid_edvtxt.txt": ROWS})

    assert {file.sha256 for file in find_editions(tmp_path)} == {hashlib.sha256(ROWS).hexdigest()}


@pytest.mark.parametrize(
    "member", ["../icd10gm2026_alphaid.txt", "/etc/a.txt", "a/../../b", "..\\b", "C:\\b"]
)
def test_a_zip_with_a_path_out_of_it_is_refused(tmp_path: Path, member: str) -> None:
    """The archive is named, whatever else is in it."""
    _zip(tmp_path / "evil.zip", {"icd10gm2026_alphaid.txt": ROWS, member: ROWS})

    with pytest.raises(SourceError, match=r"evil\.zip holds a path out of it"):
        find_editions(tmp_path)


def test_a_zip_that_unpacks_to_far_too_much_is_refused(tmp_path: Path) -> None:
    """By the ratio to what it takes packed, before anything of it is unpacked."""
    _zip(tmp_path / "bomb.zip", {"icd10gm2026_alphaid.txt": ROWS + bytes(60 * 1024**2)})

    with pytest.raises(SourceError, match=r"bomb\.zip would unpack from"):
        find_editions(tmp_path)


def test_a_damaged_zip_is_an_error_and_not_overlooked(tmp_path: Path) -> None:
    """Cut off in download, or with a broken member."""
    noise = bytes(range(256)) * 40
    whole = _zip(tmp_path / "cut.zip", {"icd10gm2026_alphaid_edvtxt.txt": ROWS, "b": noise}).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[:-30])
    with pytest.raises(SourceError, match=r"cut\.zip is a damaged or protected ZIP"):
        find_editions(tmp_path)

    broken = bytearray(whole)
    at = whole.index(b"edvtxt.txt") + len(b"edvtxt.txt") + 3
    broken[at : at + 8] = b"\xff" * 8
    (tmp_path / "cut.zip").write_bytes(broken)
    with pytest.raises(SourceError, match=r"cut\.zip is a damaged or protected ZIP"):
        find_editions(tmp_path)


def test_links_out_of_the_folder_sample_and_gold_are_not_searched(tmp_path: Path) -> None:
    """Only real files of the folder count; sample and gold are searched when named themselves."""
    data, outside = tmp_path / "data", tmp_path / "outside"
    _put(outside, {"icd10gm2024_alphaid.txt": ROWS})
    _put(data, {"sample/icd10gm2026_alphaid.txt": ROWS, "gold/icd10gm2025_alphaid.txt": ROWS})
    _put(data, {"sub/sample/icd10gm2023_alphaid.txt": ROWS})
    (data / "linked").symlink_to(outside)
    (data / "icd10gm2024_alphaid.txt").symlink_to(outside / "icd10gm2024_alphaid.txt")

    assert [year for _, year, _ in _found(data)] == [2023]
    assert [year for _, year, _ in _found(data / "sample")] == [2026]
    assert [file.year for file in find_editions(data, skip=())] == [2023, 2025, 2026]


@pytest.mark.parametrize("content", [b"", bytes(100), "1|I1|A00.0|||||x".encode("utf-16")])
def test_a_broken_file_with_an_official_name_is_found(tmp_path: Path, content: bytes) -> None:
    """So that reading it is an error, and the build does not quietly take the sample instead."""
    _put(tmp_path, {"icd10gm2026_alphaidse_edvtxt_20250926.txt": content})
    _put(tmp_path, {"icd10gm2026syst_claml_20250912.xml": content})

    assert [(kind, year) for kind, year, _ in _found(tmp_path)] == [("alpha_id", 2026), ("claml", 2026)]


def test_other_classifications_in_claml_are_passed_over(tmp_path: Path) -> None:
    """OPS and ICD-10-WHO come from the same page in the same format."""
    ops = _claml(2026).replace(b"ICD-10", b"OPS")
    _put(tmp_path, {"ops2026syst_claml_20251017.xml": ops, "icd10who2019syst_claml_20180824.xml": ops})

    assert _found(tmp_path) == []


def _years(folder: Path, edition: int | None = None, today: date = TODAY) -> tuple[int, int]:
    chosen = choose_sources(folder, edition=edition, today=today)
    return chosen.alpha_id.year, chosen.claml.year


def test_the_default_is_the_newest_edition_not_after_this_year(tmp_path: Path) -> None:
    """Next year's files appear in autumn and do not hold yet; another edition is asked for by its year."""
    for year in (2024, 2025, 2026, 2027):
        (tmp_path / f"icd10gm{year}_alphaid.txt").write_bytes(ROWS)
        (tmp_path / f"icd10gm{year}_claml.xml").write_bytes(_claml(year))

    assert _years(tmp_path) == (2026, 2026)
    assert _years(tmp_path, today=date(2027, 1, 1)) == (2027, 2027)
    assert _years(tmp_path, edition=2024) == (2024, 2024)
    assert _years(tmp_path, edition=2027) == (2027, 2027)
    assert _years(tmp_path, today=date(2020, 1, 1)) == (2024, 2024)
    with pytest.raises(
        SourceError, match=r"Nothing is of edition 2019; there is Alpha-ID text 2024 \(icd10gm2024"
    ):
        _years(tmp_path, edition=2019)
    assert choose_sources(tmp_path, edition=None, today=TODAY).warnings == ()


def test_two_editions_are_allowed_and_said_in_words(tmp_path: Path) -> None:
    """The other kind gives its nearest edition; the warnings name both years and this year."""
    _put(tmp_path, {"icd10gm2023_alphaid.txt": ROWS, "a.xml": _claml(2025)})
    chosen = choose_sources(tmp_path, edition=None, today=TODAY)

    assert (chosen.alpha_id.year, chosen.claml.year) == (2023, 2025)
    assert chosen.warnings[0].startswith("Alpha-ID is of edition 2023, ClaML of edition 2025")
    assert "--edition" not in chosen.warnings[0]
    assert chosen.warnings[1:] == (
        "The edition of Alpha-ID, 2023, is not this year's (2026): codes may have changed.",
        "The edition of ClaML, 2025, is not this year's (2026): codes may have changed.",
    )
    assert _years(tmp_path, edition=2023) == (2023, 2025)
    assert _years(tmp_path, edition=2025) == (2023, 2025)


def test_the_warning_names_an_edition_of_which_both_are_there(tmp_path: Path) -> None:
    """Alpha-ID of this year beside an older pair: the user learns how to take the pair."""
    _put(tmp_path, {"icd10gm2026_alphaid.txt": ROWS, "icd10gm2025_alphaid.txt": ROWS, "a.xml": _claml(2025)})
    chosen = choose_sources(tmp_path, edition=None, today=TODAY)

    assert (chosen.alpha_id.year, chosen.claml.year) == (2026, 2025)
    assert "--edition 2025" in chosen.warnings[0]
    assert choose_sources(tmp_path, edition=2025, today=TODAY).warnings == (
        "The edition of Alpha-ID and ClaML, 2025, is not this year's (2026): codes may have changed.",
    )


def test_an_edition_of_next_year_is_warned_about(tmp_path: Path) -> None:
    """It does not hold yet."""
    _put(tmp_path, {"icd10gm2027_alphaid.txt": ROWS, "a.xml": _claml(2027)})

    assert choose_sources(tmp_path, edition=None, today=TODAY).warnings == (
        "The edition of Alpha-ID and ClaML, 2027, does not hold before 1 January 2027.",
    )


def test_the_newest_date_in_the_name_wins_then_the_extracted_file(tmp_path: Path) -> None:
    """BfArM corrects an edition by a file with a second date."""
    _put(tmp_path, {"icd10gm2022_alphaidse_edvtxt_20211001.txt": ROWS, "a.xml": _claml(2022)})
    _put(tmp_path, {"icd10gm2022_alphaidse_edvtxt_20211001_20220114.txt": ROWS})
    _zip(tmp_path / "a.zip", {"icd10gm2022_alphaidse_edvtxt_20211001_20220114.txt": ROWS})
    chosen = choose_sources(tmp_path, edition=None, today=TODAY).alpha_id

    assert (chosen.name, chosen.member) == ("icd10gm2022_alphaidse_edvtxt_20211001_20220114.txt", None)


def test_one_kind_missing_is_an_error_that_says_what_is_there_and_where_to_get_the_other(
    tmp_path: Path,
) -> None:
    """The sample never fills the gap."""
    _put(tmp_path, {"icd10gm2026_alphaid.txt": ROWS, "sample/s.xml": _claml(2026)})
    _put(tmp_path, {"sample/icd10gm2026_alphaid.txt": ROWS})

    with pytest.raises(SourceError) as caught:
        choose_sources(tmp_path, edition=None, today=TODAY)
    message = str(caught.value)
    assert message.startswith(
        "No ClaML XML was found; there is Alpha-ID text 2026 (icd10gm2026_alphaid.txt)."
    )
    assert "BfArM" in message
    assert "data/README.md" in message


def test_the_sample_is_used_only_when_nothing_official_is_there(tmp_path: Path) -> None:
    """And says so."""
    _put(tmp_path, {"sample/icd10gm2026_alphaid.txt": ROWS, "sample/s.xml": _claml(2026)})
    chosen = choose_sources(tmp_path, edition=None, today=TODAY)
    assert (chosen.alpha_id.sample, chosen.claml.sample) == (True, True)
    assert chosen.warnings[0].startswith("The small sample")

    _put(tmp_path, {"icd10gm2025_alphaid.txt": ROWS, "a.xml": _claml(2025)})
    chosen = choose_sources(tmp_path, edition=None, today=TODAY)
    assert (chosen.alpha_id.year, chosen.alpha_id.sample, chosen.claml.sample) == (2025, False, False)


def test_no_data_at_all_is_one_clear_error(tmp_path: Path) -> None:
    """An empty folder, one that is not there, half a sample, an empty list."""
    with pytest.raises(SourceError, match="holds no Alpha-ID text and no ClaML XML"):
        choose_sources(tmp_path, edition=None, today=TODAY)
    with pytest.raises(SourceError, match="is not there"):
        choose_sources(tmp_path / "gone", edition=None, today=TODAY)
    with pytest.raises(SourceError, match="there is nothing else either"):
        select_edition([], edition=None, today=TODAY)
    _put(tmp_path, {"sample/icd10gm2026_alphaid.txt": ROWS})
    with pytest.raises(SourceError, match="No ClaML XML was found"):
        choose_sources(tmp_path, edition=None, today=TODAY)


def test_a_file_that_is_gone_when_it_is_read_is_an_error(tmp_path: Path) -> None:
    """Between search and build."""
    _zip(tmp_path / "a.zip", {"icd10gm2026_alphaid.txt": ROWS})
    _put(tmp_path, {"a.xml": _claml(2026)})
    files = find_editions(tmp_path)
    _zip(tmp_path / "a.zip", {"other": b""})
    (tmp_path / "a.xml").unlink()

    for file in files:
        with pytest.raises(SourceError):
            open_source(file)
        with pytest.raises(SourceError):
            read_source(file)


@pytest.mark.full
@needs_shared
def test_the_full_folder_names_its_two_editions() -> None:
    """Alpha-ID 2023 and ClaML 2025, on purpose."""
    assert [(kind, year) for kind, year, _ in _found(SHARED / "full")] == [
        ("alpha_id", 2023),
        ("claml", 2025),
    ]
