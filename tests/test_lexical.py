"""The lexical index and its ranking, over a small corpus of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from alpha_id_assets.indexing import build_lexical_index, verify_lexical_index
from alpha_id_runtime.errors import ArtefactsIncompatibleError, ArtefactsMissingError
from alpha_id_runtime.retrieval.fusion import reciprocal_rank_fusion
from alpha_id_runtime.retrieval.lexical import LexicalIndex
from alpha_id_runtime.retrieval.units import PhraseUnits
from alpha_id_runtime.text import normalise

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [
    "Arterielle Hypertonie",
    "Hypertonie, arteriell",
    "Pulmonale Hypertonie",
    "Hypotonie",
    "Ösophagusvarizen bei Leberzirrhose",
    "Blutende Ösophagusvarizen",
    "Hypertonie, arterielle",
    "Nierenversagen",
    "Akutes Nierenversagen",
    "COPD",
]
NORMS = [normalise(text) for text in TEXTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of ``TEXTS``."""
    folder = tmp_path_factory.mktemp("lexical") / "tantivy"
    assert build_lexical_index(folder, NORMS) == len(TEXTS)
    return folder


@pytest.fixture(scope="module")
def index(folder: Path) -> LexicalIndex:
    """Return the index, opened."""
    return LexicalIndex.open(folder)


def test_words_are_stemmed_in_german(index: LexicalIndex) -> None:
    """Inflected forms meet; other words do not."""
    rows = index.words(normalise("arterielles Hypertonien"), 10).tolist()

    assert {0, 1, 2, 6} == set(rows)


def test_trigrams_find_a_misspelt_word(index: LexicalIndex) -> None:
    """In both spellings of an umlaut."""
    assert index.trigrams(normalise("Oesofagusvarizen"), 10)[0] in (4, 5)
    assert index.trigrams(normalise("Nierenversagn"), 10)[0] == 7


def test_exact_and_twins_are_whole_phrases(index: LexicalIndex) -> None:
    """Twins have the same words in another order; both come in row order."""
    assert index.exact(normalise("hypertonie ARTERIELLE")).tolist() == [6]
    assert index.twins(normalise("hypertonie ARTERIELLE")).tolist() == [0, 6]
    assert index.exact(normalise("Hypertonie")).tolist() == []


def test_a_pool_is_filled_from_what_passes(index: LexicalIndex) -> None:
    """However deep it lies: the filter comes first, the cut after it."""
    only_last = index.trigrams(normalise("Hypertonie"), 1, lambda rows: rows == 3)

    assert only_last.tolist() == [3]
    assert index.trigrams(normalise("Hypertonie"), 1, lambda rows: rows < 0).tolist() == []


@pytest.mark.parametrize("text", ["", "xyzq", " ".join(f"wort{n}" for n in range(500))])
def test_what_shares_nothing_finds_nothing(index: LexicalIndex, text: str) -> None:
    """An empty phrase, unknown words, very many of them."""
    assert index.words(text, 10).tolist() == []
    assert index.exact(text).tolist() == []


def test_a_pool_larger_than_the_corpus_is_the_corpus(index: LexicalIndex) -> None:
    """No memory is set aside for what cannot come."""
    assert len(index.trigrams("hypertonie", 10**12)) <= len(TEXTS)


def test_dice_is_1_for_the_same_and_0_for_what_shares_nothing(folder: Path) -> None:
    """And between them for the rest, more alike being more."""
    units = PhraseUnits.open(folder)
    rows = np.arange(len(TEXTS))
    dice = units.dice([units.of_text(NORMS[0])], rows)

    assert dice[0] == pytest.approx(1.0, abs=1e-5)
    assert dice[9] == 0
    assert dice[0] > dice[1] > dice[2] > dice[3] > 0
    assert not units.dice([units.of_text("")], rows).any()
    assert not units.dice([units.of_text("xyzq")], rows).any()
    assert units.dice([units.of_text(NORMS[0])], rows[:0]).shape == (0,)


def test_dice_of_several_texts_at_once_is_that_of_each(folder: Path) -> None:
    """To the last bit: a score must not hang on what else is asked."""
    units = PhraseUnits.open(folder)
    texts = [units.of_text(norm) for norm in (NORMS[0], "", NORMS[3])]
    rows = np.arange(len(TEXTS))
    together = units.dice(texts, np.tile(rows, 3), np.repeat([0, 1, 2], len(rows)))
    assert np.array_equal(together, np.concatenate([units.dice([text], rows) for text in texts]))


def test_fusion_counts_ranks_by_weight_and_breaks_ties_by_row() -> None:
    """First in every ranking is 1; a ranking of weight 0 says nothing."""
    first, second = np.array([5, 3, 4]), np.array([5, 4, 3])
    rows, scores = reciprocal_rank_fusion([(first, 1.0), (second, 1.0)], k=10)
    assert rows.tolist() == [5, 3, 4]
    assert scores[0] == pytest.approx(1.0)
    assert scores[1] == scores[2]

    rows, _ = reciprocal_rank_fusion([(first, 1.0), (second, 0.0)], k=10)
    assert rows.tolist() == [5, 3, 4]
    rows, scores = reciprocal_rank_fusion([(first[:0], 1.0)], k=10)
    assert (len(rows), len(scores)) == (0, 0)


def test_an_index_that_is_not_of_the_corpus_does_not_verify(folder: Path) -> None:
    """Another count, or phrases that do not find themselves."""
    verify_lexical_index(folder, NORMS)
    with pytest.raises(ArtefactsIncompatibleError, match="counts 10 phrases, the corpus 9"):
        verify_lexical_index(folder, NORMS[:-1])
    with pytest.raises(ArtefactsIncompatibleError, match="do not find themselves"):
        verify_lexical_index(folder, NORMS[::-1])


def test_a_missing_or_damaged_index_names_the_command_that_cures_it(tmp_path: Path) -> None:
    """Instead of tantivy's own words."""
    with pytest.raises(ArtefactsMissingError, match="alpha-id index build"):
        LexicalIndex.open(tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtefactsIncompatibleError, match="alpha-id index build"):
        LexicalIndex.open(tmp_path / "empty")
    with pytest.raises(ArtefactsMissingError, match="alpha-id index build"):
        PhraseUnits.open(tmp_path / "empty")


def test_a_reference_behind_an_entry_is_no_part_of_it(tmp_path: Path) -> None:
    """Whoever writes the diagnosis alone has written the entry; the whole entry finds itself as before."""
    norms = [
        normalise(text)
        for text in ("Zuckerkrankheit - s.a. Diabetes mellitus", "Ekzem o.n.A.", "Ekzem des Fußes")
    ]
    build_lexical_index(tmp_path / "index", norms)
    index = LexicalIndex.open(tmp_path / "index")
    assert index.exact("zuckerkrankheit").tolist() == [0]
    assert index.exact("ekzem").tolist() == [1]
    assert index.twins("o a n ekzem").tolist() == [1]
    assert index.exact(norms[0]).tolist() == [0]
