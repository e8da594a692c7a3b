"""The tables assets leave under ``storage/assets``: written atomically, hashed, with a note beside each.

Holds: Parquet and note in, Parquet and note out, and the errors that name the command to run first. Refuses:
knowing what a table means.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
from typing import TYPE_CHECKING, Any

import polars as pl

from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError
from alpha_id_runtime.files import new_folder, read_json, unwritable, write_atomically, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from alpha_id_runtime.layout import StorageLayout


def table_hash(table: pl.DataFrame) -> str:
    """Return the sha256 (hex) of the table's rows, independent of how a file stores them."""
    return hashlib.sha256(table.write_ndjson().encode()).hexdigest()


def write_table(storage: StorageLayout, path: Path, table: pl.DataFrame, note: dict[str, Any]) -> None:
    """Write ``table`` and its note; the note's ``hash`` is the table's.

    Raises:
        StorageError: the folder cannot be written.
    """
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd", statistics=False)
    write_atomically(path, buffer.getvalue())
    write_json(storage.note_of(path), {**note, "hash": table_hash(table)})


def read_table(path: Path) -> pl.DataFrame:
    """Return a table written before.

    Raises:
        ArtefactsMissingError: it is not there; the message names the command that makes it.
        ArtefactsIncompatibleError: it is damaged.
    """
    if not path.is_file():
        raise ArtefactsMissingError(f"{path.stem} has not been materialised yet. {_cure(path.stem)}")
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ArtefactsIncompatibleError(f"{path} is damaged. {_cure(path.stem)}") from error


def read_note(storage: StorageLayout, path: Path) -> dict[str, Any]:
    """Return the note beside an asset.

    Raises:
        ArtefactsMissingError: the asset has not been materialised.
        ArtefactsIncompatibleError: the note is damaged.
    """
    try:
        note = read_json(storage.note_of(path), _cure(path.stem))
    except FileNotFoundError as error:
        raise ArtefactsMissingError(
            f"{path.stem} has not been materialised yet. {_cure(path.stem)}"
        ) from error
    return dict(note)


def replace_folder(storage: StorageLayout, aside: Path, target: Path) -> None:
    """Put the finished folder ``aside`` in the place of ``target``."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        old = new_folder(storage.staging, "old.")
        target.rename(old / target.name)
        aside.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        aside.rename(target)


@contextlib.contextmanager
def staging_folder(storage: StorageLayout, name: str) -> Iterator[Path]:
    """Yield a new empty folder of one's own under staging; what is left of it goes away afterwards.

    Raises:
        StorageError: the storage cannot be written.
    """
    try:
        storage.staging.mkdir(parents=True, exist_ok=True)
        folder = new_folder(storage.staging, f"{name}.")
    except OSError as error:
        raise unwritable(storage.root, error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _cure(name: str) -> str:
    asset = "icd_meta" if name == "icd_rubrics" else name
    return (
        f"Make it with: dagster asset materialize --select {asset} (or everything with: alpha-id index build)"
    )
