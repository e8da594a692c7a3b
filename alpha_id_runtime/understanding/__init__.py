"""The understanding of a phrase: a pure layer before retrieval.

Holds: ``understand`` and what it answers with. Refuses: retrieval, editions, anything beyond the tables under
``alpha_id_runtime/tables``, which are read on the first call and kept.
"""

from alpha_id_runtime.understanding.mining import mine_abbreviations
from alpha_id_runtime.understanding.reading import Degree, Reading, Variant
from alpha_id_runtime.understanding.scales import check_scales
from alpha_id_runtime.understanding.understand import understand

__all__ = ["Degree", "Reading", "Variant", "check_scales", "mine_abbreviations", "understand"]
