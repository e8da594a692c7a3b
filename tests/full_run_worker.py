"""Full runs against a test hub, each a process of its own that can be killed; the imports are paid for once.

Usage: ``full_run_worker.py DATA STORAGE BASE_URL``. For each line on standard input it forks a full run as
confirmed on the command line, prints its process id, waits for it, prints its exit status (negative: the
signal). Nothing that starts threads is imported before a fork.
"""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import replace
from pathlib import Path

from alpha_id_assets.full_build import Confirmation, Told, build_full
from alpha_id_runtime.layout import StorageLayout
from tests.hub_builds import hub_config

BATCH, IN_FLIGHT = 16, 2


def run(data: Path, storage: Path, url: str) -> None:
    """Run to the end."""
    config = hub_config(url, storage, data=data)
    config = replace(config, hub=replace(config.hub, batch_size=BATCH, concurrency=IN_FLIGHT))
    told = Told(lambda _: None, lambda _: None, lambda *_: None)
    build_full(StorageLayout(storage), config, told, Confirmation())


def main() -> None:
    """Fork on demand."""
    data, storage, url = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                run(data, storage, url)
            except BaseException:  # noqa: BLE001 -- a child must not go on in the parent's loop
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(child, flush=True)  # noqa: T201 -- how the test learns it
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
