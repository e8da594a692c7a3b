"""The lexical index, built aside: a folder that is whole when this returns. Pure: rows in, a folder out.

Holds: the tantivy build and the phrase units. Refuses: publishing, and deciding which phrases there are.
"""

from __future__ import annotations

import io
import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import tantivy

from alpha_id_runtime.errors import ArtefactsIncompatibleError
from alpha_id_runtime.files import unwritable, write_atomically
from alpha_id_runtime.retrieval.lexical import LexicalIndex
from alpha_id_runtime.retrieval.schema import EXACT, ROW, TRIGRAMS, TWIN, UNIT_FILES, WORDS, register, schema
from alpha_id_runtime.retrieval.units import build_units
from alpha_id_runtime.text import trigrams, twin_key, without_tail

if TYPE_CHECKING:
    from pathlib import Path

# One writer thread with room for all phrases: one segment, so that BM25 sees one corpus.
_HEAP_BYTES = 400_000_000


def build_lexical_index(folder: Path, normalised: list[str]) -> int:
    """Write the index of these normalised phrases, in row order, into ``folder``; return their number.

    ``folder`` is replaced if it is there.

    Raises:
        StorageError: the folder cannot be written, or is full.
    """
    try:
        return _build(folder, normalised)
    except (OSError, ValueError) as error:  # tantivy tells failures of the disk as ValueError
        raise unwritable(folder, error) from error


def _build(folder: Path, normalised: list[str]) -> int:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    index = register(tantivy.Index(schema(), path=str(folder)))
    writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
    for row, text in enumerate(normalised):
        document = tantivy.Document()
        document.add_text(WORDS, text)
        document.add_text(TRIGRAMS, " ".join(trigrams(text)))
        for whole in dict.fromkeys((text, without_tail(text))):
            document.add_text(EXACT, whole)
            document.add_text(TWIN, twin_key(whole))
        document.add_unsigned(ROW, row)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    for name, content in build_units(normalised).items():
        write_atomically(folder / name, _serialise(content))
    for path in folder.iterdir():
        # tantivy keeps some of its files to their owner; another user may answer from the build.
        path.chmod((folder / UNIT_FILES[0]).stat().st_mode)
    return len(normalised)


def verify_lexical_index(folder: Path, normalised: list[str], *, sample: int = 200) -> None:
    """Check that the index counts all phrases and that a sample finds itself.

    Raises:
        ArtefactsIncompatibleError: it does not; the index must not be published.
    """
    index = LexicalIndex.open(folder)
    if len(index) != len(normalised):
        raise ArtefactsIncompatibleError(
            f"The lexical index counts {len(index)} phrases, the corpus {len(normalised)}."
        )
    step = max(1, len(normalised) // sample)
    lost = [row for row in range(0, len(normalised), step) if row not in index.exact(normalised[row])]
    if lost:
        raise ArtefactsIncompatibleError(
            f"{len(lost)} of the phrases drawn do not find themselves in the index (first: row {lost[0]})."
        )


def _serialise(content: object) -> bytes:
    if isinstance(content, np.ndarray):
        buffer = io.BytesIO()
        np.save(buffer, content)
        return buffer.getvalue()
    return json.dumps(content, ensure_ascii=False).encode()
