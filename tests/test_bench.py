"""The bench: every line is printed, what is compared runs in turn, and no held-out entry finds itself."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from alpha_id_assets.building import build_lexical
from alpha_id_runtime.config import Config
from alpha_id_runtime.text import normalise, twin_key
from bench import ablation, peers, rankers
from bench.report import Goal, Table, comparison
from bench.setting import QUICK, HeldOut, Setting
from bench.timing import Took, alternate, percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "data" / "sample"
LINES = (
    "all",
    "read_claml / bare lxml iterparse",
    "read_alpha_id / bare polars read_csv",
    "build_lexical_index / bare tantivy, one field",
    "query side, mode C",
    'alpha-id suggest / python -c "import tantivy, pyarrow"',
    "one phrase",
    "ten phrases, a phrase",
    "mode C",
)
GOALS = (
    "full build for mode C",
    "read_claml, times bare lxml iterparse,",
    "peak memory of the query side",
    'alpha-id suggest, times python -c "import tantivy, pyarrow",',
    "p50 of one phrase",
    "p50 of ten phrases, a phrase",
)
EXTRAS = {"rapidfuzz token_set_ratio": "rapidfuzz", "scikit-learn char TF-IDF": "sklearn"}


@pytest.fixture(scope="module")
def printed() -> str:
    """What a quick run on the sample prints."""
    command = [sys.executable, "-m", "bench", "--data", str(SAMPLE), "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    """A build of the sample with ten entries held out."""
    run = Setting(
        Config(data=SAMPLE, storage=tmp_path_factory.mktemp("bench")), replace(QUICK, held_out=10), 1
    )
    build_lexical(run.storage, run.config, lambda _: None)
    return run


def test_quick_run_prints_every_line(printed: str) -> None:
    """Each comparison and each goal of the bench has its line, and each goal its verdict."""
    lines = [line.strip() for line in printed.splitlines()]
    for name in LINES:
        assert any(line.startswith(f"{name} ") for line in lines), name
    for name in GOALS:
        found = [line for line in lines if line.startswith(f"goal: {name} ")]
        assert [line.rsplit(": ", 1)[1] in ("ok", "miss") for line in found] == [True], name


def test_quick_run_measures_or_excuses_every_peer(printed: str) -> None:
    """A peer that is installed has recall and latency; another one says why it has none."""
    for name in rankers.PEERS:
        lines = [line.strip() for line in printed.splitlines() if line.strip().startswith(name)]
        if name in EXTRAS and importlib.util.find_spec(EXTRAS[name]) is None:
            assert lines == [f"{name}: skipped, {lines[0].split(': skipped, ')[1]}"]
        else:
            assert len(lines[0].removeprefix(name).split()) == 13
            assert f"goal: {name}, times mode C's latency," in printed


def test_data_that_is_not_there_ends_in_one_paragraph(tmp_path: Path) -> None:
    """An empty data folder gives the error's own exit code and text, and no traceback."""
    command = [sys.executable, "-m", "bench", "--data", str(tmp_path), "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr.startswith("bench: ")
    assert "Traceback" not in done.stderr


def test_peer_that_is_not_installed_is_skipped_with_its_reason(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without rapidfuzz and scikit-learn the table holds the others, and names the missing ones."""
    for module in ("rapidfuzz", "rapidfuzz.fuzz", "sklearn", "sklearn.feature_extraction.text"):
        monkeypatch.setitem(sys.modules, module, None)
    (table,) = peers.held_out(setting)
    assert [row[0] for row in table.rows] == ["mode C", "SQLite FTS5 trigrams"]
    assert [note.split(",")[0] for note in table.notes[:2]] == [f"{name}: skipped" for name in EXTRAS]


def test_no_ranker_offers_what_only_the_entry_itself_holds(setting: Setting) -> None:
    """With all rows of a code excluded, neither mode C nor a peer offers the code as the entry's own."""
    entry = setting.held_out[0]
    codes = setting.phrases["icd_code"].to_list()
    alone = replace(entry, excluded=frozenset(row for row, code in enumerate(codes) if code == entry.code))
    for make in (*rankers.OURS.values(), *rankers.PEERS.values()):
        try:
            ranker = make(setting)
        except rankers.NotAvailableError:
            continue
        assert entry.code in [offer.code for offer in ranker(replace(entry, excluded=frozenset()))]
        offers = [offer.code for offer in ranker(alone)]
        assert offers
        assert entry.code not in offers


def test_held_out_entries_exclude_their_twins_and_leave_their_code_findable(setting: Setting) -> None:
    """Every row of the same words is excluded, whatever its order; the code keeps a phrase of other words."""
    norms, codes = setting.phrases["norm"].to_list(), setting.phrases["icd_code"].to_list()
    assert len(setting.held_out) == 10
    for entry in setting.held_out:
        key = twin_key(normalise(entry.text))
        assert entry.excluded == {row for row, norm in enumerate(norms) if twin_key(norm) == key}
        assert any(code == entry.code and row not in entry.excluded for row, code in enumerate(codes))


def test_compared_commands_run_in_turn() -> None:
    """A B A B, the warm-up first and unmeasured."""
    ran: list[str] = []
    commands: dict[str, Callable[[], object]] = {name: lambda name=name: ran.append(name) for name in "AB"}
    seconds = alternate(commands, 2, warm_up=1)
    assert "".join(ran) == "ABABAB"
    assert [len(took) for took in seconds.values()] == [2, 2]


def test_ratio_is_that_of_one_round() -> None:
    """A round slowed by others slows both commands and leaves their ratio as it is."""
    table = comparison("t", {"ours": [2.0, 20.0, 3.0], "bare": [1.0, 10.0, 1.0]}, at_most=2)
    assert table.rows[-1] == ("ours / bare", "2.000", "2.000", "3.000", "times")
    assert table.goals[0].reached


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        (Goal("g", 2, 2), "ok"),
        (Goal("g", 2.1, 2), "miss"),
        (Goal("g", 10, 10, side="at least"), "ok"),
        (Goal("g", 9.9, 10, side="at least"), "miss"),
        (Goal("g", 0.51, 0.5, side="above"), "ok"),
        (Goal("g", 0.5, 0.5, side="above"), "miss"),
    ],
)
def test_goal_says_ok_or_miss(goal: Goal, verdict: str) -> None:
    """A limit counts as reached where it may be met, and not where the figure must be above it."""
    assert str(goal).endswith(f": {verdict}")


def test_hit_counts_complements_and_strict_does_not() -> None:
    """A gold code among the complements has the rank of its suggestion; one beyond the cut is none."""
    outcome = peers.Outcome()
    entry = HeldOut(0, "text", "G63.2", frozenset())
    offers = [rankers.Offer("E10.40", ()), rankers.Offer("E11.40", ("G63.2",)), rankers.Offer("G63.2", ())]
    outcome.add(entry, offers, Took(0.002, 0.001))
    outcome.add(entry, [], Took(0.004, 0.001))
    assert (outcome.ranks, outcome.strict) == ([2, None], [3, None])
    assert [peers.recall(outcome.ranks, cut) for cut in peers.CUTS] == [0.0, 0.5, 0.5]
    assert outcome.wall.median == pytest.approx(3.0)


def test_percentile_is_a_measured_figure() -> None:
    """The p95 of 20 figures is the 19th, the p50 the 10th, whatever their order."""
    figures = [float(n) for n in range(20, 0, -1)]
    assert [percentile(figures, part) for part in (0.5, 0.95, 1.0)] == [10.0, 19.0, 20.0]


def test_table_aligns_its_columns() -> None:
    """Figures stand below their column's name, right-aligned; goals and notes follow."""
    table = Table("Title", ("s",), (("long name", "1.0"), ("b", "10.0")), (Goal("g", 1, 2),), ("note",))
    assert str(table).splitlines() == [
        "Title",
        "                s",
        "  long name   1.0",
        "  b          10.0",
        "  goal: g at most 2; is 1: ok",
        "  note",
    ]


def test_an_ablation_prints_each_change_beside_the_first_line(
    sample_storage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the differences and their intervals; the same settings again differ by nothing."""
    asked = ["--storage", str(sample_storage), "--mode", "c", "--cases", "40"]
    assert ablation.main([*asked, "lexical.pool=100", "lexical.pool=1,lexical.word_weight=0"]) == 0
    same, changed = capsys.readouterr().out.splitlines()[-2:]
    assert same.count("+0.000 (+0.000 to +0.000)") == len(("R@1", "R@10"))
    assert "-0." in changed


def test_a_recipe_can_only_be_changed_where_an_encoder_is_trained(
    sample_storage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mode C has none: the cure is named, and nothing is measured."""
    asked = ["--storage", str(sample_storage), "--cases", "10"]
    assert ablation.main([*asked, "--mode", "c", "recipe.noised=0"]) != 0
    assert "--mode a" in capsys.readouterr().err
