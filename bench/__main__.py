"""``python -m bench [--data DIR] [--quick]``: prints all tables and ends with 0, whatever the figures.

Holds: the order of the sections and the temporary storage. Refuses: measuring (the modules beside it).
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from alpha_id_runtime.config import Config
from alpha_id_runtime.errors import AlphaIdError
from bench import parsing, peers, querying
from bench.setting import QUICK, Setting, Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.report import Table

ROOT = Path(__file__).resolve().parents[1]
FULL = ROOT.parent / "shared" / "data" / "full"
SAMPLE = ROOT / "data" / "sample"

# In this order: the first makes the build that the others use. Another mode adds its sections here.
SECTIONS: tuple[Callable[[Setting], Iterator[Table]], ...] = (
    parsing.whole_build,
    parsing.claml,
    parsing.alpha_id,
    parsing.lexical_index,
    querying.memory,
    querying.cold,
    querying.warm,
    querying.mode_a,
    peers.held_out,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all sections; return 0, or the exit code of the error that the data gave rise to."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure alpha-id beside bare tools."
    )
    parser.add_argument(
        "--data", type=Path, default=FULL if FULL.is_dir() else SAMPLE, metavar="DIR",
        help="BfArM's files (default: ../shared/data/full, else data/sample)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the draw of held-out entries (default 0)")
    parser.add_argument(
        "--quick", action="store_true", help="few rounds and entries: a trial, no measurement"
    )
    parser.add_argument(
        "--vectors", type=Path, metavar="DIR", help="a storage with a build for mode A, measured as well"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="alpha-id-bench.") as folder:
        config = Config(data=options.data.absolute(), storage=Path(folder), mode="c")
        vectors = options.vectors and options.vectors.absolute()
        setting = Setting(config, QUICK if options.quick else Size(), options.seed, vectors)
        try:
            print(_head(setting, quick=options.quick), flush=True)
            for section in SECTIONS:
                for table in section(setting):
                    print(table, flush=True)
        except AlphaIdError as error:
            print(f"bench: {error}", file=sys.stderr)
            return error.exit_code or 1
    return 0


def _head(setting: Setting, *, quick: bool) -> str:
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    lines = [
        f"alpha-id bench: {setting.sources.alpha_id.name}, {setting.sources.claml.name}",
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} processors{load}",
        "Compared commands run in turn; a ratio is that of one round.",
        "Goals are meant for full-size data on a machine that does nothing else.",
    ]
    if quick:
        lines.append("--quick: a trial run, its figures are no measurement.")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
