"""Where the full-size reference data lies, and the mark of tests that need it."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the reference data ../shared/data is not beside the checkout"
)
