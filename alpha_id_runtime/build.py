"""One published build, opened: manifest, code table, phrases, lexical index. A reader stays on it.

Holds: opening and checking. Refuses: searching, and going back to ``current.json`` once opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from alpha_id_runtime.codes import CodeTable
from alpha_id_runtime.corpus import PhraseTable
from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError
from alpha_id_runtime.files import read_json
from alpha_id_runtime.histories import Histories
from alpha_id_runtime.manifest import (
    BUILD_CURE,
    Manifest,
    explain_mismatch,
    published_build_id,
    read_manifest,
)
from alpha_id_runtime.retrieval.lexical import LexicalIndex
from alpha_id_runtime.retrieval.units import PhraseUnits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from alpha_id_runtime.layout import BuildLayout, StorageLayout


@dataclass(frozen=True)
class Build:
    """The artefacts of one build that mode C needs; mode A opens its own from ``layout``."""

    layout: BuildLayout
    manifest: Manifest
    codes: CodeTable
    phrases: PhraseTable
    lexical: LexicalIndex
    units: PhraseUnits
    abbreviations: Mapping[str, tuple[str, ...]]

    @cached_property
    def histories(self) -> Histories:
        """Codes for what lies behind, read when first a line says so."""
        return Histories(self.phrases)


def open_published(storage: StorageLayout) -> Build:
    """Open the build that ``current.json`` names.

    Raises:
        ArtefactsMissingError: nothing was published, or a part of the build is gone.
        ArtefactsIncompatibleError: the build is of another schema, or damaged.
    """
    build_id = published_build_id(storage)
    if build_id is None:
        raise ArtefactsMissingError(f"There is no published build under {storage.root}. {BUILD_CURE}")
    return open_build(storage.build(build_id))


def open_build(layout: BuildLayout) -> Build:
    """Open one build and check that its parts belong together.

    Raises:
        ArtefactsMissingError: a part is gone.
        ArtefactsIncompatibleError: another schema, or parts that do not fit each other.
    """
    manifest = read_manifest(layout)
    differences = explain_mismatch(manifest)
    if differences:
        raise ArtefactsIncompatibleError("; ".join(differences).capitalize() + f". {BUILD_CURE}")
    try:
        build = Build(
            layout,
            manifest,
            CodeTable.open(layout.codes),
            PhraseTable.open(layout.phrases),
            LexicalIndex.open(layout.tantivy),
            PhraseUnits.open(layout.tantivy),
            _abbreviations(layout),
        )
    except (OSError, ValueError, KeyError) as error:
        raise ArtefactsIncompatibleError(
            f"The build {layout.root.name} is damaged ({type(error).__name__}). {BUILD_CURE}"
        ) from error
    sizes = {len(build.phrases), len(build.lexical), len(build.units.indptr) - 1}
    if len(sizes) > 1:
        raise ArtefactsIncompatibleError(
            f"The build {layout.root.name} holds {len(build.phrases)} phrases, but its lexical index "
            f"{len(build.lexical)}. {BUILD_CURE}"
        )
    return build


def _abbreviations(layout: BuildLayout) -> dict[str, tuple[str, ...]]:
    try:
        plain = read_json(layout.abbreviations, BUILD_CURE)
    except FileNotFoundError as error:
        raise ArtefactsMissingError(f"{layout.abbreviations} is missing. {BUILD_CURE}") from error
    return {short: tuple(longs) for short, longs in plain.items()}
