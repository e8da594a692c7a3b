"""``alpha-id eval`` as a process: table, JSON, page, progress, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.command import alpha_id, complaint
from tests.evaluation_builds import gold_table

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from alpha_id_runtime.config import Config


def evaluate(storage: Path, *options: str | Path) -> CompletedProcess[bytes]:
    """Run the command over ``storage``."""
    return alpha_id("eval", "--storage", storage, *options)


def test_both_modes_side_by_side_and_again_the_same(semantic_config: Config, tmp_path: Path) -> None:
    """JSON on standard output alone, progress on standard error, a page; the second run trains nothing."""
    storage = semantic_config.storage
    options = ("--holdout", "--cases", "6", "--seed", "2", "--gold", gold_table(tmp_path), "--json")
    first, again = evaluate(storage, *options), evaluate(storage, *options)
    assert (first.returncode, again.returncode) == (0, 0), first.stderr.decode()
    one, two = json.loads(first.stdout), json.loads(again.stdout)
    assert b"held-out encoder: epoch" in first.stderr
    assert b"epoch" not in again.stderr
    assert b"mode A: 14 of 14 cases asked" in first.stderr
    assert [(b["kind"], b["mode"], b["figures"]) for b in one["blocks"]] == [
        (b["kind"], b["mode"], b["figures"]) for b in two["blocks"]
    ]
    assert one["cases"] == two["cases"]
    assert {b["mode"] for b in one["blocks"]} == {"c", "a"}
    assert two["fallen"] == []
    assert b"Geheim" not in first.stdout + first.stderr
    for name in ("page", "figures"):
        assert Path(one["files"][name]).parent == storage / "reports"
        assert Path(one["files"][name]).read_text("utf-8")


def test_table_stands_beside_the_earlier_prototype(sample_storage: Path, tmp_path: Path) -> None:
    """Without vectors mode C is evaluated alone and that is said; what is inflated is labelled so."""
    page = tmp_path / "page.html"
    done = evaluate(sample_storage, "--cases", "6", "--gold", gold_table(tmp_path), "--table", "--html", page)
    assert done.returncode == 0, done.stderr.decode()
    table = done.stdout.decode()
    assert "C 0.520" in table
    assert "inflated" in table
    assert "Without held-out cases" in table
    assert "Without held-out cases" in page.read_text("utf-8")
    assert f"page     {page}" in table
    assert page.is_file()
    assert "no vectors" in done.stderr.decode()
    assert max(map(len, table.splitlines()[2:-3])) <= 110


def test_what_is_refused_names_its_cure(sample_storage: Path, tmp_path: Path) -> None:
    """Vectors that are not there, nothing published, gold lists that are not there, a negative count."""
    without = complaint(evaluate(sample_storage, "--mode", "both", "--cases", "1"), 3)
    assert "index build --full" in without
    assert "index build" in complaint(evaluate(tmp_path / "empty"), 3)
    assert "gold lists" in complaint(
        evaluate(sample_storage, "--cases", "1", "--gold", tmp_path / "no.tsv"), 2
    )
    assert evaluate(sample_storage, "--cases", "-1").returncode == 2


def test_training_without_the_extra_is_wrong_use(semantic_config: Config, tmp_path: Path) -> None:
    """Where packages of the builder are missing, held-out cases in mode A are refused in one paragraph."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    # A package that fails as one that is not installed does.
    (hidden / "scipy.py").write_text("raise ModuleNotFoundError('No module named scipy', name='scipy')\n")
    done = alpha_id(
        "eval",
        "--storage",
        semantic_config.storage,
        "--holdout",
        "--cases",
        "1",
        variables={"PYTHONPATH": path_with(hidden)},
    )
    assert "alpha-id[assets]" in complaint(done, 2)


def path_with(folder: Path) -> str:
    """Return a module path on which ``folder`` stands first."""
    return ":".join([str(folder), *(entry for entry in sys.path if entry)])
