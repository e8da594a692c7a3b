"""Runs a command where no packet can leave, and tells of every attempt to send one.

Two meters: a guard inside each Python process (an audit hook, loaded before anything else) that notes and
refuses whatever is not loopback; and, where the system allows it, a network namespace without interfaces,
whose counters of "no route" see native code, too.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.command import environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GUARD = """\
import os, sys

EVENTS = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}

def watch(event, values):
    if event not in EVENTS:
        return
    address = values[0] if isinstance(values[0], str) else values[1]
    host = address[0] if isinstance(address, tuple) else None
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = address
    if host in (None, "localhost", "::1") or str(host).startswith("127."):
        return  # loopback, or a socket of the file system
    with open(os.environ["GUARD_LOG"], "a") as log:
        log.write(event + "\\n")
    raise ConnectionRefusedError("the guard lets nothing out")

sys.addaudithook(watch)
"""
IN_NAMESPACE = '"$@"; code=$?; cat /proc/net/snmp /proc/net/snmp6 > "$COUNTERS"; exit $code'
METERS = {
    "Ip": ("OutRequests", "OutNoRoutes"),
    "Tcp": ("ActiveOpens", "OutSegs"),
    "Udp": ("OutDatagrams",),
    "Ip6": ("Ip6OutRequests", "Ip6OutNoRoutes"),
}


@dataclass(frozen=True)
class Offline:
    """What a command did.

    ``refused``: attempts that the guard saw, by kind. ``attempts``: what the namespace counted, None where
    there was no namespace.
    """

    done: subprocess.CompletedProcess[bytes]
    refused: list[str]
    attempts: int | None


@cache
def namespace() -> tuple[str, ...]:
    """Return the command that opens a network namespace without interfaces; empty where none is allowed."""
    for command in (("unshare", "--net"), ("unshare", "--map-root-user", "--net")):
        try:
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
                return command
        except OSError:
            break
    return ()


def run_offline(command: Sequence[str], folder: Path, *, stdin: bytes = b"", **variables: str) -> Offline:
    """Run ``command`` under both meters; ``folder`` is one of its own."""
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(GUARD)
    log, counters = folder / "refused.log", folder / "counters"
    inside = [*namespace(), "sh", "-c", IN_NAMESPACE, "sh"] if namespace() else []
    # With a path of its own, no other sitecustomize can come first.
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [*inside, *command],
        input=stdin,
        capture_output=True,
        env=environment(
            **{"PYTHONPATH": paths, "GUARD_LOG": str(log), "COUNTERS": str(counters)} | variables
        ),
        check=False,
        timeout=300,
    )
    refused = log.read_text().splitlines() if log.exists() else []
    return Offline(done, refused, _attempts(counters.read_text()) if inside else None)


def _attempts(counters: str) -> int:
    lines = [line.split() for line in counters.splitlines() if line.strip()]
    found = 0
    for names, values in pairwise(lines):
        protocol = names[0].rstrip(":")
        if names[0] == values[0] and protocol in METERS:
            found += sum(int(values[names.index(meter)]) for meter in METERS[protocol])
    return found + sum(int(line[1]) for line in lines if line[0] in METERS["Ip6"])
