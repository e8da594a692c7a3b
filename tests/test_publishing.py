"""Publishing: whole or not at all, whoever reads, kills or builds at the same time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from alpha_id_assets.building import build_lexical, make_corpus, make_entries, make_published
from alpha_id_assets.publishing import KEPT_BUILDS, is_published, publish, published_manifests, verify_build
from alpha_id_runtime.config import Config
from alpha_id_runtime.errors import (
    AlphaIdError,
    ArtefactsIncompatibleError,
    ArtefactsMissingError,
    StorageError,
)
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.manifest import published_build_id, read_manifest
from alpha_id_runtime.pipeline import Suggester
from tests.command import COMMAND, alpha_id, answer, environment
from tests.conftest import SAMPLE

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_runtime.layout import BuildLayout

ROW = "1|I{0}|A00.0|||||Cholera Fassung {0}\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data folder whose Alpha-ID file a test writes with ``_edition``."""
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(next(SAMPLE.glob("*claml*.xml")), folder)
    return folder


def _edition(data: Path, number: int, rows: int = 1) -> None:
    """Write an Alpha-ID file of its own content."""
    text = "".join(ROW.format(number * 10_000 + row) for row in range(rows))
    (data / "icd10gm2026_alphaidse_edvtxt.txt").write_text(text, encoding="utf-8")


def _build(data: Path, storage: Path) -> str:
    build_lexical(StorageLayout(storage), Config(data=data, storage=storage), lambda _: None)
    return str(published_build_id(StorageLayout(storage)))


def _texts(storage: Path) -> set[str]:
    return set(Suggester.open(Config(storage=storage)).build.phrases.column("text"))


def _builds(storage: Path) -> set[str]:
    return {folder.name for folder in (storage / "builds").iterdir()}


def test_the_build_id_follows_from_the_inputs(data: Path, tmp_path: Path) -> None:
    """The same on another storage, another for another corpus."""
    _edition(data, 1)
    first = _build(data, tmp_path / "one")
    assert _build(data, tmp_path / "two") == first
    _edition(data, 2)
    assert _build(data, tmp_path / "two") != first

    manifest = read_manifest(StorageLayout(tmp_path / "one").build(first))
    assert (manifest.build_id, manifest.lexical_only) == (first, True)
    assert manifest.counts["entries"] == 1


def test_the_last_three_builds_are_kept(data: Path, tmp_path: Path) -> None:
    """The published one among them, the oldest goes; what is no build stays out of the count."""
    ids = []
    for number in range(1, KEPT_BUILDS + 2):
        _edition(data, number)
        ids.append(_build(data, tmp_path / "storage"))
        (tmp_path / "storage" / "builds" / ".hidden").write_text("not a build")

    assert _builds(tmp_path / "storage") - {".hidden"} == set(ids[-KEPT_BUILDS:])
    manifests = published_manifests(StorageLayout(tmp_path / "storage"))
    assert {manifest.build_id for manifest in manifests} == set(ids[-KEPT_BUILDS:])
    assert list((tmp_path / "storage" / "staging").iterdir()) == []


def test_going_back_to_a_kept_build_publishes_it_again(data: Path, tmp_path: Path) -> None:
    """The same inputs as before the last build."""
    _edition(data, 1)
    first = _build(data, tmp_path / "storage")
    _edition(data, 2)
    second = _build(data, tmp_path / "storage")
    _edition(data, 1)

    assert _build(data, tmp_path / "storage") == first
    assert _builds(tmp_path / "storage") == {first, second}


def test_a_whole_build_of_the_same_inputs_is_left_to_its_readers(data: Path, tmp_path: Path) -> None:
    """Its files stay the very same; a damaged one is replaced."""
    _edition(data, 1)
    layout = StorageLayout(tmp_path / "storage").build(_build(data, tmp_path / "storage"))

    def inodes() -> dict[str, int]:
        return {
            p.name: p.stat().st_ino for p in layout.root.rglob("*") if p.is_file() and p != layout.manifest
        }

    before = inodes()
    _build(data, tmp_path / "storage")
    assert inodes() == before

    (layout.tantivy / "meta.json").write_text("{}")
    _build(data, tmp_path / "storage")
    verify_build(layout)
    layout.codes.write_bytes(b"damaged")
    _build(data, tmp_path / "storage")
    verify_build(layout)


def test_a_failed_verification_leaves_the_build_before(data: Path, tmp_path: Path) -> None:
    """Whatever the reason; nothing of the new one is left."""
    storage = StorageLayout(tmp_path / "storage")
    _edition(data, 1)
    first = _build(data, storage.root)
    _edition(data, 2)
    make_entries(storage, Config(data=data, storage=storage.root))
    make_corpus(storage)
    manifest = read_manifest(storage.build(first))

    def parts(**other: Path) -> dict[str, Path]:
        usual = {
            "codes.parquet": storage.icd_meta,
            "rubrics.parquet": storage.icd_rubrics,
            "phrases.parquet": storage.corpus_phrases,
            "tantivy": storage.tantivy,
        }
        return {**usual, **other}

    def refuse(_: BuildLayout) -> None:
        raise ArtefactsIncompatibleError("The build does not please.")

    new = replace(manifest, build_id="0123456789abcdef")
    for attempt in (
        lambda: publish(storage, new, parts()),  # the index is still the first corpus's
        lambda: publish(storage, new, parts(tantivy=tmp_path / "gone")),
        lambda: publish(storage, new, {"phrases.parquet": storage.corpus_phrases}),
        lambda: publish(
            storage, manifest, parts(**{"phrases.parquet": storage.build(first).phrases}), verify=refuse
        ),
    ):
        with pytest.raises(AlphaIdError):
            attempt()
        assert published_build_id(storage) == first
        assert _builds(storage.root) == {first}
        assert _texts(storage.root) >= {"Cholera Fassung 10000"}
        assert list(storage.staging.iterdir()) == []


def test_assets_of_different_sources_are_never_published_together(data: Path, tmp_path: Path) -> None:
    """A corpus made of other entries, an index of another corpus: each names the command."""
    storage = StorageLayout(tmp_path / "storage")
    config = Config(data=data, storage=storage.root)
    with pytest.raises(ArtefactsMissingError, match="alpha_id_entries has not been materialised"):
        make_published(storage, config)
    _edition(data, 1)
    first = _build(data, storage.root)
    _edition(data, 2)
    make_entries(storage, config)
    with pytest.raises(ArtefactsIncompatibleError, match=r"made of another alpha_id_entries .* dagster"):
        make_published(storage, config)
    make_corpus(storage)
    with pytest.raises(ArtefactsIncompatibleError, match="tantivy_index was built of another corpus"):
        make_published(storage, config)
    assert published_build_id(storage) == first


def test_a_reader_stays_on_its_build(data: Path, tmp_path: Path) -> None:
    """While others are published and its own folder is long gone."""
    _edition(data, 1)
    first = _build(data, tmp_path / "storage")
    reader = Suggester.open(Config(storage=tmp_path / "storage"))
    for number in range(2, KEPT_BUILDS + 3):
        _edition(data, number)
        _build(data, tmp_path / "storage")
    assert first not in _builds(tmp_path / "storage")

    result = reader.suggest("Cholera Fassung 10000")
    assert result.diagnostics.build_id == first
    assert (result.suggestions[0].matched_phrase, result.suggestions[0].score) == (
        "Cholera Fassung 10000",
        1.0,
    )
    assert is_published(StorageLayout(tmp_path / "storage"), first) is False


def _start(data: Path, storage: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "index", "build", "--data", str(data), "--storage", str(storage)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(),
    )


@pytest.mark.parametrize("done_steps", [0, 2, 4])
def test_a_killed_build_leaves_the_one_before(data: Path, tmp_path: Path, done_steps: int) -> None:
    """By kill -9 after so many steps; the next build goes through."""
    storage = tmp_path / "storage"
    _edition(data, 1)
    first = _build(data, storage)
    _edition(data, 2, rows=2)
    with _start(data, storage) as process:
        assert process.stderr
        for _ in range(done_steps):
            process.stderr.readline()
        os.kill(process.pid, signal.SIGKILL)

    assert published_build_id(StorageLayout(storage)) == first
    verify_build(StorageLayout(storage).build(first))
    second = _build(data, storage)
    assert second != first
    assert "Cholera Fassung 20001" in _texts(storage)
    assert not list((storage / "staging").glob("publish.*"))


def test_builds_at_the_same_time_do_not_mix(data: Path, tmp_path: Path) -> None:
    """Of two different sources into one storage: one after the other, and each whole."""
    storage = tmp_path / "storage"
    other = tmp_path / "other"
    shutil.copytree(data, other)
    _edition(data, 1, rows=300)
    _edition(other, 2, rows=300)
    processes = [_start(folder, storage) for folder in (data, other, data)]
    for process in processes:
        _, complaints = process.communicate(timeout=120)
        assert process.returncode == 0, complaints.decode()

    builds = [StorageLayout(storage).build(name) for name in _builds(storage)]
    assert len(builds) == 2
    for build in builds:
        verify_build(build)
    texts = _texts(storage)
    assert ("Cholera Fassung 10000" in texts) != ("Cholera Fassung 20000" in texts)
    assert len([text for text in texts if text.startswith("Cholera Fassung")]) == 300


def test_a_reader_beside_builds_always_finds_a_whole_one(data: Path, tmp_path: Path) -> None:
    """Opened again and again while one process builds the same and another something else."""
    storage = tmp_path / "storage"
    other = tmp_path / "other"
    shutil.copytree(data, other)
    _edition(data, 1, rows=50)
    _edition(other, 2, rows=50)
    _build(data, storage)
    processes = [_start(folder, storage) for folder in (data, other)]
    opened = 0
    while any(process.poll() is None for process in processes):
        result = Suggester.open(Config(storage=storage)).suggest("Cholera Fassung 10000")
        assert result.suggestions[0].icd_code == "A00.0"
        opened += 1

    for process in processes:
        _, complaints = process.communicate()
        assert process.returncode == 0, complaints.decode()
    assert opened > 0


def test_a_full_disk_ends_in_3_and_leaves_the_build_before(sample_storage: Path, tmp_path: Path) -> None:
    """Here a limit on the size of files, met while the index is written."""
    storage = tmp_path / "storage"
    shutil.copytree(sample_storage, storage)
    done = subprocess.run(
        [
            "bash",
            "-c",
            'ulimit -f 200; "$@"',
            "-",
            *COMMAND,
            "index",
            "build",
            "--storage",
            storage,
            "--data",
            SAMPLE,
        ],
        capture_output=True,
        env=environment(),
        check=False,
    )
    message = done.stderr.decode()

    assert done.returncode == 3, message
    assert "cannot be written (File too large). Make room" in message
    assert "Traceback" not in message
    assert (
        answer("suggest", "--storage", storage, stdin="Gehirnschlag")["suggestions"][0]["icd_code"] == "I64"
    )


def _read_only(storage: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 77; "$@"'
    return subprocess.run(
        ["unshare", "--mount", "--map-root-user", "bash", "-c", script, storage, *COMMAND, *arguments],
        input=b"Gehirnschlag",
        capture_output=True,
        env=environment(),
        check=False,
    )


def test_a_read_only_storage_answers_and_cannot_be_built_into(sample_storage: Path) -> None:
    """A volume mounted read-only, as a container's query side has it."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here to mount a folder read-only")
    done = _read_only(sample_storage, "suggest", "--storage", str(sample_storage))
    if done.returncode == 77 or b"unshare" in done.stderr:
        pytest.skip("a folder cannot be mounted read-only here")
    plain: dict[str, Any] = json.loads(done.stdout)
    assert plain["suggestions"][0]["icd_code"] == "I64"

    done = _read_only(
        sample_storage, "index", "build", "--data", str(SAMPLE), "--storage", str(sample_storage)
    )
    assert done.returncode == 3
    assert b"cannot be written (Read-only file system)" in done.stderr


def test_other_users_can_read_a_build(data: Path, tmp_path: Path) -> None:
    """As the umask says, whatever the tools do by themselves."""
    _edition(data, 1)
    before = os.umask(0o022)
    try:
        layout = StorageLayout(tmp_path / "storage").build(_build(data, tmp_path / "storage"))
    finally:
        os.umask(before)

    for path in [layout.root, *layout.root.rglob("*"), tmp_path / "storage" / "current.json"]:
        wanted = 0o755 if path.is_dir() else 0o644
        assert path.stat().st_mode & 0o777 == wanted, path


def test_an_unwritable_place_is_a_storage_error(data: Path) -> None:
    """Of the pure function, too."""
    _edition(data, 1)
    with pytest.raises(StorageError, match="/dev/null/x"):
        _build(data, type(data)("/dev/null/x"))


def test_the_demonstration_command_builds_and_says_what_it_did(data: Path, tmp_path: Path) -> None:
    """A line a step on stderr with counts; stdout stays empty."""
    _edition(data, 1)
    done = alpha_id("index", "build", "--data", data, "--storage", tmp_path / "storage")

    assert (done.returncode, done.stdout) == (0, b"")
    for step in ("alpha_id_entries", "icd_meta", "corpus_phrases", "tantivy_index", "published_index"):
        assert step.encode() in done.stderr
