"""The process whose memory is measured: ``python -m bench.memory [STORAGE QUESTIONS]`` prints its peak in MB.

Holds: the query side alone, so that nothing of the build or of the peers counts. Refuses: importing either.
"""

from __future__ import annotations

import importlib
import resource
import sys
from pathlib import Path

from alpha_id_runtime.config import Config
from alpha_id_runtime.pipeline import Suggester

TOGETHER = 10
_STATUS = Path("/proc/self/status")


def ask(storage: Path, questions: Path) -> None:
    """Ask each line alone, then all lines in tens."""
    suggester = Suggester.open(Config(storage=storage, mode="c"))
    lines = questions.read_text(encoding="utf-8").splitlines()
    for line in lines:
        suggester.suggest(line)
    for at in range(0, len(lines), TOGETHER):
        suggester.suggest("\n".join(lines[at : at + TOGETHER]))


def peak_megabytes() -> float:
    """Return the peak of this process's resident memory.

    On Linux ``ru_maxrss`` includes what the parent held when it forked; ``VmHWM`` begins anew.
    """
    if _STATUS.is_file():
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1024**2


if __name__ == "__main__":
    if sys.argv[1:]:
        ask(*map(Path, sys.argv[1:]))
    else:
        for library in ("tantivy", "pyarrow"):
            importlib.import_module(library)
    print(f"{peak_megabytes():.1f}")
