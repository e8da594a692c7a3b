"""The check of ``eval_report``: a thin shell around ``figures_hold``. Refuses: blocking anything."""

import dagster as dg

from alpha_id_assets.assets.evaluation import eval_report
from alpha_id_assets.assets.reporting import failing_in_words
from alpha_id_assets.checks.results import shown
from alpha_id_assets.evaluation_steps import figures_hold
from alpha_id_assets.resources import AlphaIdResource


@dg.asset_check(asset=eval_report)
def leading_figures_hold(alpha_id: AlphaIdResource) -> dg.AssetCheckResult:
    """No leading figure lies below the interval of the last report on the same cases."""
    with failing_in_words():
        return shown("leading_figures_hold", figures_hold(alpha_id.storage()), dg.AssetCheckSeverity.WARN)


CHECKS = [leading_figures_hold]
