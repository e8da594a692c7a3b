"""What all commands share: resolving the configuration, choosing the output, printing JSON.

Holds: nothing a command could own. Refuses: any command's text.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from alpha_id_runtime.cli.parser import FLAGS
from alpha_id_runtime.config import Resolved, resolve
from alpha_id_runtime.errors import UsageError

if TYPE_CHECKING:
    import argparse


def resolved_config(options: argparse.Namespace) -> Resolved:
    """Return the configuration with the command's flags laid over it."""
    flags = {setting: getattr(options, name, None) for name, setting in FLAGS.items()}
    return resolve(options.config).with_flags(flags)


def wants_json(options: argparse.Namespace) -> bool:
    """Tell whether to print JSON: as asked for, else a table in a terminal and JSON when piped."""
    return bool(options.json or not (options.table or (sys.stdout and sys.stdout.isatty())))


def print_json(value: Any) -> None:
    """Print ``value`` as UTF-8 JSON, whatever the locale's encoding is."""
    _write(json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n")


def print_lines(lines: list[str]) -> None:
    """Print lines as UTF-8, whatever the locale's encoding is."""
    _write("".join(f"{line}\n" for line in lines).encode())


def _write(data: bytes) -> None:
    """Write to standard output at once.

    Raises:
        UsageError: it is closed or full.
        BrokenPipeError: its reader went away.
    """
    if sys.stdout is None:
        raise UsageError("Standard output is closed: there is nowhere to write the answer.")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is left in the buffer must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UsageError(f"The answer cannot be written to standard output ({error.strerror}).") from error
