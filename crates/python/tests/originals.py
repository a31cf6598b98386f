"""A virtual environment with the packages that the drop-ins replace."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import backtrail

REQUIREMENTS = ["praisonaiagents==1.7.17", "architect-ai-cli==1.1.0", "fabricatio-checkpoint==0.3.6"]
"""The versions that the drop-ins are compared with. The last two need Python 3.12."""


def environment(directory: Path) -> Path | None:
    """Returns the interpreter of an environment with all these packages. Creates the environment if it is missing.

    Returns `None` if Python 3.12 is missing, or if the packages can't be installed.
    """
    python = directory / "bin/python"
    if not (directory / "complete").exists():
        found = next(_interpreters(), None)
        if found is None:
            return None
        subprocess.run([found, "-m", "venv", "--clear", directory], check=True)
        line = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS]
        if subprocess.run(line).returncode != 0:
            return None
        (directory / "complete").touch()
    _add_backtrail(directory)
    return python


def _interpreters() -> Iterator[str]:
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    named = [shutil.which("python3.12") or "python3.12", *map(str, home.glob(".pyenv/versions/3.12.*/bin/python3.12"))]
    for path in filter(os.path.exists, named):
        # The file may be a pyenv shim for a version that is not installed.
        found = subprocess.run([path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
        if found.stdout.strip() == "(3, 12)":
            yield path


def _add_backtrail(directory: Path) -> None:
    """Links the package under test into the environment. The wheel works with Python 3.10 and newer."""
    packages = next((directory / "lib").glob("python3.*")) / "site-packages"
    link = packages / "backtrail"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(backtrail.__file__).parent)
