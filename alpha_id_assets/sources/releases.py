"""Which editions lie in the data folder, and which of them a build takes.

Holds: the search for Alpha-ID texts and ClaML files, extracted or in BfArM's ZIP, recognised by what is in
them; the choice of an edition; reading their bytes. Refuses: parsing them, extracting anything to disk,
following links out of the folder, and mixing the sample with official files.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from alpha_id_assets.sources.claml import sniff_claml
from alpha_id_runtime.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import date

Kind = Literal["alpha_id", "claml"]

SAMPLE_FOLDER = "sample"
NOT_SEARCHED = (SAMPLE_FOLDER, "gold")
MAX_UNPACKED = 500 * 1024**2
_RATIO_COUNTS_FROM = 50 * 1024**2
MAX_RATIO = 100  # ClaML, the most compressible of the official files, has about 20
_HEAD = 64 * 1024
_HEAD_LINES = 20
_NAMES: dict[Kind, str] = {"alpha_id": "Alpha-ID text", "claml": "ClaML XML"}
WHERE_TO_GET = (
    "BfArM offers both free of charge on its download page (bfarm.de, Kodiersysteme, Downloads: Alpha-ID-SE "
    "EDV-Fassung TXT and ICD-10-GM Systematik ClaML/XML); put the ZIP files as they are into the data folder "
    "(see data/README.md; links out of the folder are not followed)."
)

_ROW = re.compile(r"(?:\xef\xbb\xbf)?[01]([|;])I[0-9]+\1")
_ALPHA_ID_NAME = re.compile(r"alpha[-_ ]?id.*edv.*\.(?:txt|csv|asc)$", re.IGNORECASE)
_CLAML_NAME = re.compile(r"icd[-_ ]?10(?!.*who).*claml.*\.xml$", re.IGNORECASE)  # nor OPS
_README_NAME = re.compile(r"read_?me|lies_?mich|lizenz|licen[cs]e|info", re.IGNORECASE)
_EDITION = re.compile(r"icd[-_ ]?10(?:[-_ ]?(?:gm|who))?[-_ ]?(20\d\d)(?!\d)", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(20\d\d)(?!\d)")
_DATE = re.compile(r"(?<!\d)(20\d\d)(-?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?!\d)")
_AUTUMN = 7
# What zipfile raises on a damaged, encrypted or exotic member.
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


@dataclass(frozen=True)
class SourceFile:
    """One source file found.

    Attributes:
        kind: what it holds.
        year: its edition.
        path: the file, or the ZIP that holds it.
        member: its path inside the ZIP; None if it lies there extracted.
        name: its own file name.
        size: bytes, unpacked.
        sample: it belongs to the sample that ships.
    """

    kind: Kind
    year: int
    path: Path
    member: str | None
    name: str
    size: int
    sample: bool = False

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the unpacked bytes; read on first use."""
        return hashlib.sha256(read_source(self)).hexdigest()


@dataclass(frozen=True)
class Selection:
    """The two files a build is made of, and what a user must know about them, in words.

    ``year_warnings`` are those of ``warnings`` that hold in this year only.
    """

    alpha_id: SourceFile
    claml: SourceFile
    warnings: tuple[str, ...]
    year_warnings: tuple[str, ...] = ()


def choose_sources(data_dir: Path, *, edition: int | None, today: date) -> Selection:
    """Return the files of a build: the official ones in ``data_dir``, else those of its sample.

    Raises:
        SourceError: see ``find_editions`` and ``select_edition``.
    """
    files = find_editions(data_dir)
    sample = data_dir / SAMPLE_FOLDER
    if not files and sample.is_dir():
        files = [replace(file, sample=True) for file in find_editions(sample)]
    if not files:
        raise SourceError(f"{data_dir} holds no Alpha-ID text and no ClaML XML. {WHERE_TO_GET}")
    return select_edition(files, edition=edition, today=today)


def select_edition(files: list[SourceFile], *, edition: int | None, today: date) -> Selection:
    """Choose one Alpha-ID and one ClaML file.

    Without ``edition``: of each kind the newest whose year is not after today's. With it: the file of that
    year; a kind that lacks it gives its nearest one, the newest before if there is one. Among several of one
    year the newest date in the name wins, then the extracted file.

    Raises:
        SourceError: one of both kinds is missing, or nothing is of ``edition``.
    """
    if edition is not None and all(file.year != edition for file in files):
        raise SourceError(f"Nothing is of edition {edition}; there is {_listed(files)}. {WHERE_TO_GET}")
    wanted = today.year if edition is None else edition
    chosen: dict[Kind, SourceFile] = {}
    for kind, words in _NAMES.items():
        of_kind = [file for file in files if file.kind == kind]
        if not of_kind:
            there = f"there is {_listed(files)}" if files else "there is nothing else either"
            raise SourceError(f"No {words} was found; {there}. {WHERE_TO_GET}")
        years = {file.year for file in of_kind}
        year = max((y for y in years if y <= wanted), default=min(years))
        chosen[kind] = max((file for file in of_kind if file.year == year), key=_rank)
    alpha_id, claml = chosen["alpha_id"], chosen["claml"]
    of_year = tuple(_year_warnings(alpha_id, claml, today))
    return Selection(alpha_id, claml, (*_warnings(alpha_id, claml, files), *of_year), of_year)


def _rank(file: SourceFile) -> tuple[str, bool, str, str]:
    dates = _DATE.findall(file.name) or _DATE.findall(file.path.name)
    newest = max((f"{year}{month}{day}" for year, _, month, day in dates), default="")
    return newest, file.member is None, file.name, str(file.path)


def _listed(files: list[SourceFile]) -> str:
    named = sorted({f"{_NAMES[file.kind]} {file.year} ({file.name})" for file in files})
    return ", ".join(named)


def _warnings(alpha_id: SourceFile, claml: SourceFile, files: list[SourceFile]) -> Iterator[str]:
    if alpha_id.sample:
        yield "The small sample that ships is used, not the official files: good for a trial, not for coding."
    if alpha_id.year != claml.year:
        years = [{f.year for f in files if f.kind == kind} for kind in _NAMES]
        both = sorted(years[0] & years[1])
        hint = f" Both are there for {both[-1]}: --edition {both[-1]}." if both else ""
        yield (
            f"Alpha-ID is of edition {alpha_id.year}, ClaML of edition {claml.year}: a phrase whose code was "
            f"subdivided stands for the codes below it, one whose code is not there is left out.{hint}"
        )


def _year_warnings(alpha_id: SourceFile, claml: SourceFile, today: date) -> Iterator[str]:
    for year in sorted({alpha_id.year, claml.year}):
        of = " and ".join(w for f, w in ((alpha_id, "Alpha-ID"), (claml, "ClaML")) if f.year == year)
        if year < today.year:
            yield f"The edition of {of}, {year}, is not this year's ({today.year}): codes may have changed."
        elif year > today.year:
            yield f"The edition of {of}, {year}, does not hold before 1 January {year}."


def find_editions(data_dir: Path, *, skip: Collection[str] = NOT_SEARCHED) -> list[SourceFile]:
    """Return every Alpha-ID text and ClaML XML below a folder, sorted by kind, year and place.

    Recognised by their first lines; a file whose name says what it is counts as well, so that a broken one is
    an error rather than overlooked. Links and hidden files are passed over.

    Args:
        data_dir: the folder.
        skip: folders right below it that are not searched.

    Raises:
        SourceError: the folder cannot be read, a ZIP is damaged, unsafe or too large unpacked, or a file
            tells no edition.
    """
    if not data_dir.is_dir():
        raise SourceError(
            f"The data folder {data_dir} is not there: create it or name another. {WHERE_TO_GET}"
        )
    found: list[SourceFile] = []
    try:
        for path in _files(data_dir, skip):
            if path.suffix.lower() == ".zip":
                found.extend(_in_zip(path, data_dir))
            else:
                with path.open("rb") as stream:
                    file = _recognise(stream, path, None, path.stat().st_size, data_dir)
                found.extend([file] if file else [])
    except OSError as error:
        raise SourceError(f"{error.filename or data_dir} cannot be read: {error.strerror}.") from error
    return sorted(found, key=lambda file: (file.kind, file.year, str(file.path), file.member or ""))


def _files(data_dir: Path, skip: Collection[str]) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise error

    for folder, folders, names in os.walk(data_dir, onerror=fail, followlinks=False):
        here = Path(folder)
        at_top = here == data_dir
        folders[:] = sorted(f for f in folders if not _is_noise(f) and not (at_top and f in skip))
        for name in sorted(names):
            path = here / name
            if not _is_noise(name) and not path.is_symlink() and path.is_file():
                yield path


def _is_noise(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _in_zip(path: Path, data_dir: Path) -> Iterator[SourceFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            _check_zip(archive.infolist(), path)
            for info in archive.infolist():
                parts = PurePosixPath(info.filename).parts
                if info.is_dir() or any(map(_is_noise, parts)):
                    continue
                with archive.open(info) as stream:
                    file = _recognise(cast("BinaryIO", stream), path, info.filename, info.file_size, data_dir)
                if file:
                    yield file
    except _ZIP_ERRORS as error:
        raise _damaged(path, error) from error


def _check_zip(infos: list[zipfile.ZipInfo], path: Path) -> None:
    """Refuse paths out of the archive and archives that unpack to far more than any edition."""
    for info in infos:
        parts = info.filename.replace("\\", "/").split("/")
        if ".." in parts or not parts[0] or re.match(r"[A-Za-z]:", parts[0]):
            raise SourceError(
                f"{path} holds a path out of it, {info.filename!r}: it is not BfArM's, remove it."
            )
    unpacked = sum(info.file_size for info in infos)
    packed = sum(info.compress_size for info in infos)
    bloated = unpacked > _RATIO_COUNTS_FROM and unpacked > MAX_RATIO * packed
    if unpacked > MAX_UNPACKED or bloated:
        raise SourceError(
            f"{path} would unpack from {packed:,} to {unpacked:,} bytes, far more than an edition has "
            f"({MAX_UNPACKED:,} bytes and {MAX_RATIO} times are allowed): remove it from the data folder."
        )


def _damaged(path: Path, error: Exception) -> SourceError:
    return SourceError(f"{path} is a damaged or protected ZIP ({error}): download it anew from BfArM.")


def _recognise(
    stream: BinaryIO, path: Path, member: str | None, size: int, data_dir: Path
) -> SourceFile | None:
    """Return what a file is, None if it is neither."""
    name = PurePosixPath(member).name if member else path.name
    head = stream.read(_HEAD)
    by_name = not _README_NAME.search(name)
    kind: Kind
    year = None
    if head.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"<"):
        stream.seek(0)
        year = sniff_claml(stream)
    if year is not None or (by_name and _CLAML_NAME.search(name)):
        kind = "claml"
    elif _has_rows(head) or (by_name and _ALPHA_ID_NAME.search(name)):
        kind = "alpha_id"
    else:
        return None
    if year is None:
        year = _year_of(name, path, data_dir)
    return SourceFile(kind, year, path, member, name, size)


def _has_rows(head: bytes) -> bool:
    """Tell whether at least half of the first lines begin like a row of Alpha-ID."""
    lines = [line for line in head.decode("latin-1").splitlines() if line.strip()][:_HEAD_LINES]
    return bool(lines) and sum(bool(_ROW.match(line)) for line in lines) * 2 >= len(lines)


def _year_of(name: str, path: Path, data_dir: Path) -> int:
    """Read the edition from the file's name, else from the ZIP's or the folders'.

    A name with nothing but a date of issue names the edition of the year after: they appear in autumn.
    """
    names = [name, path.name, *(folder.name for folder in path.relative_to(data_dir).parents if folder.name)]
    for text in names:
        if match := _EDITION.search(text) or _YEAR.search(_DATE.sub("", text)):
            return int(match[1])
    for text in names:
        if match := _DATE.search(text):
            return int(match[1]) + (int(match[3]) >= _AUTUMN)
    raise SourceError(
        f"{path}: neither the content nor the name of {name} tells its edition; name it as BfArM does, for "
        f"instance icd10gm2026_alphaidse_edvtxt.txt or icd10gm2026syst_claml.xml."
    )


def read_source(file: SourceFile) -> bytes:
    """Return the unpacked bytes of a file.

    Raises:
        SourceError: it is gone, unreadable or damaged.
    """
    try:
        if file.member is None:
            return file.path.read_bytes()
        with zipfile.ZipFile(file.path) as archive:
            _check_zip(archive.infolist(), file.path)
            return archive.read(file.member)
    except (*_ZIP_ERRORS, KeyError) as error:
        raise _damaged(file.path, error) from error
    except OSError as error:
        raise SourceError(f"{file.path} cannot be read: {error.strerror}.") from error


def open_source(file: SourceFile) -> BinaryIO:
    """Return a stream over the unpacked bytes, to be closed by the caller.

    Raises:
        SourceError: it is gone, unreadable or damaged.
    """
    if file.member is not None:
        return io.BytesIO(read_source(file))
    try:
        return file.path.open("rb")
    except OSError as error:
        raise SourceError(f"{file.path} cannot be read: {error.strerror}.") from error
