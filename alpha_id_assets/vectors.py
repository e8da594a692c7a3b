"""The cache of vectors: what was embedded once is never sent again.

Holds: ``VectorCache`` under ``storage/vectors/<fingerprint>/<first hex digit of the content hash>/`` and
``embed_missing``, which fills one partition. Refuses: changing a vector, deleting a damaged file (it is set
aside), two writers of one partition, and sending anything that the gate did not allow.

Each answered batch is one file, written whole and durably before the next batch is sent; a partition's run
ends by merging its files into one. A file is: 8 bytes of magic, 32 of blake2b over the fingerprint and all
that follows, then the number of rows and the dimension (little-endian uint32 each), the content hashes
(32 bytes each) and the vectors (little-endian float32, row by row).
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import struct
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alpha_id_assets.gate import Estimate, GateDecision, LedgerWatch, estimate
from alpha_id_runtime.errors import ArtefactsMissingError, GateError, StorageError
from alpha_id_runtime.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from alpha_id_assets.ledger import Ledger
    from alpha_id_runtime.provider import EmbeddingProvider

    Vectors = NDArray[np.float32]

PARTITIONS = tuple("0123456789abcdef")
"""The first hex digit of the content hash."""

QUARANTINE = "quarantine"
LOCK_FILE = ".lock"
SUFFIX = ".vectors"

_MAGIC = b"AIDVEC01"
_DIGEST = 32
_SHAPE = struct.Struct("<II")
_HEAD = len(_MAGIC) + _DIGEST + _SHAPE.size
_HASH = re.compile(r"[0-9a-f]{64}")
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_RESCANS = 5

logger = logging.getLogger(__name__)


class VectorCache:
    """All vectors ever bought or made, by (fingerprint, content hash).

    Args:
        root: ``storage/vectors``.
    """

    def __init__(self, root: Path) -> None:
        """Touch nothing yet."""
        self.root = root
        self.warnings: list[str] = []
        """What was found damaged and set aside, one sentence a file."""

    def folder(self, fingerprint: str) -> Path:
        """Return the folder of a fingerprint: its own name where that is safe, else one derived from it."""
        if _SAFE_NAME.fullmatch(fingerprint) and fingerprint != QUARANTINE:
            return self.root / fingerprint
        digest = hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
        return self.root / (re.sub(r"[^A-Za-z0-9]+", "-", fingerprint).strip("-")[:100] + "_" + digest)

    def missing(self, fingerprint: str, hashes: Iterable[str]) -> list[str]:
        """Return the distinct ones of ``hashes`` that have no sound vector, in their order.

        Every file is verified in full: a damaged one is set aside with a warning, its vectors are missing.
        """
        wanted = list(dict.fromkeys(hashes))
        have: set[str] = set()
        for partition in sorted({key[:1] for key in wanted}):
            for found, _ in self._load(fingerprint, partition):
                have.update(found)
        return [key for key in wanted if key not in have]

    def read(self, fingerprint: str, hashes: Sequence[str]) -> Vectors:
        """Return the vectors of ``hashes``: (n, dimension), float32, in their order; (0, 0) for none.

        Raises:
            ArtefactsMissingError: not all are there; the message counts them.
        """
        places: dict[str, list[int]] = {}
        for row, key in enumerate(hashes):
            places.setdefault(key, []).append(row)
        result: Vectors | None = None
        for partition in sorted({key[:1] for key in places}):
            for found, vectors in self._load(fingerprint, partition):
                if result is None:
                    result = np.empty((len(hashes), vectors.shape[1]), dtype=np.float32)
                for row, key in enumerate(found):
                    for place in places.pop(key, ()):
                        result[place] = vectors[row]
        if places:
            raise ArtefactsMissingError(
                f"{len(places)} of {len(set(hashes))} vectors of {fingerprint} are not in {self.root}. "
                "Embed them first: dagster asset materialize --select embeddings --partition-range 0...f, or "
                "python -m alpha_id_runtime index build --full"
            )
        return np.empty((0, 0), dtype=np.float32) if result is None else result

    @contextmanager
    def writer(self, fingerprint: str, partition: str, dimension: int) -> Iterator[PartitionWriter]:
        """Hold the only right to write one partition of one fingerprint, whoever else runs.

        Raises:
            StorageError: another process (or thread) holds it, or the folder cannot be written.
        """
        if partition not in PARTITIONS:
            raise ValueError(partition)
        folder = self.folder(fingerprint) / partition
        try:
            _make_durable(folder)
            handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StorageError(
                f"{folder} cannot be written ({error.strerror}). Give the user that runs alpha-id the right "
                "to write there, or name another storage folder by ALPHA_ID_STORAGE."
            ) from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip() or "unknown"
                raise StorageError(
                    f"Partition {partition} of {fingerprint} is being embedded by another process "
                    f"({holder}); nothing was sent. Wait until it is done, or end it."
                ) from None
            # The file stays when the lock ends: removing it would let two writers hold two files of one name.
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            yield PartitionWriter(self, fingerprint, partition, dimension, folder)
        finally:
            os.close(handle)  # ends the lock as well

    def _load(self, fingerprint: str, partition: str) -> list[tuple[list[str], Vectors]]:
        """Return hashes and vectors of each sound file of a partition."""
        folder = self.folder(fingerprint) / partition
        for _ in range(_RESCANS):
            try:
                loaded = [self._read_file(fingerprint, path) for path in vector_files(folder)]
            except FileNotFoundError:
                continue  # its writer merged the files between our listing and our reading
            return [found for found in loaded if found is not None]
        raise StorageError(f"The files in {folder} change faster than they can be read. Try again.")

    def _read_file(self, fingerprint: str, path: Path) -> tuple[list[str], Vectors] | None:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StorageError(f"{path} cannot be read ({error.strerror}).") from error
        found = unpack(fingerprint, data)
        if found is None:
            self._set_aside(path)
        return found

    def _set_aside(self, path: Path) -> None:
        quarantine = path.parent.parent / QUARANTINE
        target = quarantine / f"{path.parent.name}-{path.name}"
        try:
            quarantine.mkdir(exist_ok=True)
            path.replace(target)
        except FileNotFoundError:
            return  # another process did so first
        except OSError as error:
            raise StorageError(
                f"{path} is damaged and cannot be moved to {quarantine} ({error.strerror}). Move it yourself."
            ) from error
        warning = f"{path} is damaged; it was moved to {target}, and its vectors count as missing."
        self.warnings.append(warning)
        logger.warning(warning)


class PartitionWriter:
    """The only writer of a partition while its lock is held; made by ``VectorCache.writer``."""

    def __init__(
        self, cache: VectorCache, fingerprint: str, partition: str, dimension: int, folder: Path
    ) -> None:
        """Clear away what a killed writer left half-written: it is no vector of anything."""
        self._cache, self._fingerprint, self._partition = cache, fingerprint, partition
        self._dimension, self._folder = dimension, folder
        for leftover in folder.glob(f".*{SUFFIX}.*"):
            leftover.unlink(missing_ok=True)

    def write_batch(self, hashes: Sequence[str], vectors: Vectors) -> None:
        """Put vectors on disk for good: when this returns, they survive a kill and a loss of power.

        Args:
            hashes: n distinct content hashes of this partition.
            vectors: (n, dimension), finite.

        Raises:
            ValueError: anything else; nothing was written.
            StorageError: they cannot be written.
        """
        if vectors.shape != (len(hashes), self._dimension):
            raise ValueError(f"vectors of shape {vectors.shape} for {len(hashes)} hashes")
        if not np.isfinite(vectors).all():
            raise ValueError("vectors that are not finite")
        for key in hashes:
            if not _HASH.fullmatch(key) or key[0] != self._partition:
                raise ValueError(f"{key[:8]} is no content hash of partition {self._partition}")
        self._write(hashes, vectors)

    def compact(self) -> None:
        """Merge the partition's files into one; a single file stays as it is."""
        files = vector_files(self._folder)
        if len(files) < 2:  # noqa: PLR2004 -- one file is merged already
            return
        merged: dict[str, Vectors] = {}
        for hashes, vectors in self._cache._load(self._fingerprint, self._partition):  # noqa: SLF001 -- one unit
            for row, key in enumerate(hashes):
                merged.setdefault(key, vectors[row])
        if merged:
            kept = self._write(list(merged), np.stack(list(merged.values())))
            for path in files:
                if path != kept:
                    path.unlink(missing_ok=True)

    def _write(self, hashes: Sequence[str], vectors: Vectors) -> Path:
        data = pack(self._fingerprint, hashes, vectors)
        # Named by its content: written twice, it is one file.
        path = self._folder / f"{hashlib.sha256(data).hexdigest()[:24]}{SUFFIX}"
        write_atomically(path, data)
        return path


@dataclass(frozen=True)
class EmbedReport:
    """What one partition took. ``tokens`` as billed where the provider says so; ``euros`` None if unknown."""

    reused: int
    embedded: int
    total: int
    tokens: int
    euros: float | None


def embed_missing(
    cache: VectorCache,
    provider: EmbeddingProvider,
    texts_by_hash: Mapping[str, str],
    partition: str,
    *,
    gate_check: Callable[[Estimate], GateDecision],
    ledger: Ledger,
    progress: Callable[[int, int], None] | None = None,
) -> EmbedReport:
    """Embed what a partition lacks, each batch on disk before the next is sent.

    Args:
        cache: where vectors are kept.
        provider: makes the vectors.
        texts_by_hash: content hash to text; those of other partitions are passed over.
        partition: hex digit.
        gate_check: ``check_gate`` or ``check_sample`` bound to everything but ``to_spend``; asked once for
            the whole partition, then before every single request.
        ledger: where requests are noted if the provider costs money.
        progress: told (done, total) of the texts to embed after each batch.

    Raises:
        GateError: refused; unless it was refused midway, no request has left.
        ProviderError: the provider failed; what it answered before is kept.
        StorageError: another writer holds the partition, or it cannot be written.
    """
    wanted = {key: text for key, text in texts_by_hash.items() if key[:1] == partition}
    pricing = provider.pricing
    with cache.writer(provider.fingerprint, partition, provider.dimension) as writer:
        missing = cache.missing(provider.fingerprint, wanted)
        texts = [wanted[key] for key in missing]
        order = estimate(wanted, missing, pricing)
        tokens = 0
        if missing:
            decision = gate_check(order)
            if not decision.allowed:
                raise GateError(decision.reason)
            watch = None
            if provider.costs_money:
                watch = LedgerWatch(
                    ledger,
                    gate_check,
                    texts=texts,
                    pricing=pricing,
                    fingerprint=provider.fingerprint,
                    partition=partition,
                )
            done = 0
            for batch, vectors in provider.embed_batches(texts, watch=watch):
                writer.write_batch(missing[batch], vectors)
                done += len(vectors)
                if progress:
                    progress(done, len(missing))
            tokens = watch.tokens if watch else order.tokens
        writer.compact()
    return EmbedReport(
        reused=len(wanted) - len(missing),
        embedded=len(missing),
        total=len(wanted),
        tokens=tokens,
        euros=pricing.euros(tokens),
    )


def vector_files(folder: Path) -> list[Path]:
    """Return the finished files of a partition, sorted by name."""
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if not path.name.startswith("."))


def pack(fingerprint: str, hashes: Sequence[str], vectors: Vectors) -> bytes:
    """Return the bytes of a file holding ``vectors`` (n, dimension) of n content hashes."""
    body = b"".join(
        [
            _SHAPE.pack(*vectors.shape),
            bytes.fromhex("".join(hashes)),
            np.ascontiguousarray(vectors, dtype="<f4").tobytes(),
        ]
    )
    return _MAGIC + _digest(fingerprint, body) + body


def unpack(fingerprint: str, data: bytes) -> tuple[list[str], Vectors] | None:
    """Return hashes and vectors of a file; None where it is damaged, cut, or of another fingerprint."""
    body = memoryview(data)[len(_MAGIC) + _DIGEST :]
    if len(data) < _HEAD or data[: len(_MAGIC)] != _MAGIC:
        return None
    if data[len(_MAGIC) : len(_MAGIC) + _DIGEST] != _digest(fingerprint, body):
        return None
    rows, dimension = _SHAPE.unpack_from(data, len(_MAGIC) + _DIGEST)
    hashes = data[_HEAD : _HEAD + rows * _DIGEST].hex()
    vectors = np.frombuffer(data, dtype="<f4", offset=_HEAD + rows * _DIGEST).reshape(rows, dimension)
    return [hashes[at : at + 64] for at in range(0, len(hashes), 64)], vectors.astype(np.float32, copy=False)


def _digest(fingerprint: str, body: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(hashlib.sha256(fingerprint.encode()).digest(), digest_size=_DIGEST)
    digest.update(body)
    return digest.digest()


def _make_durable(folder: Path) -> None:
    """Make ``folder`` and its parents so that they outlive a loss of power."""
    absent = [path for path in [folder, *folder.parents] if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in absent:
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
