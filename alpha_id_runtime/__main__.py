"""``python -m alpha_id_runtime`` and the console script ``alpha-id``.

Holds: turning every error into one paragraph and its exit code. Refuses: commands (``cli``).
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from alpha_id_runtime.cli.parser import make_parser
from alpha_id_runtime.errors import AlphaIdError

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 2 wrong use, 3 artefacts, 4 sources."""
    options = make_parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except AlphaIdError as error:
        if options.debug:
            traceback.print_exc()
        sys.stderr.write(f"alpha-id: {error}\n")
        return error.exit_code or 1
    except KeyboardInterrupt:
        sys.stderr.write("alpha-id: interrupted\n")
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is wrong, and nothing may complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
