"""The query side: warm answers, the cold command, and the memory it takes.

Holds: each measured as a user has it, on texts of held-out entries. Refuses: recall (``peers``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from alpha_id_runtime.pipeline import Suggester
from bench.report import Goal, Table, comparison
from bench.timing import alternate, percentile, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bench.setting import Setting
    from bench.timing import Took

WARM_C = {"one phrase": 2.0, "ten phrases, a phrase": 2.0}
WARM_A = {"one phrase": 20.0, "ten phrases": 60.0}
COLD_TIMES, COLD_A_TIMES = 3, 2
MEMORY_MB = 300
TOGETHER = 10
_ROOT = Path(__file__).resolve().parents[1]
_IMPORTS = "import tantivy, pyarrow"


def warm(setting: Setting) -> Iterator[Table]:
    """Time warm answers to one phrase and to ten at once, in turn."""
    yield warm_table("mode C", setting.suggester.suggest, [entry.text for entry in setting.held_out])


def mode_a(setting: Setting) -> Iterator[Table]:
    """Time mode A on the build of ``setting.vectors``: warm, and cold beside importing lancedb."""
    if setting.vectors is None:
        return
    config = replace(setting.config, storage=setting.vectors, mode="a")
    suggest = Suggester.open(config).suggest
    yield warm_table("mode A", suggest, [entry.text for entry in setting.held_out], WARM_A)
    environment = {**_environment(setting), "ALPHA_ID_STORAGE": str(setting.vectors)}
    question = ["suggest", str(_question(setting, 1)), "--mode", "a", "--json"]
    bare = 'python -c "import lancedb"'
    seconds = alternate(
        {
            "alpha-id suggest": partial(_run, [*_command(), *question], environment),
            bare: partial(_run, [sys.executable, "-c", "import lancedb"], environment),
        },
        setting.size.cold_rounds,
    )
    yield comparison("Cold command of mode A, one phrase", seconds, at_most=COLD_A_TIMES)


def warm_table(
    mode: str,
    suggest: Callable[[str], object],
    texts: Sequence[str],
    goals_ms: Mapping[str, float] = MappingProxyType(WARM_C),
) -> Table:
    """Return the table of one mode; each text is asked once alone and once among ten."""
    groups = [texts[at : at + TOGETHER] for at in range(0, len(texts) - TOGETHER + 1, TOGETHER)]
    alone: list[Took] = []
    together: list[Took] = []
    for text in groups[0]:
        suggest(text)
    for group in groups:
        alone += [timed(partial(suggest, text))[1] for text in group]
        together.append(timed(partial(suggest, "\n".join(group)))[1])
    columns: dict[str, list[float]] = {
        "one phrase": [took.wall * 1000 for took in alone],
        "one phrase, processor time": [took.cpu * 1000 for took in alone],
        "ten phrases": [took.wall * 1000 for took in together],
        "ten phrases, a phrase": [took.wall * 1000 / TOGETHER for took in together],
        "ten phrases, a phrase, processor time": [took.cpu * 1000 / TOGETHER for took in together],
    }
    rows = tuple((name, *_percentiles(took), str(len(took))) for name, took in columns.items())
    goals = tuple(
        Goal(f"p50 of {name}", percentile(columns[name], 0.5), most, " ms") for name, most in goals_ms.items()
    )
    return Table(f"Warm query, {mode}", ("min ms", "p50 ms", "p95 ms", "max ms", "asked"), rows, goals)


def _percentiles(took: Sequence[float]) -> tuple[str, ...]:
    figures = (min(took), percentile(took, 0.5), percentile(took, 0.95), max(took))
    return tuple(f"{figure:.3f}" for figure in figures)


def cold(setting: Setting) -> Iterator[Table]:
    """Time the command for one phrase, from nothing to its answer, beside importing its two libraries."""
    question = _question(setting, 1)
    environment = _environment(setting)
    bare = f'python -c "{_IMPORTS}"'
    seconds = alternate(
        {
            "alpha-id suggest": partial(
                _run, [*_command(), "suggest", str(question), "--mode", "c", "--json"], environment
            ),
            bare: partial(_run, [sys.executable, "-c", _IMPORTS], environment),
        },
        setting.size.cold_rounds,
    )
    yield comparison("Cold command, one phrase", seconds, at_most=COLD_TIMES)


def memory(setting: Setting) -> Iterator[Table]:
    """Ask all held-out texts in a process of its own and read its peak of resident memory."""
    questions = _question(setting, len(setting.held_out))
    environment = _environment(setting)
    ours = _peak([str(setting.config.storage), str(questions)], environment)
    bare = _peak([], environment)
    yield Table(
        f"Peak memory, {len(setting.held_out)} phrases in ones and tens, a process of its own",
        ("MB",),
        (("query side, mode C", f"{ours:.0f}"), ("its libraries, imported", f"{bare:.0f}")),
        (Goal("peak memory of the query side", ours, MEMORY_MB, " MB"),),
    )


def _command() -> list[str]:
    script = Path(sys.executable).with_name("alpha-id")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "alpha_id_runtime"]


def _question(setting: Setting, count: int) -> Path:
    path = setting.storage.root / f"question_{count}.txt"
    path.write_text("\n".join(entry.text for entry in setting.held_out[:count]), encoding="utf-8")
    return path


def _environment(setting: Setting) -> Mapping[str, str]:
    """Return an environment in which the defaults hold and the storage is the run's own."""
    nothing = setting.storage.root / "nothing.toml"
    nothing.touch()
    # An installed package has its bytecode: without it each cold command would compile all sources anew.
    own = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("ALPHA_ID_") and key != "PYTHONDONTWRITEBYTECODE"
    }
    return {**own, "ALPHA_ID_CONFIG": str(nothing), "ALPHA_ID_STORAGE": str(setting.config.storage)}


def _run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=_ROOT, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _peak(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    return float(_run([sys.executable, "-m", "bench.memory", *arguments], environment))
