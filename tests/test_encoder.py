"""The built-in encoder: training, saving, applying, and the measure of its quality."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from alpha_id_assets.encoding.holdout import draw_holdout, evaluate_holdout, measure_draws
from alpha_id_assets.encoding.settings import TrainingSettings, training_fingerprint
from alpha_id_assets.encoding.training import train
from alpha_id_runtime.encoder import META_FILE, Encoder, Prototypes, feature_keys, is_word_key, sound
from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError, StorageError
from alpha_id_runtime.text import normalise, twin_key

if TYPE_CHECKING:
    from pathlib import Path

    from alpha_id_assets.encoding.trained import TrainedEncoder

SITES = {
    "Schulter": "Schulter",
    "Knie": "Knie",
    "Hüft": "Hüfte",
    "Ellenbogen": "Ellenbogen",
    "Fuß": "Fuß",
    "Hand": "Hand",
    "Wirbel": "Wirbelsäule",
    "Kiefer": "Kiefer",
    "Finger": "Finger",
    "Zehen": "Zehe",
}
CONDITIONS = {
    "M1": ("arthrose", "Arthrose", "Gelenkverschleiß"),
    "M2": ("entzündung", "Entzündung", "Arthritis"),
    "S3": ("fraktur", "Fraktur", "Knochenbruch"),
    "C4": ("tumor", "Tumor", "Bösartige Neubildung"),
    "Q5": ("fehlbildung", "Fehlbildung", "Angeborene Anomalie"),
}
SMALL = TrainingSettings(dimension=32, epochs=12, batch=64, min_count=1)


def small_corpus() -> pl.DataFrame:
    """Return 400 phrases of 50 codes, in this test's own words: columns as in ``corpus_phrases``."""
    rows = []
    for letter, (tail, noun, other) in CONDITIONS.items():
        for number, (stem, site) in enumerate(SITES.items()):
            code = f"{letter}{number}.0"
            phrases = [
                f"{stem}{tail}",
                f"{noun} {site}",
                f"{other} im Bereich {site}",
                f"Chronische {stem}{tail}",
                f"{site} mit {noun}",
                f"{other} ({site})",
                f"{other}, {site}, nicht näher bezeichnet",
            ]
            rows += [(text, code, "alpha_id") for text in phrases]
            # A title in another order is a twin of the second phrase.
            rows.append((f"{site}: {noun}", code, "title"))
    frame = pl.DataFrame(rows, schema=["text", "icd_code", "origin"], orient="row")
    norms = pl.Series("norm", [normalise(text) for text in frame["text"]])
    return frame.with_columns(norms, valid=pl.lit(value=True))


def train_on(frame: pl.DataFrame, settings: TrainingSettings = SMALL) -> TrainedEncoder:
    """Train on the texts and codes of ``frame``."""
    return train(frame["text"].to_list(), frame["icd_code"].to_list(), settings=settings)


@pytest.fixture(scope="module")
def corpus() -> pl.DataFrame:
    """The small corpus."""
    return small_corpus()


@pytest.fixture(scope="module")
def trained(corpus: pl.DataFrame) -> TrainedEncoder:
    """An encoder trained on all of the small corpus."""
    return train_on(corpus)


def test_the_same_seed_and_input_give_the_same_bytes(corpus: pl.DataFrame, trained: TrainedEncoder) -> None:
    """Training twice gives byte-identical arrays and one fingerprint."""
    again = train_on(corpus)
    assert again.weights.tobytes() == trained.weights.tobytes()
    assert again.vocabulary.tobytes() == trained.vocabulary.tobytes()
    assert again.prototypes.tobytes() == trained.prototypes.tobytes()
    assert (again.codes, again.fingerprint) == (trained.codes, trained.fingerprint)


def test_the_bytes_do_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    """With one BLAS thread and with two, other processes train the same encoder."""
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])
        from dataclasses import replace
        from test_encoder import SMALL, small_corpus, train_on
        # A long inner dimension is where BLAS would sum by its threads.
        wide = replace(SMALL, dimension=700, batch=800, epochs=2)
        print(train_on(small_corpus(), wide)._content())
    """)
    digests = set()
    for threads in ("1", "2"):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        command = [sys.executable, "-c", script, os.path.dirname(__file__)]  # noqa: PTH120 - an argument
        run = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        digests.add(run.stdout)
    assert len(digests) == 1


def test_another_seed_gives_other_weights(corpus: pl.DataFrame, trained: TrainedEncoder) -> None:
    """The seed is used, and is part of the fingerprint."""
    other = train_on(corpus, replace(SMALL, seed=1))
    assert other.weights.tobytes() != trained.weights.tobytes()
    assert other.fingerprint != trained.fingerprint


def test_progress_is_reported_each_epoch_with_falling_loss(corpus: pl.DataFrame) -> None:
    """The callback hears every epoch, and the loss falls."""
    heard: list[tuple[int, int, float]] = []
    train(
        corpus["text"].to_list(),
        corpus["icd_code"].to_list(),
        settings=replace(SMALL, epochs=4),
        progress=lambda done, total, loss: heard.append((done, total, loss)),
    )
    assert [entry[:2] for entry in heard] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert heard[-1][2] < heard[0][2]


def test_a_saved_encoder_comes_back_bit_for_bit(
    corpus: pl.DataFrame, trained: TrainedEncoder, tmp_path: Path
) -> None:
    """Vectors and prototypes after save and load equal those before, to the bit."""
    trained.save(tmp_path / "encoder")
    loaded = Encoder.load(tmp_path / "encoder")
    texts = corpus["text"].to_list()
    assert loaded.encode(texts).tobytes() == trained.encoder.encode(texts).tobytes()
    assert (loaded.fingerprint, loaded.dimension) == (trained.fingerprint, SMALL.dimension)
    prototypes = Prototypes.load(tmp_path / "encoder")
    assert prototypes.codes == trained.codes
    assert prototypes.matrix.tobytes() == trained.prototypes.tobytes()
    assert prototypes.fingerprint == trained.fingerprint


def test_vectors_and_prototypes_have_unit_length(corpus: pl.DataFrame, trained: TrainedEncoder) -> None:
    """Every corpus phrase gets a float32 vector of length 1, and so does every code."""
    vectors = trained.encoder.encode(corpus["text"].to_list())
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(corpus), SMALL.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(trained.prototypes, axis=1), 1, atol=1e-5)
    assert list(trained.codes) == sorted(set(corpus["icd_code"]))


@pytest.mark.parametrize("text", ["", "   ", "?!()", "日本語", "\x00\n\t", "q"])
def test_text_without_a_known_feature_gives_the_zero_vector(trained: TrainedEncoder, text: str) -> None:
    """Odd text neither fails nor resembles anything."""
    assert not trained.encoder.encode([text]).any()


@pytest.mark.parametrize("text", ["x" * 100_000, "Knie " * 5_000, "KNIE\nFRAKTUR", "Knie\u00a0😀", "ﬁnger ½"])
def test_odd_text_gives_a_finite_vector(trained: TrainedEncoder, text: str) -> None:
    """Very long, multi-line and exotic text gives a finite vector of length 0 or 1."""
    vector = trained.encoder.encode([text])
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(round(float(np.linalg.norm(vector))), abs=1e-5)


def test_no_texts_give_an_empty_matrix(trained: TrainedEncoder) -> None:
    """Encoding nothing gives shape (0, dimension)."""
    assert trained.encoder.encode([]).shape == (0, SMALL.dimension)


def test_a_vector_does_not_depend_on_its_neighbours(corpus: pl.DataFrame, trained: TrainedEncoder) -> None:
    """Alone or in a batch, in any order: the same bits."""
    texts = corpus["text"].to_list()[:60]
    together = trained.encoder.encode(["", *texts])
    alone = np.concatenate([trained.encoder.encode([text]) for text in ["", *texts]])
    assert together.tobytes() == alone.tobytes()


def test_features_are_the_grams_and_words_of_each_text() -> None:
    """Keys equal a plain enumeration: n-grams of 3 to 5 within padded words as they sound; a key a word."""
    texts = ["akute appendizitis", "a", "", "typ 2 diabetes", "a akute"]
    seen: dict[str, int] = {}
    for text in texts:
        _, keys = feature_keys([text])
        padded = [f" {word} " for word in sound(text).split()]
        grams = [p[i : i + n] for n in (3, 4, 5) for p in padded for i in range(len(p) - n + 1)]
        ordered = keys[~is_word_key(keys)].tolist()
        assert len(ordered) == len(grams)
        assert len(set(ordered)) == len(set(grams))
        for gram, key in zip(grams, ordered, strict=True):
            assert seen.setdefault(gram, key) == key
        assert is_word_key(keys).sum() == len(text.split())
    owners, keys = feature_keys(texts)
    for place, text in enumerate(texts):
        assert sorted(keys[owners == place].tolist()) == sorted(feature_keys([text])[1].tolist())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Clavicula", "Klavikula"),
        ("Carcinom", "Karzinom"),
        ("Ösophagusvarizen", "Oesofagusvaricen"),
        ("Brüche", "Bruche"),
        ("Apoplexie", "Apopleksie"),
        ("Diarrhoe", "Diarroe"),
        ("Rhythmus", "Rytmus"),
        ("Abszeß", "Abszess"),
    ],
)
def test_spellings_of_one_word_sound_alike(one: str, other: str) -> None:
    """C, K and Z, ph and f, umlauts and doubled letters make no difference to n-grams; ch stays itself."""
    assert sound(normalise(one)) == sound(normalise(other))
    assert sound("bauch") != sound("bauk")


def test_applying_needs_numpy_alone() -> None:
    """Importing the runtime's encoder pulls neither scipy nor any other heavy package."""
    script = (
        "import sys, alpha_id_runtime.encoder;"
        "print([m for m in ('scipy', 'polars', 'dagster', 'lancedb', 'lxml', 'pyarrow') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_changed_input_changes_the_fingerprint(corpus: pl.DataFrame) -> None:
    """One text, one code, the order or a setting: each gives another fingerprint; the same input the same."""
    texts, codes = corpus["text"].to_list(), corpus["icd_code"].to_list()
    base = training_fingerprint(texts, codes, SMALL)
    others = {
        training_fingerprint([*texts[:-1], texts[-1] + "x"], codes, SMALL),
        training_fingerprint(texts, [*codes[:-1], codes[0]], SMALL),
        training_fingerprint(texts[::-1], codes[::-1], SMALL),
        training_fingerprint(texts[:-1], codes[:-1], SMALL),
        training_fingerprint(texts, codes, replace(SMALL, epochs=SMALL.epochs + 1)),
    }
    assert len(others) == 5
    assert base not in others
    assert training_fingerprint(list(texts), list(codes), SMALL) == base


def test_a_missing_encoder_is_told_with_its_cure(tmp_path: Path) -> None:
    """No folder: artefacts missing, and the command that writes them."""
    with pytest.raises(ArtefactsMissingError, match="index build"):
        Encoder.load(tmp_path / "nothing")


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 0}'])
def test_a_damaged_encoder_is_told(trained: TrainedEncoder, tmp_path: Path, content: str) -> None:
    """A meta file that is no JSON, of another shape or format: incompatible, not a traceback."""
    trained.save(tmp_path)
    (tmp_path / META_FILE).write_text(content)
    with pytest.raises(ArtefactsIncompatibleError, match="index build"):
        Encoder.load(tmp_path)


def test_a_cut_array_is_told(trained: TrainedEncoder, tmp_path: Path) -> None:
    """A truncated weights file is incompatible."""
    trained.save(tmp_path)
    weights = next(tmp_path.glob("*/weights.npy"))
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ArtefactsIncompatibleError, match="damaged"):
        Encoder.load(tmp_path)


def test_saving_replaces_and_leaves_nothing_over(
    corpus: pl.DataFrame, trained: TrainedEncoder, tmp_path: Path
) -> None:
    """After a second save the folder holds that one alone; a reader of the first keeps its arrays."""
    trained.save(tmp_path)
    first = Encoder.load(tmp_path)
    before = first.encode(["Kniearthrose"])
    other = train_on(corpus, replace(SMALL, epochs=1))
    other.save(tmp_path)
    other.save(tmp_path)
    assert Encoder.load(tmp_path).fingerprint == other.fingerprint
    assert len([entry for entry in tmp_path.iterdir() if entry.is_dir()]) == 1
    assert first.encode(["Kniearthrose"]).tobytes() == before.tobytes()


def test_a_folder_that_cannot_be_written_is_told(trained: TrainedEncoder, tmp_path: Path) -> None:
    """A file in the folder's place gives a storage error that names the cure."""
    (tmp_path / "taken").write_text("")
    with pytest.raises(StorageError, match="ALPHA_ID_STORAGE"):
        trained.save(tmp_path / "taken")


def test_a_kill_while_saving_leaves_a_whole_encoder(
    corpus: pl.DataFrame, trained: TrainedEncoder, tmp_path: Path
) -> None:
    """Killed before each of its system calls in turn, a save leaves the old encoder or the new one, whole."""
    folder = tmp_path / "encoder"
    trained.save(folder)
    other = train_on(corpus, replace(SMALL, epochs=1))
    expected = {e.fingerprint: e.encoder.encode(corpus["text"].to_list()).tobytes() for e in (trained, other)}
    seen = set()
    calls = 0
    killed = True
    while killed:
        child = os.fork()
        if child == 0:
            _die_at_event(calls)
            other.save(folder)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        assert killed or os.waitstatus_to_exitcode(status) == 0
        loaded = Encoder.load(folder)
        assert loaded.encode(corpus["text"].to_list()).tobytes() == expected[loaded.fingerprint]
        assert Prototypes.load(folder).fingerprint == loaded.fingerprint
        seen.add(loaded.fingerprint)
        trained.save(folder)
        assert json.loads((folder / META_FILE).read_text())["fingerprint"] == trained.fingerprint
        calls += 1
    assert calls > 8
    assert len(seen) == 2


def _die_at_event(number: int) -> None:
    """Have this process killed at its ``number``-th audited file operation under way."""
    count = 0

    def watch(event: str, _arguments: object) -> None:
        nonlocal count
        if event in {"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "shutil.rmtree"}:
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

    sys.addaudithook(watch)


@pytest.mark.parametrize("seed", range(5))
def test_no_twin_of_a_held_out_phrase_is_kept(corpus: pl.DataFrame, seed: int) -> None:
    """Held-out and kept phrases share no set of words, each held-out code keeps a phrase, a draw repeats."""
    holdout = draw_holdout(corpus, n=60, seed=seed)
    keys = [twin_key(norm) for norm in corpus["norm"]]
    asked = {keys[row] for row in holdout.rows}
    kept = {keys[row] for row in np.flatnonzero(holdout.kept)}
    assert len(asked) == len(holdout.rows) == 60
    assert not asked & kept
    assert {keys[row] for row in np.flatnonzero(~holdout.kept)} == asked
    left = set(corpus["icd_code"].filter(pl.Series(holdout.kept)))
    assert left == set(corpus["icd_code"])
    assert set(corpus["origin"][holdout.rows.tolist()]) == {"alpha_id"}
    np.testing.assert_array_equal(draw_holdout(corpus, n=60, seed=seed).rows, holdout.rows)


def test_twins_under_another_code_leave_as_well() -> None:
    """A twin with another code is taken out; a phrase whose twin is another code's last one is not drawn."""
    frame = pl.DataFrame(
        {
            "text": ["Bruch Arm", "Arm Bruch", "Armbruch", "Riss", "Riss Sehne", "Sehnenriss"],
            "icd_code": ["S1", "S2", "S1", "S2", "S3", "S2"],
            "origin": ["alpha_id", "title", "title", "title", "title", "title"],
            "valid": [True] * 6,
        }
    ).with_columns(norm=pl.col("text").str.to_lowercase())
    holdout = draw_holdout(frame, n=10, seed=0)
    assert holdout.rows.tolist() == [0]
    assert holdout.kept.tolist() == [False, False, True, True, True, True]
    alone = draw_holdout(frame.head(3), n=10, seed=0)
    assert alone.rows.tolist() == []


def test_invalid_and_not_billable_phrases_are_not_drawn(corpus: pl.DataFrame) -> None:
    """Only valid phrases, and of billable codes where the frame tells, are held out."""
    half = np.arange(len(corpus)) % 2 == 0
    marked = corpus.with_columns(valid=pl.Series(half), billable=pl.col("icd_code").str.starts_with("M"))
    rows = draw_holdout(marked, n=1000, seed=0).rows.tolist()
    assert rows
    assert all(half[rows])
    assert all(code.startswith("M") for code in corpus["icd_code"][rows])


def test_held_out_phrases_find_their_codes(corpus: pl.DataFrame) -> None:
    """Trained without them, the encoder finds most codes first; with shuffled codes it is near chance."""
    holdout = draw_holdout(corpus, n=60, seed=3)
    kept = corpus.filter(pl.Series(holdout.kept))
    report = evaluate_holdout(train_on(kept), corpus, holdout)
    assert report.recall("sum", 1) > 0.7
    assert report.recall("sum", 10) > 0.9
    shuffled = corpus.with_columns(icd_code=pl.col("icd_code").shuffle(seed=5))
    control = evaluate_holdout(train_on(shuffled.filter(pl.Series(holdout.kept))), shuffled, holdout)
    for ranking in ("phrase", "prototype", "sum"):
        assert control.recall(ranking, 1) < 0.15
        assert control.recall(ranking, 10) < 0.5


def test_an_encoder_that_knows_nothing_scores_nothing(corpus: pl.DataFrame, trained: TrainedEncoder) -> None:
    """Ties count against: with all vectors zero no code is found."""
    blank = replace(
        trained, weights=np.zeros_like(trained.weights), prototypes=np.zeros_like(trained.prototypes)
    )
    report = evaluate_holdout(blank, corpus, draw_holdout(corpus, n=20, seed=0))
    assert set(report.as_metadata().values()) == {0.0}


def test_draws_are_measured_one_by_one(corpus: pl.DataFrame) -> None:
    """Each seed gives a report of its own."""
    reports = measure_draws(corpus, seeds=(1, 2), n=10, settings=replace(SMALL, epochs=1))
    assert [report.seed for report in reports] == [1, 2]
    assert all(len(report.ranks["sum"]) == 10 for report in reports)
