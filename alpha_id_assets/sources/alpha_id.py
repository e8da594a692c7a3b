"""The Alpha-ID(-SE) text of one edition, read into the table ``alpha_id_entries``.

Holds: every layout since 2005 (``formats.md``: 8 and 7 fields, ``|`` and ``;``, UTF-8 and CP1252), recognised
from the file itself, and the faults of a row in words. Refuses: finding files, and repairing them: a row that
is not as it must be is an error, or left out and listed where a tolerance was configured.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

import polars as pl

from alpha_id_runtime.errors import SourceError

ENTRIES_SCHEMA: Final[dict[str, pl.DataType]] = {
    "line": pl.Int64(),
    "valid": pl.Boolean(),
    "alpha_id": pl.String(),
    "primary": pl.String(),
    "dagger": pl.Boolean(),
    "aster": pl.String(),
    "addon": pl.String(),
    "primary2": pl.String(),
    "orpha": pl.String(),
    "text": pl.String(),
}

_CODE = r"[A-Z][0-9]{2}(?:\.[0-9]{1,2})?"
_OWN_MARK = {"primary": "+", "star": "*", "addon": "!", "second primary": "+"}
_FIELD_OF_MARK = {"+": "primary", "*": "star", "!": "addon"}
# Name of each field with the pattern it must match as a whole. The text is anything printable with something
# in it; U+FFFD stands for bytes that could not be decoded.
_FIELDS: Final[dict[str, str]] = {
    "validity": r"[01]",
    "Alpha-ID": r"I[0-9]+",
    "primary": rf"(?:{_CODE}\+?)?",
    "star": rf"(?:{_CODE}\*)?",
    "addon": rf"(?:{_CODE}!)?",
    "second primary": rf"(?:{_CODE}\+?)?",
    "ORPHAcode": r"[0-9]*",
    "text": r"{other}*[^\s{forbidden}]{other}*",
}
_CONTROL = r"\x00-\x1f\x7f-\x9f"
_UNDECODABLE = "\ufffd"
# What UTF-8 umlauts look like when read as CP1252; neither letter occurs in a German diagnosis.
_UTF8_AS_CP1252 = "ÃÂ"
# A byte that no text holds: with it as separator, polars hands out whole lines.
_NO_SEPARATOR = "\x1f"
_SNIFFED_LINES = 1000
_QUOTED = 40
_BINARY_NULS = 0.1


@dataclass(frozen=True)
class AlphaIdEdition:
    """One Alpha-ID file as read.

    Attributes:
        name: name of the file, as given.
        rows: one row an entry, in the order of the file; schema ``ENTRIES_SCHEMA``.
        left_out: one problem a row that the tolerance let pass and that is not in ``rows``.
        encoding: ``UTF-8`` or ``CP1252``.
        separator: ``|`` or ``;``.
        fields: 8, or 7 without ORPHAcode.
    """

    name: str
    rows: pl.DataFrame
    left_out: list[str]
    encoding: str
    separator: str
    fields: int


@dataclass(frozen=True)
class _Layout:
    separator: str
    names: tuple[str, ...]
    encoding: str

    @property
    def patterns(self) -> dict[str, str]:
        """Pattern of each field, in the order of the row."""
        mojibake = _UTF8_AS_CP1252 if self.encoding == "CP1252" else ""
        forbidden = re.escape(self.separator) + _CONTROL + _UNDECODABLE + mojibake
        text = _FIELDS["text"].format(other=f"[^{forbidden}]", forbidden=forbidden)
        return {name: text if name == "text" else _FIELDS[name] for name in self.names}

    @property
    def row_pattern(self) -> str:
        """Pattern of a whole row."""
        return "^" + re.escape(self.separator).join(self.patterns.values()) + "$"


def read_alpha_id(data: bytes, name: str, *, tolerance: int = 0) -> AlphaIdEdition:
    """Read an Alpha-ID file.

    Args:
        data: the file's bytes.
        name: its name, for messages.
        tolerance: so many malformed rows are left out and listed; one more is an error.

    Raises:
        SourceError: the file is empty, binary, of another encoding or another layout, or more than
            ``tolerance`` rows are malformed; all of them are in ``problems``.
    """
    utf8, encoding = _decode(data, name)
    lines = _lines(utf8)
    layout = _layout(lines, encoding, name)
    parts = _fields(utf8, lines, layout)
    star, primary, addon, second = (pl.col(f"={n}") for n in ("star", "primary", "addon", "second primary"))
    has_dagger = primary.str.ends_with("+") | second.str.ends_with("+")
    has_code = primary.is_not_null() | (second.is_null() & (star.is_not_null() | addon.is_not_null()))
    dagger_has_star = star.is_not_null() | ~has_dagger.fill_null(value=False)
    unique = pl.col("=Alpha-ID").is_first_distinct()
    parts = parts.with_columns((pl.col("shaped") & has_code & dagger_has_star & unique).alias("good"))
    problems = [] if parts["good"].all() else _problems(parts, layout, name)
    if len(problems) > tolerance:
        raise SourceError(
            f"{name}: {len(problems)} of {parts.height} rows are malformed, tolerated are {tolerance}; get "
            f"the file anew from BfArM, or raise the tolerance to leave such rows out:",
            problems,
        )
    rows = _entries(parts.filter(pl.col("good")), layout)
    if rows.is_empty():
        raise SourceError(f"{name} holds no usable row of Alpha-ID:", problems)
    return AlphaIdEdition(name, rows, problems, encoding, layout.separator, len(layout.names))


def _decode(data: bytes, name: str) -> tuple[bytes, str]:
    """Return the file as UTF-8 without BOM, and the encoding it came in."""
    data = data.removeprefix(codecs.BOM_UTF8).removesuffix(b"\x1a")  # DOS end of file
    if not data or data.isspace():
        raise SourceError(f"{name} is empty: get the file anew from BfArM.")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{name} is encoded in UTF-16, Alpha-ID is UTF-8 (CP1252 up to 2017): convert it.")
    if data.count(0) > len(data) * _BINARY_NULS:
        raise SourceError(
            f"{name} is not text in UTF-8 or CP1252 but binary or UTF-16: put BfArM's text file here."
        )
    # Another control character instead of the one that parts nothing: the row stays malformed.
    if _NO_SEPARATOR.encode() in data:
        data = data.replace(_NO_SEPARATOR.encode(), b"\x1e")
    if _is_utf8(data):
        return data, "UTF-8"
    # One wrong byte does not make a UTF-8 file one of CP1252: the lines with non-ASCII bytes vote.
    accented = [line for line in data.splitlines() if not line.isascii()]
    if sum(map(_is_utf8, accented)) * 2 >= len(accented):
        return data.decode("utf-8", errors="replace").encode(), "UTF-8"
    return data.decode("cp1252", errors="replace").encode(), "CP1252"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _lines(utf8: bytes) -> pl.DataFrame:
    """Return the non-blank lines: ``line`` (counted from 1), ``text``."""
    lines = _read(utf8, _NO_SEPARATOR, ["text"]).with_row_index("line", offset=1)
    return lines.filter(pl.col("text").str.contains(r"\S"))


def _read(utf8: bytes, separator: str, columns: list[str]) -> pl.DataFrame:
    return pl.read_csv(
        utf8,
        has_header=False,
        separator=separator,
        quote_char=None,
        infer_schema=False,
        new_columns=columns,
    )


def _fields(utf8: bytes, lines: pl.DataFrame, layout: _Layout) -> pl.DataFrame:
    """Add whether each line is ``shaped`` as a row, and a column ``=name`` a field, null where empty."""
    columns = [f"={field}" for field in layout.names]
    lines = lines.with_columns(pl.col("text").str.contains(layout.row_pattern).alias("shaped"))
    if lines["shaped"].all() and lines["line"][-1] == lines.height:
        # Nothing is malformed or blank, so that the fast reader cannot go astray.
        return lines.hstack(_read(utf8, layout.separator, columns))
    split = pl.col("text").str.split_exact(layout.separator, len(columns) - 1)
    parts = lines.with_columns(split.alias("parts")).unnest("parts")
    parts = parts.rename({f"field_{i}": column for i, column in enumerate(columns)})
    return parts.with_columns(pl.when(pl.col(c) != "").then(pl.col(c)).alias(c) for c in columns)


def _layout(lines: pl.DataFrame, encoding: str, name: str) -> _Layout:
    """Tell separator and number of fields by what most of the first lines have."""
    head = lines["text"].head(_SNIFFED_LINES).to_list()
    for separator in "|;":  # in this order: texts may hold semicolons, never a bar
        counts = Counter(line.count(separator) + 1 for line in head)
        fields, _ = max(((n, counts[n]) for n in (8, 7)), key=lambda pair: pair[1])
        if counts[fields]:
            names = tuple(f for f in _FIELDS if fields == len(_FIELDS) or f != "ORPHAcode")
            return _Layout(separator, names, encoding)
    raise SourceError(
        f"{name} is not in the layout of Alpha-ID: no line has eight or seven fields parted by | or ; "
        f"(validity, Alpha-ID, primary, star, addon, second primary, ORPHAcode if there, text).",
        [f"{name}:{line}, fields: {_count(text)}" for line, text in lines.head(1).iter_rows()],
    )


def _count(text: str) -> str:
    return f"there are {max(text.count('|'), text.count(';')) + 1}"


def _entries(good: pl.DataFrame, layout: _Layout) -> pl.DataFrame:
    with_orpha = "ORPHAcode" in layout.names
    return good.select(
        pl.col("line").cast(pl.Int64),
        (pl.col("=validity") == "1").alias("valid"),
        pl.col("=Alpha-ID").alias("alpha_id"),
        pl.col("=primary").str.strip_suffix("+").alias("primary"),
        pl.col("=primary").str.ends_with("+").fill_null(value=False).alias("dagger"),
        pl.col("=star").str.strip_suffix("*").alias("aster"),
        pl.col("=addon").str.strip_suffix("!").alias("addon"),
        pl.col("=second primary").str.strip_suffix("+").alias("primary2"),
        (pl.col("=ORPHAcode") if with_orpha else pl.lit(None, dtype=pl.String)).alias("orpha"),
        pl.col("=text").str.strip_chars().alias("text"),
    )


def _problems(parts: pl.DataFrame, layout: _Layout, name: str) -> list[str]:
    """Return one problem a malformed row, in the order of the file, with all faults of the row."""
    patterns = {field: re.compile(pattern) for field, pattern in layout.patterns.items()}
    bad = parts.filter(~pl.col("good"))
    ids = bad["=Alpha-ID"].drop_nulls().unique()
    first = dict(
        parts.filter(pl.col("=Alpha-ID").is_in(ids.implode()))
        .group_by("=Alpha-ID")
        .agg(pl.col("line").min())
        .iter_rows()
    )
    problems = []
    for line, text in bad.select("line", "text").iter_rows():
        values = text.split(layout.separator)
        if len(values) != len(layout.names):
            faults = [f"number of fields: {len(values)} instead of {len(layout.names)}"]
        else:
            row = dict(zip(layout.names, values, strict=True))
            faults = [
                f"{field}: {_fault(field, value)}"
                for field, value in row.items()
                if not patterns[field].fullmatch(value)
            ] or _faults_of_whole(row)
            if first.get(row["Alpha-ID"], line) < line:
                faults.append(f"Alpha-ID: {row['Alpha-ID']} stands in line {first[row['Alpha-ID']]} already")
        problems.append(f"{name}:{line}, " + " and ".join(faults))
    return problems


def _fault(field: str, value: str) -> str:
    """Say what is wrong with one value."""
    shown = ascii(value) if re.search(f"[{_CONTROL}]", value) else f'"{value}"'
    shown = shown if len(shown) <= _QUOTED else shown[:_QUOTED] + "…"
    if _UNDECODABLE in value:
        fault = "bytes that the encoding of the file does not have"
    elif re.search(f"[{_CONTROL}]", value):
        fault = f"a control character in {shown}"
    elif field == "text":
        fault = "a mixture of UTF-8 and CP1252" if value.strip() else "is empty"
    elif field not in _OWN_MARK:
        wanted = {"validity": "0 or 1", "Alpha-ID": "I and digits", "ORPHAcode": "digits"}[field]
        fault = f"{shown} is not {wanted}"
    elif marked := re.fullmatch(rf"{_CODE}([+*!])", value):
        fault = f"{shown} belongs into the field {_FIELD_OF_MARK[marked[1]]}"
    elif re.fullmatch(_CODE, value):
        fault = f"{shown} lacks its mark {_OWN_MARK[field]}"
    else:
        fault = f"{shown} is not a code of ICD-10-GM"
    return fault


def _faults_of_whole(row: dict[str, str]) -> list[str]:
    """Return what is wrong with a row whose fields are each well-formed."""
    faults = [
        f"star: empty, but {field} {row[field]} has a dagger"
        for field in ("primary", "second primary")
        if row[field].endswith("+") and not row["star"]
    ]
    if not row["primary"]:
        if row["second primary"]:
            faults.append("primary: empty, but there is a second primary")
        elif not row["star"] and not row["addon"]:
            faults.append("primary: no code in any field")
    return faults
