"""The vector index: built aside, held against exact search, searched under filters."""

import json

import numpy as np
import pytest

from alpha_id_assets.vector_index import build_vector_index, mean_prototypes, measure_recall
from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError
from alpha_id_runtime.retrieval.dense import NOTE, VECTORS, DenseIndex, exact_nearest

ROWS, DIMENSION = 1500, 32


class _Only:
    """Lets the given rows pass."""

    excluded = 0

    def __init__(self, rows):
        self._rows = rows

    def __call__(self, rows):
        return np.isin(rows, self._rows)


@pytest.fixture(scope="module")
def vectors():
    """Clustered unit vectors, as phrases are."""
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(120, DIMENSION))
    plain = centres[rng.integers(0, 120, ROWS)] + 0.4 * rng.normal(size=(ROWS, DIMENSION))
    return (plain / np.linalg.norm(plain, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def built(vectors, tmp_path_factory):
    """An index over them, with one prototype for each of ten codes."""
    folder = tmp_path_factory.mktemp("dense") / "lance"
    codes, prototypes = mean_prototypes(vectors, [f"A0{row % 10}" for row in range(ROWS)])
    note = build_vector_index(folder, vectors, fingerprint="test", codes=codes, prototypes=prototypes)
    return folder, note


def test_the_index_finds_what_exact_search_finds(built, vectors):
    """At 100 on 200 drawn rows, .99 or more of the exact neighbours are found."""
    folder, note = built
    assert not note.exact
    assert measure_recall(DenseIndex.open(folder), vectors, seed=9) >= 0.99


def test_a_batch_finds_what_its_queries_find_alone(built, vectors):
    """Searching ten phrases at once changes nothing for any of them."""
    index = DenseIndex.open(built[0])
    together = index.nearest(vectors[:10], 50)
    alone = [index.nearest(vectors[row : row + 1], 50)[0] for row in range(10)]
    assert [rows.tolist() for rows in together] == [rows.tolist() for rows in alone]


def test_a_filter_never_empties_a_pool(built, vectors):
    """Only twenty far rows pass: all of them are found, nearest first, however deep they lie."""
    index = DenseIndex.open(built[0])
    far = np.sort(exact_nearest(-vectors, vectors[:1], 20)[0])
    found = index.nearest(vectors[:1], 100, [_Only(far)])[0]
    assert sorted(found.tolist()) == far.tolist()
    assert np.all(np.diff(vectors[found] @ vectors[0]) <= 1e-3)


def test_the_build_falls_back_to_exact_search_below_its_recall(vectors, tmp_path, monkeypatch):
    """An index that cannot reach the demanded recall is not used; the note says so and queries stay exact."""
    monkeypatch.setattr("alpha_id_assets.vector_index.MIN_RECALL", 1.01)
    codes, prototypes = mean_prototypes(vectors, ["A00"] * ROWS)
    note = build_vector_index(tmp_path / "i", vectors, fingerprint="t", codes=codes, prototypes=prototypes)
    assert note.exact
    index = DenseIndex.open(tmp_path / "i")
    expected = exact_nearest(vectors.astype(np.float16).astype(np.float32), vectors[:1], 5)[0]
    assert index.nearest(vectors[:1], 5)[0].tolist() == expected.tolist()


def test_a_value_that_is_not_finite_is_never_indexed(vectors, tmp_path):
    """NaN in a vector fails the build with a clear error."""
    broken = vectors.copy()
    broken[3, 3] = np.nan
    with pytest.raises(ArtefactsIncompatibleError, match="not finite"):
        build_vector_index(tmp_path / "i", broken, fingerprint="t", codes=["A00"], prototypes=broken[:1])


def test_a_missing_or_damaged_index_is_said_in_words(built, tmp_path):
    """No folder, or files that do not belong together: one clear error each, never a traceback of LanceDB."""
    with pytest.raises(ArtefactsMissingError, match="index build --full"):
        DenseIndex.open(tmp_path / "nothing")
    note = json.loads((built[0] / NOTE).read_text())
    other = tmp_path / "damaged"
    other.mkdir()
    for path in built[0].iterdir():
        (other / path.name).symlink_to(path)
    (other / NOTE).unlink()
    (other / NOTE).write_text(json.dumps({**note, "rows": note["rows"] - 1}))
    with pytest.raises(ArtefactsIncompatibleError, match="damaged"):
        DenseIndex.open(other)
    (other / VECTORS).unlink()
    (other / VECTORS).write_bytes(b"not an array")
    with pytest.raises(ArtefactsIncompatibleError, match="damaged"):
        DenseIndex.open(other)
