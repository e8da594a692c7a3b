"""From a rule's verdict to what Dagster shows of it. Refuses: rules."""

import dagster as dg

from alpha_id_assets.assets.reporting import say
from alpha_id_assets.checks.rules import Verdict


def shown(
    name: str, verdict: Verdict, severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
) -> dg.AssetCheckResult:
    """Return the result of check ``name``; what failed is told on the console too."""
    if not verdict.passed:
        failed = severity == dg.AssetCheckSeverity.ERROR
        say(f"{'alpha-id: check failed' if failed else 'warning'}: {name}: {verdict.words}")
    return dg.AssetCheckResult(
        passed=verdict.passed, severity=severity, description=verdict.words, metadata=verdict.details
    )
