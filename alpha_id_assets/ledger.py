"""What was spent at providers that cost money: an append-only file that a kill cannot make forget.

Holds: ``Ledger`` (JSON lines, each on disk before the call returns), its reader and its sums. Refuses:
deciding whether money may be spent (``gate.py``). A request is noted as ``reserved`` before it leaves, as
``settled`` with the tokens billed once it is answered, as ``released`` where it certainly was not billed. A
reservation without either, as a kill or a time-out leaves it, counts as spent: the sum errs to the safe side.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from alpha_id_runtime.errors import GateError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

LEDGER_FILE = "ledger.jsonl"


@dataclass(frozen=True)
class LedgerEntry:
    """One request. ``euros`` is None where the price was unknown; ``approval`` is None for a sample."""

    key: str
    fingerprint: str
    partition: str
    approval: str | None
    texts: int
    tokens: int
    euros: float | None
    state: str = "reserved"


@dataclass(frozen=True)
class Spent:
    """A sum over requests, those of unknown fate included."""

    requests: int
    texts: int
    tokens: int
    euros: float


class Ledger:
    """The ledger in one gate folder. Safe to use from several threads and processes at once."""

    def __init__(self, gate_folder: Path) -> None:
        """Touch nothing yet."""
        self.path = gate_folder / LEDGER_FILE

    def reserve(self, make: Callable[[], LedgerEntry]) -> LedgerEntry:
        """Note a request that is about to leave, and return its entry.

        ``make`` is called while no other process can append: what it reads of the ledger still holds when
        its entry is written, so that two partitions cannot both take the last of a limit. Where it raises,
        nothing is noted.

        Raises:
            StorageError: the ledger cannot be written; the request must not leave.
        """
        with self._appending() as out:
            entry = make()
            self._append(out, {**asdict(entry), "at": _now()})
        return entry

    def settle(self, key: str, tokens: int, euros: float | None) -> None:
        """Note that request ``key`` was answered and billed ``tokens``."""
        with self._appending() as out:
            self._append(
                out, {"key": key, "state": "settled", "tokens": tokens, "euros": euros, "at": _now()}
            )

    def release(self, key: str) -> None:
        """Note that request ``key`` was not billed."""
        with self._appending() as out:
            self._append(out, {"key": key, "state": "released", "at": _now()})

    def entries(self) -> list[LedgerEntry]:
        """Return all requests in the order they were reserved, each in its last state.

        A last line without its end was never finished, so its request never left: it is passed over.

        Raises:
            GateError: a finished line cannot be read; what it noted is unknown, so nothing may be spent.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"The ledger {self.path} cannot be read ({error.strerror}).") from error
        found: dict[str, LedgerEntry] = {}
        for number, line in enumerate(text.split(b"\n")[:-1], start=1):
            try:
                entry = _read(json.loads(line), found)
            except (ValueError, TypeError, KeyError):
                raise GateError(
                    f"Line {number} of the ledger {self.path} is damaged, so what was spent is not known and "
                    "nothing more is sent. Restore the file, or move it away and approve anew."
                ) from None
            found[entry.key] = entry
        return list(found.values())

    @contextmanager
    def _appending(self) -> Iterator[int]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            is_new = not self.path.exists()
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if is_new:
                folder = os.open(self.path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
            yield handle
        finally:
            os.close(handle)  # ends the lock as well

    def _append(self, handle: int, line: dict[str, Any]) -> None:
        data = (json.dumps(line, ensure_ascii=False) + "\n").encode()
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                self._drop_torn_line(handle, size)
            if os.write(handle, data) != len(data):
                raise self._unwritable(OSError(0, "the disk is full"))
            os.fsync(handle)
        except OSError as error:
            raise self._unwritable(error) from error

    def _drop_torn_line(self, handle: int, size: int) -> None:
        # A line is sent upon only once it is wholly on disk: what a kill left half-written never counted.
        whole = os.pread(handle, size, 0).rfind(b"\n") + 1
        os.ftruncate(handle, whole)

    def _unwritable(self, error: OSError) -> StorageError:
        return StorageError(
            f"The ledger {self.path} cannot be written ({error.strerror}), so nothing is sent. Make room or "
            "give the user that runs alpha-id the right to write there."
        )


def new_key() -> str:
    """Return a key for an entry, unique among all processes."""
    return uuid.uuid4().hex


def spent(entries: Iterable[LedgerEntry], price_per_million_tokens: float | None) -> Spent:
    """Return the sum over ``entries``, without those released.

    A request made while the price was unknown counts in euros at ``price_per_million_tokens`` (0 where that
    is unknown too: then only tokens can be held against a limit).
    """
    counted = [entry for entry in entries if entry.state != "released"]
    price = price_per_million_tokens or 0.0
    return Spent(
        requests=len(counted),
        texts=sum(entry.texts for entry in counted),
        tokens=sum(entry.tokens for entry in counted),
        euros=sum(
            entry.tokens * price / 1_000_000 if entry.euros is None else entry.euros for entry in counted
        ),
    )


def _read(line: dict[str, Any], found: dict[str, LedgerEntry]) -> LedgerEntry:
    state = line["state"]
    if state == "reserved":
        entry = LedgerEntry(
            key=line["key"],
            fingerprint=line["fingerprint"],
            partition=line["partition"],
            approval=line["approval"],
            texts=int(line["texts"]),
            tokens=int(line["tokens"]),
            euros=_euros(line["euros"]),
        )
    elif state == "settled":
        entry = replace(
            found[line["key"]], state=state, tokens=int(line["tokens"]), euros=_euros(line["euros"])
        )
    elif state == "released":
        entry = replace(found[line["key"]], state=state)
    else:
        raise ValueError(state)
    if entry.tokens < 0 or entry.texts < 0 or not (entry.euros is None or 0 <= entry.euros < float("inf")):
        raise ValueError(state)
    return entry


def _euros(value: Any) -> float | None:
    return None if value is None else float(value)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
