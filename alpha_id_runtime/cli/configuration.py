"""``alpha-id config``: every setting, its value and where it comes from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from alpha_id_runtime.cli.common import print_json, print_lines, resolved_config, wants_json
from alpha_id_runtime.config import listing

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print the settings that hold and return 0."""
    rows = listing(resolved_config(options))
    if wants_json(options):
        print_json(rows)
        return 0
    widest = max(map(len, rows))
    print_lines(
        [
            f"{key:<{widest}}  {json.dumps(row['value'], ensure_ascii=False):<28}  {row['from']}"
            for key, row in rows.items()
        ]
    )
    return 0
