"""Runs a script that was written for another system, with only its import changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parent / "scripts"

IMPORTS = {
    "from praisonaiagents.checkpoints import": "from backtrail.compat.praisonai import",
    "from architect.features.checkpoints import": "from backtrail.compat.architect import",
    "from fabricatio_checkpoint.rust import": "from backtrail.compat.fabricatio import",
    "from scripts.checkpoint_manager import": "from backtrail.compat.checkpoint_manager import",
}


def with_our_import(name: str) -> str:
    source = (SCRIPTS / f"{name}.py").read_text()
    changed = source
    for theirs, ours in IMPORTS.items():
        changed = changed.replace(theirs, ours)
    assert changed.count("backtrail") == 1, "only one import changes"
    return changed


def run(source: str, directory: Path, python: str | Path = sys.executable) -> Any:
    """Runs the script in a new workspace below `directory`. Returns the results that it prints as JSON."""
    workspace = directory / "workspace"
    workspace.mkdir(parents=True)
    script = directory / "script.py"
    script.write_text(source)
    line = [python, script, workspace, directory / "storage"]
    done = subprocess.run(line, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
