"""Publishing: a build put together aside, verified, swapped in; the last three kept. Pure of Dagster.

Holds: the staging folder, the verification, the atomic replacement of ``current.json``. Refuses: making
tables or indices; it only takes those that are whole.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import filecmp
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from alpha_id_runtime.build import open_build
from alpha_id_runtime.errors import AlphaIdError, ArtefactsIncompatibleError, StorageError
from alpha_id_runtime.files import new_folder, unwritable, write_json
from alpha_id_runtime.layout import BuildLayout
from alpha_id_runtime.manifest import SCHEMA_VERSION, Manifest, SourceNote, build_id, published_build_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from alpha_id_runtime.layout import StorageLayout

KEPT_BUILDS = 3
_SAMPLE = 200
_ASIDE = "publish."
# Files that the same inputs make byte by byte; the names and bytes of an index differ each time.
_REPRODUCIBLE = (".parquet", ".npy", ".npz")


def make_manifest(
    *,
    corpus_hash: str,
    codes_hash: str,
    fingerprint: str | None,
    alpha_id: SourceNote,
    claml: SourceNote,
    counts: dict[str, int],
    warnings: tuple[str, ...],
    settings: dict[str, Any],
) -> Manifest:
    """Return the manifest of the build that these inputs make, stamped now."""
    return Manifest(
        build_id=build_id(corpus_hash, codes_hash, fingerprint),
        schema_version=SCHEMA_VERSION,
        created=dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds"),
        corpus_hash=corpus_hash,
        codes_hash=codes_hash,
        fingerprint=fingerprint,
        alpha_id=alpha_id,
        claml=claml,
        counts=counts,
        warnings=warnings,
        settings=settings,
    )


def publish(
    storage: StorageLayout,
    manifest: Manifest,
    parts: Mapping[str, Path],
    *,
    verify: Callable[[BuildLayout], None] | None = None,
) -> BuildLayout:
    """Copy ``parts`` (name in the build: file or folder) aside, verify them, name them in ``current.json``.

    The build published before stays in place until the last step and whenever a step fails. A whole build of
    the same id and content is kept as it is, with the new manifest: its readers notice nothing.

    Raises:
        ArtefactsIncompatibleError: a part is missing or the build does not verify.
        StorageError: the storage cannot be written.
    """
    try:
        with storage_lock(storage, "publish"):
            return _publish(storage, manifest, parts, verify)
    except OSError as error:
        raise StorageError(
            f"The build could not be written under {storage.root} ({error.strerror or error}). The one "
            "published before is untouched. Make room or give the right to write there, then build again."
        ) from error


def _publish(
    storage: StorageLayout,
    manifest: Manifest,
    parts: Mapping[str, Path],
    verify: Callable[[BuildLayout], None] | None,
) -> BuildLayout:
    storage.staging.mkdir(parents=True, exist_ok=True)
    for left_by_a_killed_one in storage.staging.glob(f"{_ASIDE}*"):
        shutil.rmtree(left_by_a_killed_one, ignore_errors=True)
    aside = BuildLayout(new_folder(storage.staging, f"{_ASIDE}{manifest.build_id}."))
    try:
        for name, source in parts.items():
            _copy(source, aside.root / name)
        write_json(aside.manifest, manifest.to_dict())
        verify_build(aside)
        if verify is not None:
            verify(aside)
        published = storage.build(manifest.build_id)
        if _is_the_same(published, aside, verify):
            write_json(published.manifest, manifest.to_dict())
        else:
            _swap_in(aside.root, published.root, storage.staging)
    finally:
        shutil.rmtree(aside.root, ignore_errors=True)
    write_json(storage.current, {"build_id": manifest.build_id})
    _prune(storage, keep=manifest.build_id)
    return published


def verify_build(layout: BuildLayout) -> None:
    """Open a build as a reader would and let a sample of its phrases find their own rows.

    Raises:
        ArtefactsIncompatibleError: it cannot be opened, or a phrase does not find itself.
    """
    build = open_build(layout)
    total = len(build.phrases)
    if total == 0:
        raise ArtefactsIncompatibleError(
            f"The build {layout.root.name} holds no phrase; nothing is published."
        )
    norms = build.phrases.column("norm")
    lost = [
        row for row in range(0, total, max(1, total // _SAMPLE)) if row not in build.lexical.exact(norms[row])
    ]
    if lost:
        raise ArtefactsIncompatibleError(
            f"{len(lost)} of the sampled phrases do not find themselves (first: row {lost[0]}); "
            "nothing is published."
        )
    unknown = [code for code in build.phrases.codes if not build.codes.is_terminal(code)]
    if unknown:
        raise ArtefactsIncompatibleError(
            f"{len(unknown)} codes of the corpus are no terminal codes of the code table ({unknown[0]}, …); "
            "nothing is published."
        )


def published_manifests(storage: StorageLayout) -> list[Manifest]:
    """Return the manifests of the kept builds that can be read, the newest first."""
    from alpha_id_runtime.manifest import read_manifest  # noqa: PLC0415 -- only here

    found = []
    for folder in storage.builds.iterdir() if storage.builds.is_dir() else ():
        try:
            found.append(read_manifest(BuildLayout(folder)))
        except AlphaIdError:
            continue
    return sorted(found, key=lambda manifest: manifest.created, reverse=True)


def _copy(source: Path, target: Path) -> None:
    if not source.exists():
        raise ArtefactsIncompatibleError(
            f"{source} is missing: materialise it first, then publish. Nothing is published."
        )
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".tantivy-*.lock"))
    else:
        shutil.copy2(source, target)


def _is_the_same(
    published: BuildLayout, aside: BuildLayout, verify: Callable[[BuildLayout], None] | None
) -> bool:
    """Tell whether a build is already there, whole, with the content of the one made aside."""
    if not published.root.is_dir():
        return False
    ours, theirs = (
        {path.relative_to(build.root): path for path in build.root.rglob("*") if path.suffix in _REPRODUCIBLE}
        for build in (aside, published)
    )
    if ours.keys() != theirs.keys() or not all(filecmp.cmp(ours[p], theirs[p], shallow=False) for p in ours):
        return False
    try:
        verify_build(published)
        if verify is not None:
            verify(published)
    except AlphaIdError:
        return False
    return True


def _swap_in(aside: Path, target: Path, staging: Path) -> None:
    """Rename ``aside`` to ``target``; a build of the same id makes way only at that moment."""
    _fsync_tree(aside)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        # Same inputs, same id: readers that hold its files open keep them until they close.
        old = new_folder(staging, "old.")
        target.rename(old / target.name)
        aside.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        aside.rename(target)


def _fsync_tree(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _prune(storage: StorageLayout, keep: str) -> None:
    builds = [folder for folder in storage.builds.iterdir() if folder.is_dir() and folder.name != keep]
    others = sorted(builds, key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in others[KEPT_BUILDS - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def storage_lock(storage: StorageLayout, name: str) -> Iterator[None]:
    """Let one process at a time do what ``name`` says; another waits. A killed one lets go.

    Raises:
        StorageError: the storage cannot be written.
    """
    try:
        storage.root.mkdir(parents=True, exist_ok=True)
        handle = (storage.root / f".{name}.lock").open("w")
    except OSError as error:
        raise unwritable(storage.root, error) from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def is_published(storage: StorageLayout, wanted: str) -> bool:
    """Tell whether the published build is the one of this id, and opens."""
    if published_build_id(storage) != wanted:
        return False
    try:
        open_build(storage.build(wanted))
    except AlphaIdError:
        return False
    return True
