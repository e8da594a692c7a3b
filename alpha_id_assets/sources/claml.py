"""ICD-10-GM Systematik in ClaML 2.0.0: from the official file to the code table and the rubrics.

Holds: the streaming reader and the two frames. Refuses: dagster, choosing among editions, and any file that
is not whole: every fault is collected and named with file, line and element. BfArM describes the format
in the "ClaML Kurzdokumentation" of each edition; the rules of expansion are in ``expansion.py``.
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from alpha_id_assets.sources.claml_elements import ElementReader
from alpha_id_assets.sources.claml_head import read_head, sniff_claml
from alpha_id_assets.sources.claml_model import Report
from alpha_id_assets.sources.claml_tables import CODE_SCHEMA, RUBRIC_SCHEMA, code_frame, rubric_frame
from alpha_id_assets.sources.expansion import expand
from alpha_id_runtime.errors import SourceError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CODE_SCHEMA", "RUBRIC_SCHEMA", "ClamlEdition", "read_claml", "sniff_claml"]


@dataclass(frozen=True)
class ClamlEdition:
    """One edition as read: its name in messages, what its header says, its tables and what looked odd.

    ``codes`` has ``CODE_SCHEMA``, ``rubrics`` has ``RUBRIC_SCHEMA``; ``class_count`` and ``modifier_count``
    count elements of the file, so ``codes.height - class_count`` codes exist by expansion.
    """

    name: str
    year: int
    date: str
    lang: str
    claml_version: str
    codes: pl.DataFrame
    rubrics: pl.DataFrame
    class_count: int
    modifier_count: int
    warnings: list[str] = field(default_factory=list)


def read_claml(source: BinaryIO | Path, name: str | None = None) -> ClamlEdition:
    """Read a ClaML file of ICD-10-GM, modifiers expanded.

    Args:
        source: the file, or a stream of its bytes (a member of a ZIP, say); a stream is read, not closed.
        name: what messages call it; by default the file's name.

    Raises:
        SourceError: the file cannot be read, is cut off, unsafe, no edition of ICD-10-GM, or holds faults.
    """
    if isinstance(source, Path):
        try:
            with source.open("rb") as stream:
                return read_claml(stream, name or source.name)
        except OSError as error:
            raise SourceError(f"{name or source} cannot be read: {error.strerror or error}.") from error
    label = name or Path(str(getattr(source, "name", "ClaML stream"))).name
    try:
        head = read_head(source, label)
        report = Report(label)
        reader = ElementReader(head, report)
        reader.read(source)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise SourceError(f"{label} cannot be read: {error}.") from error
    if not reader.classes:
        raise SourceError(f"{label} holds no Class; put the whole file in place as BfArM publishes it.")
    codes = expand(reader.classes, reader.modifier_table(), report)
    report.stop()
    return ClamlEdition(
        name=label,
        year=head.year,
        date=head.date,
        lang=head.lang,
        claml_version=head.version,
        codes=code_frame(codes),
        rubrics=rubric_frame(codes),
        class_count=len(reader.classes),
        modifier_count=len(reader.modifiers),
        warnings=report.warnings,
    )
