"""The direction of imports, and what a query may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.command import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
RUNTIME = sorted((ROOT / "alpha_id_runtime").rglob("*.py"))
BUILDER_ONLY = {"dagster", "lxml", "polars", "scipy"}
# The commands that call the builder, when they run and not before.
MAY_CALL_THE_BUILDER = {"cli/index.py"}  # for its types; the loading itself is in cli/builder.py


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield (top-level module, whether it is imported when the module is) of each import statement."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    late = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(outer, ast.If) and ast.unparse(outer.test) == "TYPE_CHECKING")
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [str(node.module)]
        for name in names:
            yield name.partition(".")[0], id(node) not in late


@pytest.mark.parametrize("path", RUNTIME, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_runtime_does_not_import_the_builder(path: Path) -> None:
    """Nor what only the builder needs, not even late; the commands that need it do so when they run."""
    name = path.relative_to(ROOT / "alpha_id_runtime").as_posix()
    for module, at_once in _imports(path):
        if module in {"alpha_id_assets", *BUILDER_ONLY}:
            assert name in MAY_CALL_THE_BUILDER
            assert not at_once


def _loaded_by(script: str, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport sys; sys.stderr.write(' '.join(sys.modules))", *arguments],
        input=b"Asiatische Cholera\n",
        capture_output=True,
        env=environment(),
        check=True,
    )
    return {name.partition(".")[0] for name in done.stderr.decode().split()}


def test_a_query_in_mode_c_loads_neither_network_nor_vectors(sample_storage: Path) -> None:
    """Nor anything of the builder: it starts fast and sends nothing."""
    loaded = _loaded_by(
        "import sys; from alpha_id_runtime.__main__ import main; assert main(sys.argv[1:]) == 0",
        *("suggest", "--storage", str(sample_storage)),
    )

    assert {"alpha_id_runtime", "tantivy"} <= loaded
    assert not {"lancedb", "httpx", "alpha_id_assets", "pandas", "sklearn"} & loaded
    assert not BUILDER_ONLY & loaded


def test_importing_the_package_loads_nothing_of_weight() -> None:
    """The public names come when they are used."""
    loaded = _loaded_by("import alpha_id_runtime")
    assert not {"numpy", "pyarrow", "tantivy", "httpx", "lancedb"} & loaded

    loaded = _loaded_by("import alpha_id_runtime as a; [getattr(a, name) for name in a.__all__]")
    assert "tantivy" in loaded
    assert not {"lancedb", "httpx", "alpha_id_assets"} & loaded
