"""``alpha-id`` as a process of its own, away from the configuration of whoever runs the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COMMAND = [sys.executable, "-m", "alpha_id_runtime"]


def environment(**more: str) -> dict[str, str]:
    """Return the process's environment without settings of alpha-id, with ``more`` laid over it."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("ALPHA_ID_")}
    return plain | more


def alpha_id(
    *arguments: str | Path, stdin: bytes = b"", variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run one command to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=environment(**(variables or {})),
        timeout=120,
        check=False,
    )


def answer(*arguments: str | Path, stdin: str = "") -> Any:
    """Run ``suggest`` or another command that prints JSON, and return what it printed."""
    done = alpha_id(*arguments, stdin=stdin.encode())
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def complaint(done: subprocess.CompletedProcess[bytes], exit_code: int) -> str:
    """Return the error of a failed command, which must be one paragraph without traceback."""
    text = done.stderr.decode()
    assert done.returncode == exit_code, text
    paragraphs = [line for line in text.splitlines() if line.startswith("alpha-id: ")]
    assert len(paragraphs) == 1, text
    assert text.rstrip().endswith(paragraphs[0]), text
    assert "Traceback" not in text
    return paragraphs[0].removeprefix("alpha-id: ")
