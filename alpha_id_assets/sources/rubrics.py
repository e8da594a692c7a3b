"""Label text of ClaML rubrics: one line of text, the references beside it.

Holds: how Para, Fragment and Reference become text. Refuses: knowledge of which code a rubric belongs to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lxml import etree

from alpha_id_assets.sources.claml_head import line_of
from alpha_id_assets.sources.claml_model import Reference, Report, Rubric

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TITLE_KINDS = ("preferredLong", "preferred")
"""Kinds that name a class, the one that wins first (formats.md, rule 7)."""

_BARE_KINDS = frozenset({"preferred", "preferredLong", "inclusion", "exclusion"})
"""Kinds whose text is a wording of its own; in the others a bracketed reference is part of the sentence."""

_INLINE_TAGS = frozenset({"Term", "Reference", "IncludeDescendants"})

# Plain blanks only: no-break spaces are part of official titles.
_BLANKS = re.compile(r"[ \t\r\n]+")
_BLANK_BEFORE_POINT = re.compile(r" +(?=[,;:])")
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


class LabelReader:
    """Turns ``Rubric`` elements into rubrics.

    Args:
        lang: language of the edition; of several labels the one in it is read, else the first.
        marks: printed mark of each usage, as ``UsageKinds`` gives it ("aster": "*").
        report: where an entity reference inside a label is noted.
    """

    def __init__(self, lang: str, marks: Mapping[str, str], report: Report) -> None:
        """Keep what holds for the whole file."""
        self._lang = lang
        self._marks = marks
        self._report = report

    def read(self, element: etree._Element, owner: str) -> Rubric | None:
        """Return the rubric of one ``Rubric`` element, None where its label holds no text.

        Lists: each item of the source repeats its stem ("Koma:" "hyperosmolar"), the fragments are joined by
        a blank. References in brackets leave wordings (titles, inclusions, exclusions) and stay in sentences,
        printed with their mark; titles lose all of them. Every reference is kept beside the text.
        """
        kind = element.get("kind", "")
        label = self._label(element)
        if label is None:
            return None
        if not len(label):
            text = tidy(label.text or "")
            return Rubric(kind, text, ()) if text else None
        pieces: list[str] = []
        references: list[Reference] = []
        self._collect(label, kind, owner, pieces, references)
        text = tidy("".join(pieces))
        if references and kind in _BARE_KINDS:
            text = _BLANK_BEFORE_POINT.sub("", text)
        return Rubric(kind, text, tuple(references)) if text or references else None

    def _label(self, element: etree._Element) -> etree._Element | None:
        if len(element) == 1 and element[0].tag == "Label":
            return element[0]
        labels = element.findall("Label")
        in_lang = (label for label in labels if label.get(_LANG) == self._lang)
        return next(in_lang, labels[0] if labels else None)

    def _collect(
        self, node: etree._Element, kind: str, owner: str, pieces: list[str], references: list[Reference]
    ) -> None:
        # Depth is bounded by the parser (256), so recursion is safe.
        pieces.append(node.text or "")
        for child in node:
            tag = child.tag
            if tag == "Reference":
                # After "T10/" or "T7-" it is the other half of a wording: dropped, it would leave a stump.
                half = pieces[-1].endswith(("/", "-"))
                pieces.append(self._reference(child, kind, references, inline=half))
            elif tag is etree.Entity:
                what = f"rubric {kind} holds the entity {child.text}, and entities are never expanded"
                self._report.error(line_of(child), owner, what)
            elif isinstance(tag, str):
                edge = "" if tag in _INLINE_TAGS else " "
                pieces.append(edge)
                self._collect(child, kind, owner, pieces, references)
                pieces.append(edge)
            pieces.append(child.tail or "")

    def _reference(
        self, element: etree._Element, kind: str, references: list[Reference], *, inline: bool
    ) -> str:
        usage = element.get("usage")
        text = tidy("".join(str(part) for part in element.itertext()))
        references.append(Reference(element.get("code"), usage, text))
        printed = text + self._marks.get(usage or "", "")
        if inline:
            return printed
        if kind in TITLE_KINDS:
            return ""
        if element.get("class") != "in brackets":
            return printed
        return "" if kind in _BARE_KINDS else f" ({printed})"


def tidy(text: str) -> str:
    """Return ``text`` with runs of plain blanks and line ends as one blank; no-break spaces stay."""
    # Most labels are tidy already; asking is cheaper than substituting.
    if "  " in text or "\n" in text or "\t" in text or "\r" in text:
        text = _BLANKS.sub(" ", text)
    return text.strip(" ")


def title_of(rubrics: Sequence[Rubric]) -> str:
    """Return the title that the rubrics give, empty if none does: ``preferredLong``, else ``preferred``."""
    for kind in TITLE_KINDS:
        for rubric in rubrics:
            if rubric.kind == kind and rubric.text:
                return rubric.text
    return ""
