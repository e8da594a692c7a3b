"""``alpha-id index build``: the one place where the runtime calls the builder, and only when asked to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from alpha_id_runtime.cli.common import resolved_config
from alpha_id_runtime.errors import UsageError
from alpha_id_runtime.layout import StorageLayout

if TYPE_CHECKING:
    import argparse

    from alpha_id_assets.building import Step


def run(options: argparse.Namespace) -> int:
    """Build, publish and return 0.

    Raises:
        UsageError: the builder's own dependencies are not installed.
    """
    try:
        from alpha_id_assets import building  # noqa: PLC0415 -- heavy, and not installed on a query machine
    except ModuleNotFoundError as error:
        raise UsageError(
            f"Building needs the extra [assets] ({error.name} is missing): pip install 'alpha-id[assets]'"
        ) from error
    config = resolved_config(options).config
    building.build_lexical(StorageLayout(config.storage), config, _report)
    return 0


def _report(step: Step) -> None:
    counts = ", ".join(f"{name} {count:,}" for name, count in step.counts.items())
    sys.stderr.write(f"{step.name:<18} {step.seconds:6.1f} s  {counts}\n")
    for warning in step.warnings:
        sys.stderr.write(f"{'':<18} warning: {warning}\n")
