"""A trained encoder on its way to disk.

Holds: the arrays a training gives, and their saving so that a kill at any moment leaves the old encoder or
the new one, whole. Refuses: training, and applying (the runtime does).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alpha_id_runtime.encoder import (
    CODES_FILE,
    FORMAT,
    KEYS_FILE,
    META_FILE,
    PROTOTYPES_FILE,
    WEIGHTS_FILE,
    Encoder,
    Prototypes,
)
from alpha_id_runtime.errors import StorageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from alpha_id_runtime.encoder import FloatArray, HashArray

_TEMPORARY = ".new-"


@dataclass(frozen=True)
class TrainedEncoder:
    """What a training gives.

    ``vocabulary``: feature keys, ascending (k). ``weights``: (k, dimension), float16. ``codes``: sorted.
    ``prototypes``: (codes, dimension), float32, unit length.
    """

    vocabulary: HashArray
    weights: NDArray[np.float16]
    codes: tuple[str, ...]
    prototypes: FloatArray
    fingerprint: str

    @property
    def encoder(self) -> Encoder:
        """The encoder, ready to use without a detour over the disk."""
        return Encoder(self.vocabulary, self.weights, self.fingerprint)

    @property
    def code_prototypes(self) -> Prototypes:
        """The prototypes, in the shape the runtime reads."""
        return Prototypes(self.codes, self.prototypes, self.fingerprint)

    def save(self, folder: Path) -> None:
        """Write the encoder to ``folder``, replacing the one there in one step.

        The arrays go to a subfolder named by their content (temporary folder, fsync, rename); then the small
        file that names it is replaced, then what it no longer names is removed. A reader that has the old
        arrays mapped keeps them.

        Raises:
            StorageError: the folder cannot be written.
        """
        name = self._content()[:16]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / name).is_dir():
                self._write_arrays(folder, name)
            meta = {
                "format": FORMAT,
                "fingerprint": self.fingerprint,
                "features": len(self.vocabulary),
                "dimension": self.weights.shape[1],
                "codes": len(self.codes),
                "data": name,
            }
            partial = folder / f"{_TEMPORARY}{META_FILE}"
            _write(partial, json.dumps(meta, indent=2).encode())
            partial.replace(folder / META_FILE)
            _sync_folder(folder)
            for entry in folder.iterdir():
                if entry.is_dir() and entry.name != name:
                    shutil.rmtree(entry, ignore_errors=True)
        except OSError as error:
            raise StorageError(
                f"The encoder cannot be written to {folder}: {error.strerror}. Free space or name another "
                "storage folder (ALPHA_ID_STORAGE), then run the build again."
            ) from error

    def _write_arrays(self, folder: Path, name: str) -> None:
        temporary = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=folder))
        try:
            _write_array(temporary / KEYS_FILE, self.vocabulary)
            _write_array(temporary / WEIGHTS_FILE, self.weights)
            _write_array(temporary / PROTOTYPES_FILE, self.prototypes)
            _write(temporary / CODES_FILE, json.dumps(self.codes).encode())
            _sync_folder(temporary)
            # mkdtemp gives 0700; the artefacts are no secret.
            temporary.chmod(0o755)
            temporary.rename(folder / name)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise

    def _content(self) -> str:
        digest = hashlib.sha256(json.dumps([FORMAT, self.codes]).encode())
        for array in (self.vocabulary, self.weights, self.prototypes):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def _write_array(path: Path, array: NDArray[Any]) -> None:
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
