"""The ``backtrail`` command."""

from __future__ import annotations

import os
import signal
import sys

from ._native import run_command


def main() -> int:
    """Runs the command line of this process."""
    # The command ends at Ctrl-C like any other program; Python's handler would wait for it to come back.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["backtrail", *sys.argv[1:]], _starts())


def _starts() -> list[str]:
    """The words that start this command again: hooks are written with them."""
    script = os.path.abspath(sys.argv[0])
    if os.path.basename(script) == "backtrail" and os.access(script, os.X_OK):
        return [script]
    return [sys.executable, "-m", "backtrail"]


if __name__ == "__main__":
    sys.exit(main())
