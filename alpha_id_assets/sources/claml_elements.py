"""The elements of a ClaML file, read as a stream: Class, Modifier and ModifierClass become plain tuples.

Holds: the streaming loop, metas of all editions, faults inside one element. Refuses: how elements relate to
each other, which ``expansion.py`` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, cast

from lxml import etree

from alpha_id_assets.sources.claml_head import SAFE, Head, events_of, line_of, syntax_error
from alpha_id_assets.sources.claml_model import (
    AGE_VARIANTS,
    EXCLUDE,
    META_ALIASES,
    META_INDEX,
    META_NAMES,
    USAGES,
    ClassElement,
    Metas,
    ModifiedBy,
    ModifierClassElement,
    ModifierElement,
    Report,
    Rubric,
    valid_meta,
)
from alpha_id_assets.sources.rubrics import LabelReader, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from alpha_id_assets.sources.expansion import Modifiers

_META_LIST = list(META_NAMES)
_META_ATTRIBUTES = cast("Callable[[Any], list[str]]", etree.XPath("Meta/@*", smart_strings=False))
"""Name and value in turn; written the other way round they match nothing and are read one by one."""
_CHUNK = 64 * 1024


class ElementReader:
    """Collects the elements of one file as they stream by: ``classes``, ``modifiers``, ``modifier_classes``.

    Faults go to ``report``; only XML that is not well-formed raises at once.
    """

    def __init__(self, head: Head, report: Report) -> None:
        """Begin where ``read_head`` ended."""
        self._head = head
        self._report = report
        self._labels = LabelReader(head.lang, head.marks, report)
        self.classes: list[ClassElement] = []
        self.modifiers: dict[str, ModifierElement] = {}
        self.modifier_classes: list[ModifierClassElement] = []
        self._unknown_metas: set[str] = set()
        self._sound_metas: dict[Metas, Metas] = {}

    def read(self, stream: BinaryIO) -> None:
        """Parse the whole stream; each element is released as soon as it is read."""
        takers: dict[str, Callable[[etree._Element, str], None]] = {
            "Class": self._take_class,
            "ModifierClass": self._take_modifier_class,
            "Modifier": self._take_modifier,
        }
        parser = etree.XMLPullParser(events=("end",), tag=tuple(takers), **SAFE)
        chunk = self._head.read
        last = ""
        try:
            while chunk:
                parser.feed(chunk)
                for _, element in events_of(parser):
                    tag = str(element.tag)
                    code = element.get("code")
                    last = f"{tag} {code}"
                    if code:
                        takers[tag](element, code)
                    else:
                        self._report.error(line_of(element), tag, "has no code")
                    _release(element)
                chunk = stream.read(_CHUNK)
            parser.close()
        except etree.XMLSyntaxError as error:
            raise syntax_error(error, self._report.name, seen_root=True, after=last) from error

    def modifier_table(self) -> Modifiers:
        """Return the modifier classes by modifier; one without the other is an error."""
        table: Modifiers = {code: {} for code in self.modifiers}
        for element in self.modifier_classes:
            owner = f"ModifierClass {element.code}"
            siblings = table.get(element.modifier)
            if siblings is None:
                self._report.error(element.line, owner, f"its Modifier {element.modifier!r} is not there")
            elif element.code in siblings:
                first = siblings[element.code].line
                what = f"stands twice in Modifier {element.modifier}, first in line {first}"
                self._report.error(element.line, owner, what)
            else:
                siblings[element.code] = element
        for modifier in self.modifiers.values():
            for code in modifier.subclasses:
                if code not in table[modifier.code]:
                    what = f"SubClass {code} has no ModifierClass"
                    self._report.error(modifier.line, f"Modifier {modifier.code}", what)
        return table

    def _take_class(self, element: etree._Element, code: str) -> None:
        # One call for all metas: taken child by child they would cost more than parsing the file.
        metas = _META_ATTRIBUTES(element)
        usual = metas[::2] == _META_LIST
        if not usual:
            pairs = [(each.get("name"), each.get("value")) for each in element.iterchildren("Meta")]
            metas = [text or "" for pair in pairs for text in pair]
        sliceable: Any = element  # unknown to the stubs
        children = sliceable[len(_META_LIST) :] if usual else sliceable[:]
        parents: list[str] = []
        subclasses: list[str] = []
        modified_by: list[ModifiedBy] = []
        rubrics: list[Rubric] = []
        owner = f"Class {code}"
        for child in children:
            tag = child.tag
            if tag == "Rubric":
                rubric = self._labels.read(child, owner)
                if rubric is not None:
                    rubrics.append(rubric)
            elif tag == "SubClass":
                subclasses.append(child.get("code") or "")
            elif tag == "SuperClass":
                parents.append(child.get("code") or "")
            elif tag == "ModifiedBy":
                valid = tuple(each.get("code") or "" for each in child.iterchildren("ValidModifierClass"))
                modified_by.append(ModifiedBy(child.get("code") or "", valid, line_of(child)))
            elif tag == "Meta" and usual:
                # Then something else was skipped in its place.
                self._report.error(line_of(child), owner, "a Meta stands behind other elements")
        line = line_of(element)
        kind = element.get("kind") or ""
        if len(parents) > 1:
            self._report.error(line, owner, f"names {len(parents)} SuperClasses, one is expected")
        self.classes.append(
            ClassElement(
                code,
                kind,
                self._usage(element, line, owner),
                self._title(rubrics, line, owner),
                parents[0] if parents else None,
                tuple(subclasses),
                tuple(modified_by),
                self._metas(metas[::2], metas[1::2], line, owner) if kind == "category" else None,
                tuple(rubrics),
                line,
            )
        )

    def _take_modifier_class(self, element: etree._Element, code: str) -> None:
        line = line_of(element)
        owner = f"ModifierClass {code}"
        overrides: dict[int, str] = {}
        excluded: set[tuple[str, str]] = set()
        for meta in element.iterchildren("Meta"):
            name, value = meta.get("name") or "", meta.get("value") or ""
            known = META_ALIASES.get(name, name)
            if name == EXCLUDE:
                modifier, blank, preceding = value.partition(" ")
                if not (modifier and blank and preceding) or " " in preceding:
                    what = f"Meta {EXCLUDE} {value!r} is not a modifier, one blank and a code"
                    self._report.error(line, owner, what)
                excluded.add((modifier, preceding))
            elif known in META_INDEX:
                if not valid_meta(known, value):
                    self._report.error(line, owner, f"Meta {name} cannot be {value!r}")
                overrides[META_INDEX[known]] = value
            elif name not in AGE_VARIANTS:
                self._unknown_meta(name, line, owner)
        rubrics = self._rubrics(element, owner)
        self.modifier_classes.append(
            ModifierClassElement(
                code,
                element.get("modifier") or "",
                self._usage(element, line, owner),
                self._title(rubrics, line, owner),
                overrides,
                frozenset(excluded),
                rubrics,
                line,
            )
        )

    def _take_modifier(self, element: etree._Element, code: str) -> None:
        line = line_of(element)
        if code in self.modifiers:
            what = f"stands twice, first in line {self.modifiers[code].line}"
            self._report.error(line, f"Modifier {code}", what)
            return
        subclasses = tuple(each.get("code") or "" for each in element.iterchildren("SubClass"))
        self.modifiers[code] = ModifierElement(code, subclasses, line)

    def _rubrics(self, element: etree._Element, owner: str) -> tuple[Rubric, ...]:
        read = (self._labels.read(child, owner) for child in element.iterchildren("Rubric"))
        return tuple(rubric for rubric in read if rubric is not None)

    def _usage(self, element: etree._Element, line: int, owner: str) -> str | None:
        usage = element.get("usage")
        if usage is not None and usage not in USAGES:
            self._report.error(line, owner, f"usage {usage!r} is not dagger, aster or optional")
        return usage

    def _title(self, rubrics: Sequence[Rubric], line: int, owner: str) -> str:
        title = title_of(rubrics)
        if not title:
            self._report.error(line, owner, "has no title (Rubric preferred)")
        return title

    def _metas(self, names: list[str], values: list[str], line: int, owner: str) -> Metas | None:
        """Return the 16 metas of a category, None (and an error) if one is missing or cannot be."""
        ordered = tuple(values)
        if names != _META_LIST:
            found = dict(zip(names, values, strict=True))
            if len(found) < len(names):
                self._report.error(line, owner, "a Meta stands twice")
            ordered = self._by_name(found, line, owner)
        # Whole editions have some two thousand distinct sets: each is checked, and kept in memory, once.
        sound = self._sound_metas.get(ordered)
        if sound is None and ordered:
            faults = _meta_faults(ordered)
            for what in faults:
                self._report.error(line, owner, what)
            if not faults:
                sound = self._sound_metas[ordered] = ordered
        return sound

    def _by_name(self, found: dict[str, str], line: int, owner: str) -> Metas:
        """Return ``found`` in the usual order, names of old editions understood; empty if any is missing."""
        known: dict[str, str] = {}
        for name, value in found.items():
            if name in META_INDEX:
                known[name] = value
            elif name in META_ALIASES:
                known.setdefault(META_ALIASES[name], value)
            elif name not in AGE_VARIANTS:
                self._unknown_meta(name, line, owner)
        for variant, name in AGE_VARIANTS.items():
            # The variant counts where the plain one is missing or in whole years without their letter.
            if variant in found and not valid_meta(name, known.get(name, "")):
                known[name] = found[variant]
        missing = [name for name in META_NAMES if name not in known]
        if missing:
            self._report.error(line, owner, f"lacks Meta {', '.join(missing)}")
            return ()
        return tuple(known[name] for name in META_NAMES)

    def _unknown_meta(self, name: str, line: int, owner: str) -> None:
        if name not in self._unknown_metas:
            self._unknown_metas.add(name)
            self._report.warn(line, owner, f"Meta {name!r} is unknown and was left out, here and further on")


def _meta_faults(metas: Metas) -> list[str]:
    """Return what cannot be in the 16 metas."""
    pairs = zip(META_NAMES, metas, strict=True)
    return [f"Meta {name} cannot be {value!r}" for name, value in pairs if not valid_meta(name, value)]


def _release(element: etree._Element) -> None:
    """Free an element that has been read, and whatever stands before it."""
    element.clear()
    parent = element.getparent()
    if parent is not None:
        while element.getprevious() is not None:
            del parent[0]
