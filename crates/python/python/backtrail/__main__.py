"""The ``backtrail`` command."""

from __future__ import annotations

import os
import signal
import sys

from ._native import run_command


def main() -> int:
    """Runs the command with the arguments of this process. Returns its exit status."""
    # Ctrl-C ends the command like any other program. Python's handler would run only after the command has returned.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["backtrail", *sys.argv[1:]], _starts())


def _starts() -> list[str]:
    """Returns the words that start this command again. They are written into the hooks of agents."""
    script = os.path.abspath(sys.argv[0])
    if os.path.basename(script) == "backtrail" and os.access(script, os.X_OK):
        return [script]
    return [sys.executable, "-m", "backtrail"]


if __name__ == "__main__":
    sys.exit(main())
