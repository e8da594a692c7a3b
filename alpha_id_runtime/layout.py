"""The only code that knows a path under ``storage/``.

Holds: names of folders and files. Refuses: reading, writing and any knowledge of what is inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class BuildLayout:
    """The files of one build, published or being built aside."""

    root: Path

    @property
    def manifest(self) -> Path:
        """What the build was made of (JSON)."""
        return self.root / "manifest.json"

    @property
    def codes(self) -> Path:
        """The code table, one row a code (Parquet)."""
        return self.root / "codes.parquet"

    @property
    def rubrics(self) -> Path:
        """All rubrics: code, kind, text, references (Parquet)."""
        return self.root / "rubrics.parquet"

    @property
    def phrases(self) -> Path:
        """The corpus phrases in index order (Parquet)."""
        return self.root / "phrases.parquet"

    @property
    def abbreviations(self) -> Path:
        """Short forms that the corpus itself explains, with their long forms (JSON)."""
        return self.root / "abbreviations.json"

    @property
    def tantivy(self) -> Path:
        """The lexical index (folder)."""
        return self.root / "tantivy"

    @property
    def lance(self) -> Path:
        """The vector index (folder); absent in a lexical-only build."""
        return self.root / "lance"

    @property
    def encoder(self) -> Path:
        """The built-in encoder (folder); absent in a lexical-only build and with a hub."""
        return self.root / "encoder"

    @property
    def prototypes(self) -> Path:
        """One vector a code (npz); absent in a lexical-only build."""
        return self.root / "prototypes.npz"


@dataclass(frozen=True)
class StorageLayout:
    """The storage folder: what assets materialise, the cache of vectors, the builds, Dagster's home."""

    root: Path

    @property
    def entries(self) -> Path:
        """Asset ``alpha_id_entries``."""
        return self.root / "assets" / "alpha_id_entries.parquet"

    @property
    def icd_meta(self) -> Path:
        """Asset ``icd_meta``: the code table."""
        return self.root / "assets" / "icd_meta.parquet"

    @property
    def icd_rubrics(self) -> Path:
        """The rubrics that ``icd_meta`` writes beside its table."""
        return self.root / "assets" / "icd_rubrics.parquet"

    @property
    def corpus_phrases(self) -> Path:
        """Asset ``corpus_phrases``."""
        return self.root / "assets" / "corpus_phrases.parquet"

    @property
    def abbreviations(self) -> Path:
        """The short forms that ``corpus_phrases`` explains, written beside its table (JSON)."""
        return self.root / "assets" / "abbreviations.json"

    @staticmethod
    def note_of(table: Path) -> Path:
        """What lies beside an asset and says what it was made of (JSON)."""
        return table.with_name(f"{table.stem}.note.json")

    @property
    def encoder(self) -> Path:
        """Asset ``encoder`` (folder)."""
        return self.root / "assets" / "encoder"

    @property
    def encoder_holdout(self) -> Path:
        """Asset ``encoder_holdout`` (folder)."""
        return self.root / "assets" / "encoder_holdout"

    @property
    def held_out_encoders(self) -> Path:
        """Encoders trained without the held-out entries of an evaluation, one folder a fingerprint."""
        return self.root / "assets" / "encoders_held_out"

    @property
    def tantivy(self) -> Path:
        """Asset ``tantivy_index`` (folder)."""
        return self.root / "assets" / "tantivy_index"

    @property
    def lance(self) -> Path:
        """Asset ``lance_index`` (folder)."""
        return self.root / "assets" / "lance_index"

    @property
    def vectors(self) -> Path:
        """The cache of vectors, one folder a fingerprint."""
        return self.root / "vectors"

    @property
    def gate(self) -> Path:
        """Sample report, approval and ledger (folder)."""
        return self.root / "gate"

    @property
    def staging(self) -> Path:
        """Where builds are made before they are swapped in."""
        return self.root / "staging"

    @property
    def builds(self) -> Path:
        """The published builds, one folder a build id."""
        return self.root / "builds"

    @property
    def current(self) -> Path:
        """Names the published build (JSON), replaced atomically."""
        return self.root / "current.json"

    @property
    def reports(self) -> Path:
        """Evaluation reports (folder)."""
        return self.root / "reports"

    @property
    def dagster_home(self) -> Path:
        """Dagster's instance (folder)."""
        return self.root / "dagster"

    def build(self, build_id: str) -> BuildLayout:
        """Return the layout of one build."""
        return BuildLayout(self.builds / build_id)
