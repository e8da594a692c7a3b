"""In built-in mode not one packet leaves: neither while building nor while answering, telemetry included."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.command import COMMAND
from tests.conftest import SAMPLE
from tests.dagster_home import ROOT
from tests.offline import namespace, run_offline

if TYPE_CHECKING:
    from tests.conftest import BuiltIn
    from tests.offline import Offline

isolated = pytest.mark.skipif(
    not namespace(), reason="this system lets no test open a network namespace (unshare --net)"
)
CALL = "import socket; socket.create_connection(('192.0.2.1', 443), 5)"
# Past the guard, as native code goes.
NATIVE_CALL = """
import ctypes, socket, struct
libc = ctypes.CDLL(None)
handle = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(443), socket.inet_aton("192.0.2.1"))
libc.connect(handle, address, len(address))
"""


@pytest.fixture(scope="module")
def asked(built_in: BuiltIn, tmp_path_factory: pytest.TempPathFactory) -> Offline:
    """One mode A answer, asked for offline."""
    command = [*COMMAND, "suggest", "--mode", "a", "--json", "--storage", str(built_in.storage)]
    folder = tmp_path_factory.mktemp("asked") / "guard"
    return run_offline(command, folder, stdin="Schenkelhalsbruch links\nHerzschwäche".encode())


def test_a_build_with_vectors_sends_nothing(built_in: BuiltIn) -> None:
    """From files to the published index the guard has nothing to refuse."""
    assert built_in.run.done.returncode == 0, built_in.run.done.stderr.decode()
    assert built_in.run.refused == []


def test_an_answer_in_mode_a_sends_nothing(asked: Offline) -> None:
    """It is a whole answer, and the guard has nothing to refuse."""
    assert asked.done.returncode == 0, asked.done.stderr.decode()
    diagnostics = json.loads(asked.done.stdout)["diagnostics"]
    assert (diagnostics["mode"], diagnostics["degraded"], diagnostics["ionos_calls"]) == ("a", False, 0)
    assert asked.refused == []


@isolated
def test_not_even_native_code_tries_to_send(built_in: BuiltIn, asked: Offline) -> None:
    """In a namespace without interfaces both succeed, and no attempt to send was counted."""
    assert built_in.run.attempts == 0
    assert asked.attempts == 0


@isolated
def test_dagster_sends_nothing(tmp_path: Path) -> None:
    """With the environment file sourced, its telemetry is off: no attempt from the command as typed."""
    line = "source alpha-id.env && dagster asset materialize --select alpha_id_entries"
    run = run_offline(
        ["bash", "-c", f"cd {ROOT} && {line}"],
        tmp_path / "guard",
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        ALPHA_ID_STORAGE=str(tmp_path / "storage"),
        ALPHA_ID_DATA=str(SAMPLE),
    )
    assert run.done.returncode == 0, run.done.stderr.decode()
    assert (run.refused, run.attempts) == ([], 0)


def test_the_guard_sees_an_attempt(tmp_path: Path) -> None:
    """The meter moves when something does try."""
    run = run_offline([sys.executable, "-c", CALL], tmp_path / "guard")
    assert run.done.returncode == 1
    assert run.refused


@isolated
def test_the_namespace_sees_an_attempt_of_native_code(tmp_path: Path) -> None:
    """The other meter moves as well, and the guard does not."""
    run = run_offline([sys.executable, "-c", NATIVE_CALL], tmp_path / "guard")
    assert run.done.returncode == 0, run.done.stderr.decode()
    assert run.refused == []
    assert run.attempts
