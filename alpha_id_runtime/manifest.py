"""What a build was made of, how its id follows from that, and what differs from what is wanted.

Holds: the manifest, the pointer to the published build, the mismatch list with its cure. Refuses: building.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError
from alpha_id_runtime.files import read_json

if TYPE_CHECKING:
    from alpha_id_runtime.layout import BuildLayout, StorageLayout

# Raised whenever tables, indices or normalise() change so that an older build cannot be read any more, or an
# index of the same corpus would hold something else: a whole build of the same id is not replaced.
SCHEMA_VERSION = 3
BUILD_COMMAND = "alpha-id index build"
BUILD_CURE = f"Build it with: {BUILD_COMMAND}"


@dataclass(frozen=True)
class SourceNote:
    """One source file as named in the manifest: its edition year, its name and the sha256 of its bytes."""

    edition: int
    name: str
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The inputs and counts of one build. ``fingerprint`` is None in a lexical-only build."""

    build_id: str
    schema_version: int
    created: str
    corpus_hash: str
    codes_hash: str
    fingerprint: str | None
    alpha_id: SourceNote
    claml: SourceNote
    counts: dict[str, int]
    warnings: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def lexical_only(self) -> bool:
        """True where the build holds no vectors: mode A degrades to mode C on it."""
        return self.fingerprint is None

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest as written to ``manifest.json``."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Manifest:
        """Return the manifest read from ``manifest.json``.

        Raises:
            ArtefactsIncompatibleError: a field is missing or unknown.
        """
        try:
            return cls(
                **{
                    **plain,
                    "alpha_id": SourceNote(**plain["alpha_id"]),
                    "claml": SourceNote(**plain["claml"]),
                    "warnings": tuple(plain["warnings"]),
                }
            )
        except (KeyError, TypeError) as error:
            raise ArtefactsIncompatibleError(
                f"The manifest of a build was written by another version of alpha-id ({error}). {BUILD_CURE}"
            ) from error


def build_id(corpus_hash: str, codes_hash: str, fingerprint: str | None) -> str:
    """Return the id of the build made of these inputs: 16 hex digits, the same on every machine."""
    text = "\n".join([str(SCHEMA_VERSION), corpus_hash, codes_hash, fingerprint or "lexical-only"])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def explain_mismatch(found: Manifest, *, fingerprint: str | None = None) -> list[str]:
    """Return every difference between a build and what this version (and this encoder) needs.

    ``fingerprint`` None asks for the lexical part alone.
    """
    differences = []
    if found.schema_version != SCHEMA_VERSION:
        differences.append(
            f"the build has schema version {found.schema_version}, this alpha-id reads {SCHEMA_VERSION}"
        )
    if fingerprint is not None and found.fingerprint is None:
        differences.append("the build is lexical-only: it holds no vectors")
    elif fingerprint is not None and found.fingerprint != fingerprint:
        differences.append(
            f"the build's vectors are of {found.fingerprint}, the configured provider is {fingerprint}"
        )
    return differences


def read_manifest(build: BuildLayout) -> Manifest:
    """Return the manifest of one build.

    Raises:
        ArtefactsMissingError: it is not there.
        ArtefactsIncompatibleError: it is damaged or of another version.
    """
    try:
        return Manifest.from_dict(read_json(build.manifest, BUILD_CURE))
    except FileNotFoundError as error:
        raise ArtefactsMissingError(f"{build.manifest} is missing. {BUILD_CURE}") from error


def published_build_id(storage: StorageLayout) -> str | None:
    """Return the id of the published build, None where nothing was published yet.

    Raises:
        ArtefactsIncompatibleError: the pointer is damaged.
    """
    try:
        pointer = read_json(storage.current, BUILD_CURE)
    except FileNotFoundError:
        return None
    if not isinstance(pointer, dict) or not isinstance(pointer.get("build_id"), str):
        raise ArtefactsIncompatibleError(f"{storage.current} names no build. {BUILD_CURE}")
    return str(pointer["build_id"])
