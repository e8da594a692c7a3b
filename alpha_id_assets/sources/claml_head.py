"""The head of a ClaML file: is it one, of which edition, and is it safe to read.

Holds: the parser's settings, ``read_head`` for the reader, ``sniff_claml`` for the search of data folders.
Refuses: everything after the header. Entities are refused altogether: no official edition declares any.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from lxml import etree

from alpha_id_runtime.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD_BYTES = 64 * 1024
"""The header of an edition takes about 2 KiB; what has not shown its title by here is none."""

SAFE: dict[str, Any] = {
    "resolve_entities": False,
    "load_dtd": False,
    "no_network": True,
    "huge_tree": False,
    "dtd_validation": False,
    "attribute_defaults": False,
    "remove_comments": True,
    "remove_pis": True,
}
"""No entity is expanded, no DTD or other file opened; depth and text keep the parser's limits."""

_BODY_TAGS = frozenset({"Modifier", "ModifierClass", "Class"})
_YEAR = re.compile(r"(?:19|20)\d{2}")
_DATE = re.compile(r"((?:19|20)\d{2})-?(\d{2})?")
_RAW_TITLE = re.compile(rb"<ClaML\b.*?<Title\b([^>]*)>", re.DOTALL)
_RAW_ATTRIBUTE = re.compile(rb"""([A-Za-z]+)\s*=\s*["']([^"']*)["']""")
_MIDYEAR = 7
_LINE_LIMIT = 65535


class Head(NamedTuple):
    """What the header says. ``read`` is the bytes taken from the stream to learn it."""

    year: int
    date: str
    lang: str
    version: str
    marks: dict[str, str]
    read: bytes


def read_head(stream: BinaryIO, name: str) -> Head:
    """Read the header of the ClaML file ``stream``; ``name`` is its name in messages.

    Raises SourceError for an empty file, one that is no XML, no ClaML, of another classification or language,
    and for one that declares entities.
    """
    data = _take(stream)
    if not data.strip():
        raise SourceError(f"{name} is empty; put the file in place again as BfArM publishes it.")
    root: etree._Element | None = None
    try:
        for event, element in _events(data):
            if root is None:
                root = element
                _check_root(root, name)
            if event == "start" and element.tag in _BODY_TAGS:
                break
    except etree.XMLSyntaxError as error:
        raise syntax_error(error, name, seen_root=root is not None) from error
    if root is None:
        raise SourceError(f"{name} does not begin as XML: no element in its first {HEAD_BYTES} bytes.")
    return _head(root, name, data)


def sniff_claml(stream: BinaryIO) -> int | None:
    """Return the edition year if ``stream`` is a ClaML file of ICD-10-GM, else None. Never raises.

    Reads at most 64 KiB from where the stream stands and does not rewind it. A file that is broken or unsafe
    but has an ICD-10 title in its head still counts as one, so that reading it can say what is wrong.
    """
    try:
        return _sniff(_take(stream))
    except Exception:  # noqa: BLE001 - a search over unknown files (bad ZIP members too) must go on
        return None


def syntax_error(error: etree.XMLSyntaxError, name: str, *, seen_root: bool, after: str = "") -> SourceError:
    """Return the SourceError for what the parser stumbled over; ``after`` names the last whole element."""
    what = (error.msg or "unknown error").removesuffix(".")
    place = f"{name}:{error.lineno or 1}"
    if "entit" in what.lower():
        return SourceError(f"{place}: the file uses entities, which are never expanded ({what}).")
    if not seen_root:
        return SourceError(f"{place}: the file is no XML ({what}); a ClaML edition was expected here.")
    behind = f" after {after}" if after else " in the header"
    return SourceError(
        f"{place}: the XML breaks off or is damaged{behind} ({what}); nothing was taken from it, put the "
        "file in place again as BfArM publishes it."
    )


def events_of(parser: etree.XMLPullParser) -> Iterator[tuple[str, etree._Element]]:
    """Return the events the parser has ready; typed, as only events of elements are ever asked for."""
    events: Iterator[tuple[str, Any]] = parser.read_events()
    return events


def line_of(element: etree._Element) -> int:
    """Return the line of an element's start tag.

    Past line 65535 the parser knows only where the text after the tag ends: its line ends are taken off.
    """
    line = _sourceline(element) or 1
    if line >= _LINE_LIMIT:
        line -= (element.text or element.tail or "").count("\n")
    return line


def _sourceline(element: etree._Element) -> int | None:
    # The stubs know this property as an ellipsis.
    return cast("int | None", element.sourceline)


def _take(stream: BinaryIO) -> bytes:
    """Return the first ``HEAD_BYTES`` bytes; a stream may hand them out in smaller parts."""
    parts: list[bytes] = []
    missing = HEAD_BYTES
    while missing > 0 and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _events(data: bytes) -> Iterator[tuple[str, etree._Element]]:
    """Yield start and end events, feeding tag by tag so that a fault further on does not hide the head."""
    parser = etree.XMLPullParser(events=("start", "end"), **SAFE)
    for part in re.findall(rb"[^>]*>|[^>]+$", data):
        parser.feed(part)
        yield from events_of(parser)


def _check_root(root: etree._Element, name: str) -> None:
    place = f"{name}:{line_of(root)}"
    if root.tag != "ClaML":
        raise SourceError(
            f"{place}: the root element is {root.tag}, not ClaML; this is no edition of ICD-10-GM."
        )
    # The stubs do not know what a DTD offers.
    dtd: Any = root.getroottree().docinfo.internalDTD
    declared = [entity.name for entity in dtd.iterentities()] if dtd is not None else []
    if declared:
        raise SourceError(
            f"{place}: the DOCTYPE declares entities ({declared[0]}); no official edition does, and they are "
            "never expanded. Remove the file, or put the official one in its place."
        )


def _head(root: etree._Element, name: str, data: bytes) -> Head:
    title = root.find("Title")
    place = f"{name}:{line_of(root)}"
    if title is None:
        raise SourceError(f"{place}: the ClaML header has no Title, so its edition is unknown.")
    year = _edition(title.get("name", ""), title.get("version", ""), title.get("date", ""))
    metas = {meta.get("name"): meta.get("value") or "" for meta in root.iterchildren("Meta")}
    lang = metas.get("lang", "")
    if year is None or not lang.lower().startswith("de"):
        raise SourceError(
            f"{name}:{line_of(title)}, Title: name {title.get('name')!r}, version {title.get('version')!r}, "
            f"lang {lang!r} is not an edition of ICD-10-GM; expected are a name that begins with ICD-10, the "
            "year as version, lang de."
        )
    marks = {kind.get("name") or "": kind.get("mark") or "" for kind in root.iterfind("UsageKinds/UsageKind")}
    return Head(year, title.get("date", ""), lang, root.get("version", ""), marks, data)


def _edition(name: str, version: str, date: str) -> int | None:
    """Return the edition year of a Title: its version, else its date (files appear in the autumn before)."""
    if not name.upper().startswith("ICD-10") or "WHO" in name.upper():
        return None
    if found := _YEAR.search(version):
        return int(found.group())
    if found := _DATE.match(date):
        return int(found.group(1)) + (int(found.group(2) or 1) >= _MIDYEAR)
    return None


def _sniff(data: bytes) -> int | None:
    root: etree._Element | None = None
    try:
        for event, element in _events(data):
            root = element if root is None else root
            if root.tag != "ClaML":
                return None
            if event == "end" and element.tag == "Title":
                return _edition(element.get("name", ""), element.get("version", ""), element.get("date", ""))
    except etree.XMLSyntaxError:
        # Broken before its Title (wrong encoding, a bomb): look at the plain bytes.
        if found := _RAW_TITLE.search(data):
            raw = {
                key.decode(): value.decode("latin-1") for key, value in _RAW_ATTRIBUTE.findall(found.group(1))
            }
            return _edition(raw.get("name", ""), raw.get("version", ""), raw.get("date", ""))
    return None
