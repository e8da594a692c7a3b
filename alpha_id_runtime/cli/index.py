"""``alpha-id index build``: from files to a published build, with the estimate before what costs."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from alpha_id_runtime.cli import builder
from alpha_id_runtime.cli.common import resolved_config
from alpha_id_runtime.layout import StorageLayout

if TYPE_CHECKING:
    import argparse

    from alpha_id_assets.building import Step
    from alpha_id_assets.gate import Estimate

_BAR = 30


def run(options: argparse.Namespace) -> int:
    """Build, publish and return 0.

    Raises:
        UsageError: the builder's own dependencies are not installed.
    """
    full_build = builder.load("full_build", "Building")
    config = resolved_config(options).config
    storage = StorageLayout(config.storage)
    told = full_build.Told(_step, _estimate, _progress)
    if options.sample is not None:
        showing = full_build.Told(_step_with_examples, _estimate, _progress)
        full_build.build_sample(storage, config, options.sample, showing)
    elif options.full:
        confirmation = full_build.Confirmation(options.limit_euros, options.limit_tokens)
        full_build.build_full(storage, config, told, confirmation if options.confirm else None)
    else:
        full_build.build_lexical(storage, config, _step)
    return 0


def _step(step: Step) -> None:
    counts = ", ".join(f"{name} {count:,}" for name, count in step.counts.items())
    sys.stderr.write(f"{step.name:<18} {step.seconds:6.1f} s  {counts}\n")
    for warning in step.warnings:
        sys.stderr.write(f"{'':<18} warning: {warning}\n")


def _step_with_examples(step: Step) -> None:
    """Show what phrases of the corpus found as well: public texts, never those of users."""
    _step(step)
    for each in step.details.get("examples", ()):
        found = f"{each['cosine']:.3f} {each['code']:<7} {each['found']}"
        sys.stderr.write(f"{'':<18} {each['asked']}: {found}\n")


def _estimate(wanted: Estimate) -> None:
    if wanted.euros is None:
        price = "an unknown price"
    else:
        # Rounded up: the amount shown is one that suffices as a limit.
        price = f"{math.ceil(wanted.euros * 1e4) / 1e4:.4f} euros" if wanted.euros else "free of charge"
    sys.stderr.write(
        f"{'full run':<18} {wanted.phrases:,} phrases, {wanted.cached:,} of them cached; to embed: "
        f"{wanted.missing:,}, about {wanted.tokens:,} tokens, {price}\n"
    )


def _progress(what: str, done: int, total: int) -> None:
    """Draw a bar in a terminal; elsewhere say nothing, the finished step does."""
    if not sys.stderr.isatty() or not total:
        return
    filled = _BAR * done // total
    end = "\n" if done >= total else ""
    sys.stderr.write(f"\r{what:<18} [{'#' * filled}{'.' * (_BAR - filled)}] {done:,}/{total:,}{end}")
    sys.stderr.flush()
