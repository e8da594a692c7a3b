"""A data folder, a storage and a real Dagster instance in a temporary home, for the tests of the assets."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from alpha_id_assets.definitions import assemble
from alpha_id_assets.resources import AlphaIdResource
from alpha_id_runtime.layout import StorageLayout
from alpha_id_runtime.manifest import Manifest, published_build_id, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from alpha_id_runtime.config import Config

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "data" / "sample"
ALPHA_ID = SAMPLE / "icd10gm2026_alphaidse_edvtxt_sample.txt"
CLAML = SAMPLE / "icd10gm2026syst_claml_sample.xml"


@dataclass
class Home:
    """Everything a run needs, below one folder; ``settings`` go over file and environment."""

    root: Path
    instance: dg.DagsterInstance
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def storage(self) -> StorageLayout:
        """The storage in use."""
        return StorageLayout(self.root / "storage")

    @property
    def data(self) -> Path:
        """The data folder in use; without it the sample that ships is taken."""
        return self.root / "data"

    def put(self, edition: int, *, rows: int | None = None) -> None:
        """Lay official-looking files of ``edition`` into the data folder: the sample's, cut to ``rows``."""
        self.data.mkdir(exist_ok=True)
        lines = ALPHA_ID.read_text(encoding="utf-8").splitlines(keepends=True)[:rows]
        (self.data / f"icd10gm{edition}_alphaidse_edvtxt.txt").write_text("".join(lines), encoding="utf-8")
        (self.data / CLAML.name).write_bytes(CLAML.read_bytes())

    def resource(self, **settings: Any) -> AlphaIdResource:
        """Return the resource over this home's folders."""
        data = self.data if self.data.is_dir() else SAMPLE.parent
        places = {"data": str(data), "storage": str(self.storage.root)}
        return AlphaIdResource(settings={**places, **self.settings, **settings})

    def config(self) -> Config:
        """Return the configuration that holds."""
        return self.resource().config()

    def definitions(self, **settings: Any) -> dg.Definitions:
        """Return the code location over this home's folders."""
        return assemble(alpha_id=self.resource(**settings))

    def run_job(self, name: str, **settings: Any) -> dg.ExecuteInProcessResult:
        """Run a job to its end."""
        job = self.definitions(**settings).resolve_job_def(name)
        return job.execute_in_process(instance=self.instance, raise_on_error=False)

    def published(self) -> Manifest | None:
        """Return the manifest of the published build."""
        build_id = published_build_id(self.storage)
        return None if build_id is None else read_manifest(self.storage.build(build_id))


@contextmanager
def dagster_instance(root: Path) -> Iterator[dg.DagsterInstance]:
    """Yield a real instance that keeps its runs below ``root``."""
    (root / "dagster").mkdir(parents=True)
    quiet = {"python_logs": {"python_log_level": "CRITICAL"}}  # as the environment file has it
    with dg.instance_for_test(quiet, temp_dir=str(root / "dagster")) as instance:
        yield instance


def typed_in_bash(command: str, storage: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``command`` in bash as a user would, with the environment file sourced, in the checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", "ALPHA_ID"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", f"source alpha-id.env && {command}"],
        cwd=ROOT,
        env={**kept, "PATH": path, "ALPHA_ID_STORAGE": str(storage), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
