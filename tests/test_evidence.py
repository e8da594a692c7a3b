"""What all phrases of a code together say for a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from alpha_id_runtime.evidence import NAMES, Evidence

if TYPE_CHECKING:
    from alpha_id_runtime.build import Build
    from alpha_id_runtime.pipeline import Suggester


@pytest.fixture(scope="module")
def build(sample: Suggester) -> Build:
    """Return the build of the bundled sample."""
    return sample.build


class _Without:
    """Lets every row pass but one."""

    excluded = 1

    def __init__(self, row: int) -> None:
        self._row = row

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return rows != self._row


def _of(build: Build, text: str, allow: _Without | None = None) -> dict[str, np.ndarray]:
    """Return the evidence of all codes of the build, each spoken for by its first row, by name."""
    numbers = np.arange(len(build.phrases.codes))
    speakers = np.array([build.phrases.rows_of_numbers(numbers[[n]])[0] for n in numbers])
    categories = np.unique([code[:3] for code in build.phrases.codes], return_inverse=True)[1]
    found = Evidence(build).of_codes(text, numbers, speakers, categories, allow)
    assert found.shape == (len(numbers), len(NAMES))
    assert np.isfinite(found).all()
    return dict(zip(NAMES, found.T, strict=True))


def test_a_codes_own_phrase_is_wholly_covered(build: Build) -> None:
    """Each phrase is covered by the phrases of its code, and its code is among the likeliest for it."""
    for row in range(0, len(build.phrases), max(len(build.phrases) // 20, 1)):
        (text,) = build.phrases.texts([row])
        number = build.phrases.code_index[row]
        evidence = _of(build, text)
        assert evidence["union_covered"][number] == pytest.approx(1)
        assert evidence["weakest_word"][number] == pytest.approx(1)
        assert evidence["unheard_word"][number] == 0
        assert evidence["union_gap"][number] == pytest.approx(0)


def test_what_may_not_be_found_is_no_evidence(build: Build) -> None:
    """A held-out row lends its code nothing: the only row of a code gone, nothing is covered."""
    sizes = np.bincount(build.phrases.code_index)
    lone = np.flatnonzero(sizes == 1)
    number = int(lone[0]) if len(lone) else 0
    row = int(build.phrases.rows_of_numbers(np.array([number]))[0])
    (text,) = build.phrases.texts([row])
    before = _of(build, text)["union_covered"][number]
    after = _of(build, text, _Without(row))["union_covered"][number]
    assert before == pytest.approx(1)
    assert after < before


def test_a_text_without_words_has_no_evidence(build: Build) -> None:
    """Another script or mere punctuation gives zeros for every code, and no error."""
    assert not np.any(np.vstack(list(_of(build, "糖尿病 ?!").values())))


def test_a_code_depends_on_its_rivals_but_not_on_their_order(build: Build) -> None:
    """The same candidates in another order give the same evidence, in that order."""
    (text,) = build.phrases.texts([0])
    numbers = np.arange(len(build.phrases.codes))[:10]
    speakers = np.array([build.phrases.rows_of_numbers(numbers[[n]])[0] for n in numbers])
    categories = np.zeros(len(numbers), dtype=np.int64)
    evidence = Evidence(build)
    plain = evidence.of_codes(text, numbers, speakers, categories, None)
    turned = evidence.of_codes(text, numbers[::-1], speakers[::-1], categories, None)
    assert np.allclose(plain, turned[::-1], atol=1e-4)
