"""Ten kinds of broken input: one clear paragraph each, the right exit code, the build before untouched."""

from __future__ import annotations

import re
import shutil
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.command import alpha_id, answer, complaint
from tests.conftest import SAMPLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALPHA_ID = "icd10gm2026_alphaidse_edvtxt_20250926.txt"
CLAML = "icd10gm2026syst_claml_20250912.xml"


@pytest.fixture(scope="module")
def published(sample_storage: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a storage with a published build, to be built into again."""
    storage = tmp_path_factory.mktemp("broken") / "storage"
    shutil.copytree(sample_storage, storage)
    return storage


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data folder with both files whole, under BfArM's names."""
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(next(SAMPLE.glob("*alphaid*.txt")), folder / ALPHA_ID)
    shutil.copy(next(SAMPLE.glob("*claml*.xml")), folder / CLAML)
    return folder


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def _empty(data: Path) -> None:
    (data / ALPHA_ID).write_bytes(b"")


def _empty_claml(data: Path) -> None:
    (data / CLAML).write_bytes(b"")


def _binary(data: Path) -> None:
    (data / ALPHA_ID).write_bytes(bytes(range(256)) * 500)


def _binary_claml(data: Path) -> None:
    (data / CLAML).write_bytes(bytes(range(256)) * 500)


def _wrong_encoding(data: Path) -> None:
    text = (data / ALPHA_ID).read_text(encoding="utf-8")
    (data / ALPHA_ID).write_bytes(text.encode("utf-16"))


def _two_encodings(data: Path) -> None:
    whole = (data / ALPHA_ID).read_bytes()
    (data / ALPHA_ID).write_bytes(
        whole.replace("Schüttellähmung".encode(), "Schüttellähmung".encode("cp1252"))
    )


def _three_fields(data: Path) -> None:
    _edit(data / ALPHA_ID, "1|I9900044|A00.0||||173|Asiatische Cholera", "1|I9900044|Asiatische Cholera")


def _cut_in_half(data: Path) -> None:
    whole = (data / CLAML).read_bytes()
    (data / CLAML).write_bytes(whole[: len(whole) // 2])


def _entity_bomb(data: Path) -> None:
    entities = '<!ENTITY a0 "Cholera ">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
    )
    _edit(data / CLAML, "<ClaML", f"<!DOCTYPE ClaML [{entities}]>\n<ClaML")
    _edit(data / CLAML, "</Label>", "&a9;</Label>")


def _missing_modifier_class(data: Path) -> None:
    text = (data / CLAML).read_text(encoding="utf-8")
    code = re.findall(r'<ValidModifierClass code="([^"]+)"', text)[0]
    (data / CLAML).write_text(
        text.replace(f'<ValidModifierClass code="{code}"', '<ValidModifierClass code=".Z"', 1),
        encoding="utf-8",
    )


def _missing_modifier(data: Path) -> None:
    text = (data / CLAML).read_text(encoding="utf-8")
    code = re.findall(r'<ModifiedBy [^>]*code="([^"]+)"', text)[0]
    (data / CLAML).write_text(
        re.sub(rf'<ModifiedBy ([^>]*)code="{code}"', r'<ModifiedBy \1code="S99Z99_9"', text, count=1),
        encoding="utf-8",
    )


def _zip_with_a_path_out_of_it(data: Path) -> None:
    with zipfile.ZipFile(data / "alphaid.zip", "w") as archive:
        archive.write(data / ALPHA_ID, f"../../{ALPHA_ID}")


def _no_data_at_all(data: Path) -> None:
    for path in data.iterdir():
        path.unlink()


def _one_kind_missing(data: Path) -> None:
    (data / CLAML).unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_empty, [ALPHA_ID, "empty"]),
        (_empty_claml, [CLAML, "empty"]),
        (_binary, [ALPHA_ID]),
        (_binary_claml, [CLAML]),
        (_wrong_encoding, [ALPHA_ID, "UTF-16"]),
        (_two_encodings, [f"{ALPHA_ID}:", "text: bytes that the encoding of the file does not have"]),
        (_three_fields, [f"{ALPHA_ID}:", "number of fields: 3 instead of 8"]),
        (_cut_in_half, [CLAML]),
        (_entity_bomb, [CLAML, "entit"]),
        (_missing_modifier_class, [CLAML, ".Z"]),
        (_missing_modifier, [CLAML, "S99Z99_9"]),
        (_zip_with_a_path_out_of_it, ["alphaid.zip", "path out of it"]),
        (_no_data_at_all, ["no Alpha-ID text and no ClaML", "BfArM"]),
        (_one_kind_missing, ["No ClaML XML", "BfArM"]),
    ],
)
def test_broken_sources_end_in_4_and_leave_the_build_before(
    published: Path, data: Path, spoil: Callable[[Path], None], words: list[str]
) -> None:
    """The paragraph names the file, the place and the fault."""
    before = {path: path.read_bytes() for path in (published / "builds").rglob("*") if path.is_file()}
    pointer = (published / "current.json").read_bytes()
    spoil(data)

    message = complaint(alpha_id("index", "build", "--data", data, "--storage", published), 4)

    for each in words:
        assert each in message
    assert len(message) < 1500
    assert {path: path.read_bytes() for path in before} == before
    assert (published / "current.json").read_bytes() == pointer
    assert list((published / "staging").iterdir()) == []


def test_the_build_before_still_answers(published: Path) -> None:
    """After all of the above."""
    assert (
        answer("suggest", "--storage", published, stdin="Asiatische Cholera")["suggestions"][0]["icd_code"]
        == "A00.0"
    )


def test_a_configured_tolerance_lets_the_build_go_on_and_counts(published: Path, data: Path) -> None:
    """One row of three fields, one tolerated."""
    _three_fields(data)
    done = alpha_id("index", "build", "--tolerance", "1", "--data", data, "--storage", published)

    assert done.returncode == 0, done.stderr.decode()
    assert "1 malformed row" in done.stderr.decode()
    build = answer("info", "--storage", published)["build"]
    assert any("1 malformed row" in warning for warning in build["warnings"])


@pytest.mark.parametrize("blocked", ["storage", "storage/assets", "storage/staging", "storage/builds"])
def test_an_unwritable_storage_ends_in_3(data: Path, tmp_path: Path, blocked: str) -> None:
    """Here a file stands where a folder must be; whoever runs the test, root included, cannot write there."""
    (tmp_path / blocked).parent.mkdir(exist_ok=True)
    (tmp_path / blocked).write_text("no folder")

    message = complaint(alpha_id("index", "build", "--data", data, "--storage", tmp_path / "storage"), 3)

    assert "cannot be written" in message or "could not be written" in message
    assert str(tmp_path / "storage") in message
    assert "right to write" in message
