"""The shape of an evaluation: every figure that the table, the JSON file and the page show.

Holds: frozen dataclasses and their plain form. Refuses: computing a figure or laying one out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from alpha_id_runtime.evaluation.cases import cases_digest, cases_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from alpha_id_runtime.evaluation.cases import Case
    from alpha_id_runtime.evaluation.measures import Bin, Figure

SCHEMA = 1
KINDS = {
    "held_out": "Held out: a wording that the corpus lacks (leading)",
    "noise": "Noise: a phrase as dictation misspells it",
    "paraphrase": "Paraphrase: a phrase in other words",
    "gold": "Gold: hand-labelled phrases",
    "self": "Self-retrieval (inflated: the very phrase is in the index)",
}  # in the order they are shown


@dataclass(frozen=True)
class Slice:
    """The leading measure on the cases that share a property."""

    by: str
    name: str
    figure: Figure


@dataclass(frozen=True)
class Miss:
    """A case whose gold code is not among the ten, with what was offered instead (code and score)."""

    case_id: str
    text: str
    gold: tuple[str, ...]
    done: tuple[str, ...]
    offered: tuple[tuple[str, float], ...]
    error: str | None


@dataclass(frozen=True)
class Outcome:
    """What became of one case: ranks of its gold codes (billable ones, from 1) and the codes offered."""

    case_id: str
    ranks: tuple[int | None, ...]
    offered: tuple[str, ...]
    error: str | None


@dataclass(frozen=True)
class Block:
    """One kind of cases in one mode.

    Args:
        figures: measure -> mean over the cases with a gold code.
        subsets: the same without cases of a kind ("without non-terminal gold", "without cases that need
            context").
        coverage: distinct codes offered in all; per case siblings of a gold code shown, suggestions, and the
            share of cases with a gold code that were skipped as no diagnosis.
        slices: the leading measure by chapter, noise, length, phrases of the code, origin of the first
            suggestion.
        bins: reliability plot of the first suggestions.
        calibration_error: expected calibration error; None where scores are no probabilities.
        no_diagnosis: share of lines without a diagnosis that got a suggestion all the same.
        errors: cases that ended in an error; each is a miss.
        misses: the fifty whose wrong first suggestion has the highest score.
    """

    kind: str
    mode: str
    figures: Mapping[str, Figure]
    subsets: Mapping[str, Mapping[str, Figure]]
    coverage: Mapping[str, float]
    slices: tuple[Slice, ...]
    bins: tuple[Bin, ...]
    calibration_error: float | None
    no_diagnosis: Figure
    errors: int
    misses: tuple[Miss, ...]
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Omission:
    """What an extractor that forgets lines costs.

    Args:
        rate: probability that a line is dropped.
        kept: share of gold codes whose line is still there: no matcher can find more, but by chance.
        recall: share of all gold codes found within ten.
        loss: recall of the whole list minus ``recall``: the extractor's part, apart from the matcher's.
    """

    rate: float
    kept: Figure
    recall: Figure
    loss: Figure


@dataclass(frozen=True)
class ListBlock:
    """The gold lists in one mode: share of a list's gold codes in its one answer, pooled over lists."""

    mode: str
    recall_in_ten: Figure
    recall_in_twice_lines: Figure
    omissions: tuple[Omission, ...]


@dataclass(frozen=True)
class Cost:
    """What one mode took: milliseconds a case (its share of a batch), hub calls, euros, share degraded."""

    mode: str
    milliseconds: Mapping[str, float]
    hub_calls: int
    euros: float
    degraded: float


@dataclass(frozen=True)
class Difference:
    """Mode A minus mode C on the same cases."""

    kind: str
    measure: str
    figure: Figure


@dataclass(frozen=True)
class Extraction:
    """Gold diagnoses of the dictations that a generous extractor finds as a line: the ceiling of the rest."""

    found: int
    total: int


@dataclass(frozen=True)
class EvaluationResult:
    """All figures of one run.

    Args:
        provenance: editions, build, version, configuration, as the caller names them.
    """

    seed: int
    provenance: Mapping[str, Any]
    cases: tuple[Case, ...]
    blocks: tuple[Block, ...]
    differences: tuple[Difference, ...]
    lists: tuple[ListBlock, ...]
    costs: tuple[Cost, ...]
    extraction: Extraction | None = None
    schema: int = field(default=SCHEMA)

    def block(self, kind: str, mode: str) -> Block | None:
        """Return the block of a kind and mode, if it was run."""
        return next((b for b in self.blocks if (b.kind, b.mode) == (kind, mode)), None)

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that were run, in order."""
        return tuple(dict.fromkeys(b.mode for b in self.blocks))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of cases that were run, the leading one first."""
        present = {b.kind for b in self.blocks}
        return tuple(kind for kind in KINDS if kind in present)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries and lists, ready for ``json.dumps``."""
        plain = asdict(replace(self, cases=()))
        return {**plain, "cases_digest": cases_digest(self.cases), "cases": cases_to_json(self.cases)}

    def figures(self) -> dict[str, Any]:
        """Return what two runs with one seed must share: all but the clock's readings and the provenance."""
        plain = self.to_dict()
        for cost in plain["costs"]:
            del cost["milliseconds"]
        del plain["provenance"]
        return plain
