"""Modifier expansion: the codes that exist only by combining a class with modifier classes.

Holds: the seven rules of formats.md, over plain tuples; the order and the hierarchy of the result. Refuses:
XML and frames.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from alpha_id_assets.sources.claml_model import META_INDEX, ClassElement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from alpha_id_assets.sources.claml_model import (
        Metas,
        ModifiedBy,
        ModifierClassElement,
        Report,
    )

Modifiers = dict[str, dict[str, "ModifierClassElement"]]
"""Modifier code to its modifier classes by code, both in the order of the file."""

_PARA295 = META_INDEX["Para295"]
_PARA301 = META_INDEX["Para301"]
_FOUR_CHARACTERS = len("E11.0")
_ROLE_OF_USAGE = {"aster": "O", "optional": "Z"}
_CODE_SHAPES = {
    "category": re.compile(r"[A-Z]\d\d(?:\.\d{1,2})?"),
    "block": re.compile(r"[A-Z]\d\d-[A-Z]\d\d"),
    "chapter": re.compile("[IVXL]+"),
}


class Code(NamedTuple):
    """One row of the code table, in classification order.

    ``chapter`` is the Roman numeral, ``group`` the innermost block (a block's own code on a block, None on a
    chapter); ``metas`` are those of ``element`` as they hold in this place.
    """

    element: ClassElement
    chapter: str
    group: str | None
    terminal: bool
    metas: Metas | None


def expand(classes: Sequence[ClassElement], modifiers: Modifiers, report: Report) -> list[Code]:
    """Return all codes of the edition, depth first: chapters, blocks, classes and combined codes.

    Faults (a modifier or modifier class that is not there, a code twice, a parent that is not there) are
    noted in ``report`` as errors, a SubClass without a class as a warning; the result is then incomplete.
    """
    nodes = _explicit(classes, report)
    _Expander(nodes, modifiers, report).run()
    for element in classes:
        for code in element.subclasses:
            if code not in nodes:
                report.warn(element.line, f"Class {element.code}", f"SubClass {code} is not there")
    return _in_order(nodes, report)


def _explicit(classes: Iterable[ClassElement], report: Report) -> dict[str, ClassElement]:
    nodes: dict[str, ClassElement] = {}
    for element in classes:
        code, kind = element.code, element.kind
        shape = _CODE_SHAPES.get(kind)
        if shape is None:
            report.error(element.line, f"Class {code}", f"kind {kind!r} is not chapter, block or category")
        elif shape.fullmatch(code) is None:
            report.error(element.line, f"Class {code}", f"{code!r} is not the code of a {kind}")
        first = nodes.setdefault(code, element)
        if first is not element:
            report.error(element.line, f"Class {code}", f"code stands twice, first in line {first.line}")
    return nodes


class _Expander:
    """Adds the combined codes to ``nodes`` (rules 1 to 4, and 5: an explicit class wins)."""

    def __init__(self, nodes: dict[str, ClassElement], modifiers: Modifiers, report: Report) -> None:
        self._nodes = nodes
        self._modifiers = modifiers
        self._report = report

    def run(self) -> None:
        for element in [each for each in self._nodes.values() if each.modified_by]:
            if element.kind != "category":
                what = f"ModifiedBy on a {element.kind}; only a category can be modified"
                self._report.error(element.line, f"Class {element.code}", what)
                continue
            self._combine(element, [self._position(element, each) for each in element.modified_by], ())

    def _position(self, element: ClassElement, modified_by: ModifiedBy) -> list[ModifierClassElement]:
        """Return the modifier classes one position may take: those listed, whatever ``all`` says, or all."""
        owner = f"Class {element.code}"
        known = self._modifiers.get(modified_by.modifier)
        if known is None:
            what = f"ModifiedBy names Modifier {modified_by.modifier}, which is not there"
            self._report.error(modified_by.line, owner, what)
            return []
        if not known:
            what = f"ModifiedBy names Modifier {modified_by.modifier}, which has no ModifierClass"
            self._report.error(modified_by.line, owner, what)
        for code in modified_by.valid:
            if code not in known:
                what = f"ValidModifierClass {code} is no ModifierClass of {modified_by.modifier}"
                self._report.error(modified_by.line, owner, what)
        if modified_by.valid:
            return [known[code] for code in modified_by.valid if code in known]
        return list(known.values())

    def _combine(
        self,
        base: ClassElement,
        positions: Sequence[list[ModifierClassElement]],
        path: tuple[tuple[str, str], ...],
    ) -> None:
        rest = positions[1:]
        for modifier_class in positions[0]:
            # Modifier AND code must match: .7 of another modifier excludes nothing.
            if not modifier_class.excluded.isdisjoint(path):
                continue
            node = _combined(base, modifier_class)
            there = self._nodes.get(node.code)
            if there is not None:
                self._clash(node, there, rest_left=bool(rest))
            elif _CODE_SHAPES["category"].fullmatch(node.code) is None:
                what = f"ModifierClass {modifier_class.code} of {modifier_class.modifier} makes {node.code!r}"
                self._report.error(base.line, f"Class {base.code}", f"{what}, which is no code")
            else:
                self._nodes[node.code] = node
                if rest:
                    self._combine(node, rest, (*path, (modifier_class.modifier, modifier_class.code)))

    def _clash(self, node: ClassElement, there: ClassElement, *, rest_left: bool) -> None:
        """Let ``there`` stand. What is below an explicit class is its own say, modifiers included."""
        owner = f"Class {there.code}"
        if not there.explicit:
            self._report.error(node.line, owner, f"the code {node.code} comes out of its modifiers twice")
        elif rest_left and not (there.modified_by or there.subclasses):
            what = f"stands for itself, so the next modifier of {node.parent} is not applied to it"
            self._report.warn(there.line, owner, what)


def _combined(base: ClassElement, modifier_class: ModifierClassElement) -> ClassElement:
    """Return ``base`` with one more position: rule 2 (code), 6 (overriding metas, usage) and 7 (title)."""
    metas = base.metas
    if metas is not None and modifier_class.overrides:
        overrides = modifier_class.overrides
        metas = tuple(overrides.get(index, value) for index, value in enumerate(metas))
    return ClassElement(
        code=base.code + modifier_class.code,
        kind=base.kind,
        usage=modifier_class.usage or base.usage,
        title=f"{base.title}: {modifier_class.title}",
        parent=base.code,
        subclasses=(),
        modified_by=(),
        metas=metas,
        rubrics=modifier_class.rubrics,
        line=base.line,
        explicit=False,
    )


def _placed(node: ClassElement, *, terminal: bool) -> Metas | None:
    """Return the metas of a code in its place; those of a combined one change (rule 6).

    ``V`` becomes ``P``: both Para fields on a terminal code, Para295 alone on a four-character one that is
    not; then ``P`` becomes ``O`` under usage aster, ``Z`` under usage optional.
    """
    metas = node.metas
    if metas is None or node.explicit:
        return metas
    para295, para301 = metas[_PARA295], metas[_PARA301]
    if para295 == "V" and (terminal or len(node.code) == _FOUR_CHARACTERS):
        para295 = "P"
    if para301 == "V" and terminal:
        para301 = "P"
    role = _ROLE_OF_USAGE.get(node.usage or "")
    if role is not None:
        para295 = role if para295 == "P" else para295
        para301 = role if para301 == "P" else para301
    return (para295, para301, *metas[2:])


def _in_order(nodes: Mapping[str, ClassElement], report: Report) -> list[Code]:
    """Return the nodes depth first, each with its chapter, its block and whether anything stands below it."""
    roots, children = _family(nodes, report)
    codes: list[Code] = []
    stack: list[tuple[ClassElement, str, str | None]] = [(root, root.code, None) for root in reversed(roots)]
    while stack:
        node, chapter, group = stack.pop()
        below = children.get(node.code)
        terminal = below is None and node.kind == "category"
        if node.kind == "block":
            group = node.code
        codes.append(Code(node, chapter, group, terminal, _placed(node, terminal=terminal)))
        if below is not None:
            stack.extend([(child, chapter, group) for child in reversed(below)])
    if len(codes) < len(nodes) and not report.errors:
        # Every parent is there and yet no chapter is reached: they go round in a circle.
        placed = {code.element.code for code in codes}
        for node in nodes.values():
            if node.code not in placed:
                report.error(node.line, f"Class {node.code}", "its SuperClasses lead to no chapter")
    return codes


def _family(
    nodes: Mapping[str, ClassElement], report: Report
) -> tuple[list[ClassElement], dict[str, list[ClassElement]]]:
    """Return the chapters and the children by parent, in the order of the file."""
    roots: list[ClassElement] = []
    children: dict[str, list[ClassElement]] = {}
    for node in nodes.values():
        if node.parent is not None and node.parent in nodes:
            children.setdefault(node.parent, []).append(node)
        elif node.parent is not None:
            report.error(node.line, f"Class {node.code}", f"SuperClass {node.parent} is not there")
        elif node.kind == "chapter":
            roots.append(node)
        else:
            report.error(node.line, f"Class {node.code}", f"this {node.kind} has no SuperClass")
    for siblings in children.values():
        # Explicit and combined codes under one class: the file orders only the explicit ones.
        if siblings[0].explicit and not siblings[-1].explicit:
            siblings.sort(key=lambda node: node.code)
    return roots, children
