"""Transcription errors: what they are, that they are named, and that a seed repeats them."""

import random

import pytest

from alpha_id_runtime.evaluation.noise import NOISE_KINDS, NoiseRates, add_noise, kind_of
from alpha_id_runtime.text import normalise

TEXTS = (
    "Chronische Phlebitis der Vena saphena",
    "Thrombophlebitis mit Hyperthyreose Grad 12",
    "Verschluss der Arteria carotis",
    "Angeborene Fehlbildung der Hüfte",
    "Zystitis",
)


def only(kind: str, text: str, seed: int = 0) -> tuple[str, tuple[str, ...]] | None:
    """Return the text with one error of one kind."""
    return add_noise(text, random.Random(seed), NoiseRates({kind: 1.0}, at_most=1), frozenset())


def forms(kind: str, text: str) -> set[str]:
    """Return what a kind makes of a text over many seeds."""
    return {made[0] for seed in range(400) if (made := only(kind, text, seed))}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("homophone", "Phlebitis", {"Flebitis"}),
        ("homophone", "Verlust", {"Ferlust", "Werlust"}),
        ("homophone", "Carcinom", {"Karcinom", "Carzinom"}),
        ("homophone", "Zystitis", {"Züstitis", "Zistitis"}),
        ("homophone", "Stadt", {"Stat"}),
        ("homophone", "Fieber", {"Fihber", "Fiber"}),
        ("homophone", "Schädel", {"Schedel"}),
        ("merged", "Akuter Infarkt", {"Akuterinfarkt"}),
        ("split", "Leberzirrhose", {"Leber zirrhose"}),
        ("digits", "Trisomie 21", {"Trisomie 12"}),
        ("umlaut", "Hüfte", {"Hufte"}),
        ("dropped", "Niere", {"Nire", "Niee"}),
        ("doubled", "Kolon", {"Kollon"}),
        ("doubled", "Ödemm", {"Ödem"}),
        ("ending", "Akute Gastritis", {"Akuter Gastritis", "Akuten Gastritis"}),
        ("confusion", "Hyperthyreose", {"Hypothyreose"}),
        ("confusion", "Arthritis", {"Arthrose"}),
    ],
)
def test_each_kind_makes_the_errors_that_listeners_make(kind, text, expected):
    """A kind alone produces the errors it stands for."""
    assert expected <= forms(kind, text)


def test_an_umlaut_spelled_out_comes_with_another_error():
    """Spelling an umlaut out changes nothing once normalised, so it is never the only thing done."""
    made = [
        add_noise("Hüfte", random.Random(s), NoiseRates({"umlaut": 1, "dropped": 1}), set())
        for s in range(50)
    ]
    spelled = [m for m in made if m and "umlaut:spelled" in m[1]]
    assert spelled
    assert all("dropped" in done for _, done in spelled)


@pytest.mark.parametrize("text", TEXTS)
def test_every_case_differs_and_names_what_was_done(text):
    """A noisy text never equals its source once normalised, and carries one to three named errors."""
    for seed in range(200):
        made = add_noise(text, random.Random(seed), NoiseRates(), frozenset())
        assert made is not None
        noisy, done = made
        assert normalise(noisy) != normalise(text)
        assert 1 <= len(done) <= 3
        assert {kind_of(d) for d in done} <= set(NOISE_KINDS)


def test_the_same_seed_makes_the_same_errors():
    """Noise is a function of text, rates and seed."""
    one = [add_noise(t, random.Random(5), NoiseRates(), frozenset()) for t in TEXTS]
    assert one == [add_noise(t, random.Random(5), NoiseRates(), frozenset()) for t in TEXTS]
    assert one != [add_noise(t, random.Random(6), NoiseRates(), frozenset()) for t in TEXTS]


def test_a_phrase_of_the_corpus_is_never_the_result():
    """Taking one term for another must not turn a phrase into a correct phrase of another code."""
    taken = {"hyperton", "hypoton"}
    assert add_noise("Hyperton", random.Random(0), NoiseRates({"confusion": 1.0}, at_most=1), taken) is None
    for seed in range(200):
        made = add_noise("Hyperton", random.Random(seed), NoiseRates(), taken)
        assert made is None or normalise(made[0]) not in taken


def test_rates_decide_what_happens():
    """A kind without a rate never happens, and a text without a site for the others yields no case."""
    assert only("digits", "Zystitis") is None
    rates = NoiseRates({"merged": 1.0, "dropped": 0.0})
    done = [add_noise("Akute Zystitis", random.Random(s), rates, frozenset()) for s in range(30)]
    assert all(d is not None and d[1] == ("merged",) for d in done)


def test_more_is_drawn_at_higher_rates():
    """Doubling the rates raises the mean number of errors."""
    low, high = (
        sum(
            len(m[1])
            for s in range(300)
            if (m := add_noise(TEXTS[1], random.Random(s), NoiseRates(r), set()))
        )
        for r in (dict.fromkeys(NOISE_KINDS, 0.1), dict.fromkeys(NOISE_KINDS, 0.4))
    )
    assert high > 1.5 * low
