"""Writing a file so that a reader sees the old one or the new one, never half of one.

Holds: one atomic write, and readers of small JSON files and of Parquet. Refuses: knowing which file it is.
"""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING, Any

from alpha_id_runtime.errors import ArtefactsIncompatibleError, StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` through a temporary file beside it: fsync, rename, fsync of the folder.

    Raises:
        StorageError: the folder cannot be made or written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            # Unlike tempfile's, readable by whom the umask lets: another user may answer from the build.
            with temporary.open("xb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise unwritable(path.parent, error) from error


def new_folder(parent: Path, prefix: str) -> Path:
    """Make and return an empty folder of one's own, readable by whom the umask lets."""
    folder = parent / f"{prefix}{uuid.uuid4().hex[:12]}"
    folder.mkdir()
    return folder


def unwritable(folder: Path, error: Exception) -> StorageError:
    """Return the error that says why a folder cannot be written, and the cures."""
    reason = getattr(error, "strerror", None) or error
    return StorageError(
        f"{folder} cannot be written ({reason}). Make room there, give the user that runs alpha-id the right "
        "to write, or name another folder by ALPHA_ID_STORAGE or --storage."
    )


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as readable JSON, atomically, keys in their own order."""
    write_atomically(path, (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode())


def read_json(path: Path, cure: str) -> Any:
    """Return the JSON in ``path``.

    Raises:
        ArtefactsIncompatibleError: the file is there but is not JSON; ``cure`` ends the message.
        FileNotFoundError: it is not there.
        StorageError: it cannot be read.
    """
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(error.errno, error.strerror, str(path)) from error
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror or error}). {cure}") from error
    except ValueError as error:
        raise ArtefactsIncompatibleError(f"{path} is damaged: it does not hold JSON. {cure}") from error


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a Parquet file as one table, all columns where none are named.

    Not by ``pyarrow.parquet.read_table``: that imports the dataset layer, a tenth of a cold command's time.

    Raises:
        FileNotFoundError: it is not there.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 -- who only writes does without

    with pq.ParquetFile(path) as file:
        return file.read(columns=None if columns is None else list(columns))
