"""What all commands share: resolving the configuration, choosing the output, printing JSON.

Holds: nothing a command could own. Refuses: any command's text.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from alpha_id_runtime.cli.parser import FLAGS
from alpha_id_runtime.config import Resolved, resolve

if TYPE_CHECKING:
    import argparse


def resolved_config(options: argparse.Namespace) -> Resolved:
    """Return the configuration with the command's flags laid over it."""
    flags = {setting: getattr(options, name, None) for name, setting in FLAGS.items()}
    return resolve(options.config).with_flags(flags)


def wants_json(options: argparse.Namespace) -> bool:
    """Tell whether to print JSON: as asked for, else a table in a terminal and JSON when piped."""
    return bool(options.json or not (options.table or sys.stdout.isatty()))


def print_json(value: Any) -> None:
    """Print ``value`` as UTF-8 JSON, whatever the locale's encoding is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n")
    sys.stdout.buffer.flush()


def print_lines(lines: list[str]) -> None:
    """Print lines as UTF-8, whatever the locale's encoding is."""
    sys.stdout.flush()
    sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode())
    sys.stdout.buffer.flush()
