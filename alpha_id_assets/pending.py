"""What is wanting between the present corpus and a published build with its vectors. Pure over ``storage/``.

Holds: ``find_pending``, which the sensor asks. Refuses: Dagster, sending, and changing anything but damaged
vector files, which the cache sets aside. Finding what is missing verifies every vector file, hundreds of
megabytes at full size, so an answer can be kept as ``Memo`` and is used until a file has changed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from alpha_id_assets.corpus_vectors import find_target, full_gate, read_corpus_texts
from alpha_id_assets.gate import Estimate, estimate
from alpha_id_assets.vectors import PARTITIONS, VectorCache, vector_files
from alpha_id_runtime.errors import AlphaIdError
from alpha_id_runtime.manifest import published_build_id, read_manifest

if TYPE_CHECKING:
    from alpha_id_assets.corpus_vectors import Target
    from alpha_id_runtime.config import Config
    from alpha_id_runtime.layout import StorageLayout
    from alpha_id_runtime.manifest import Manifest


@dataclass(frozen=True)
class Memo:
    """Which partitions lacked vectors when the cache looked as ``key`` says, and what sending them takes."""

    key: str
    missing: tuple[str, ...]
    order: Estimate

    def to_text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str | None) -> Memo | None:
        """Return the memo read from ``to_text``; None where there is none or it is of another version."""
        try:
            plain = json.loads(text or "")
            return cls(str(plain["key"]), tuple(plain["missing"]), Estimate(**plain["order"]))
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True)
class Pending:
    """What to do next.

    Attributes:
        wanted: names corpus and fingerprint, for the keys of requests.
        partitions: to be embedded now, the gate allows it; () where nothing is.
        publish: all vectors are there, and the published build is of another corpus or fingerprint.
        reason: in words, what is wanting or that nothing is.
        memo: to be given to the next call.
    """

    wanted: str
    partitions: tuple[str, ...] = ()
    publish: bool = False
    reason: str = ""
    memo: Memo | None = None


def find_pending(storage: StorageLayout, config: Config, memo: Memo | None = None) -> Pending:
    """Return what is to be done next for the configured provider.

    Args:
        storage: where everything lies.
        config: which provider.
        memo: of the last call.

    Raises:
        AlphaIdError: it cannot be told; the message says what is wanting.
    """
    target = find_target(storage, config)
    wanted = f"{target.corpus_hash[:16]}:{target.fingerprint}"
    manifest = _published(storage)
    if manifest is not None and _is_of(manifest, target):
        words = f"build {manifest.build_id} is published with vectors of {target.fingerprint}."
        return Pending(wanted, reason=f"Nothing is wanting: {words}", memo=memo)
    found = _missing(storage, target, memo)
    if not found.missing:
        return Pending(wanted, publish=True, reason="All vectors are there.", memo=found)
    decision = full_gate(storage, target)(found.order)
    words = f"{found.order.missing} of {found.order.phrases} phrases have no vector yet. {decision.reason}"
    partitions = found.missing if decision.allowed else ()
    return Pending(wanted, partitions, reason=words, memo=found)


def ranges(partitions: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return ``partitions`` as runs of neighbours, each to be requested as one range."""
    found: list[tuple[str, ...]] = []
    for partition in sorted(partitions):
        place = PARTITIONS.index(partition)
        if found and PARTITIONS.index(found[-1][-1]) == place - 1:
            found[-1] = (*found[-1], partition)
        else:
            found.append((partition,))
    return found


def _published(storage: StorageLayout) -> Manifest | None:
    """Return the manifest of the published build; None where there is none that can be read."""
    try:
        build_id = published_build_id(storage)
        return None if build_id is None else read_manifest(storage.build(build_id))
    except AlphaIdError:
        return None


def _is_of(manifest: Manifest, target: Target) -> bool:
    return (manifest.corpus_hash, manifest.fingerprint) == (target.corpus_hash, target.fingerprint)


def _missing(storage: StorageLayout, target: Target, memo: Memo | None) -> Memo:
    cache = VectorCache(storage.vectors)
    key = _state_of(cache, target)
    if memo is not None and memo.key == key:
        return memo
    texts = read_corpus_texts(storage).by_hash
    missing = cache.missing(target.fingerprint, texts)
    partitions = tuple(sorted({digest[0] for digest in missing}))
    # Looking may have set a damaged file aside: the state is taken again.
    return Memo(_state_of(cache, target), partitions, estimate(texts, missing, target.pricing))


def _state_of(cache: VectorCache, target: Target) -> str:
    """Return a digest that changes with the corpus, the provider, its price, and any vector file."""
    digest = hashlib.sha256(repr(target).encode())
    folder = cache.folder(target.fingerprint)
    for partition in PARTITIONS:
        for path in vector_files(folder / partition):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # merged by its writer meanwhile: the next look sees the new file
            digest.update(f"{partition}/{path.name}/{status.st_size}/{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
