"""The command that the package includes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from conftest import Project
from test_processes import holding

import backtrail
from backtrail import Workspace


def run(*words: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "backtrail", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


def test_python_m_backtrail_is_the_command_line(project: Project) -> None:
    project.write("a", "1")
    assert run("--version").stdout == f"backtrail {backtrail.__version__}\n"
    done = run("-w", project.path, "--json", "save", "first")
    assert done.returncode == 0 and json.loads(done.stdout)["checkpoint"]["message"] == "first"
    assert Workspace(project).get("@").message == "first"
    missing = run("-w", project.path, "show", "nope")
    assert missing.returncode == 3 and "nope" in missing.stderr and missing.stdout == ""
    assert run("frob").returncode == 2


def test_the_script_is_installed(project: Project) -> None:
    script = Path(sysconfig.get_path("scripts")) / "backtrail"
    if not script.exists():
        pytest.skip("the package is not installed, only on the path")
    done = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert done.stdout == f"backtrail {backtrail.__version__}\n"


def test_the_command_can_start_itself_again() -> None:
    done = run("demo", "--crash")
    assert done.returncode == 0, done.stderr
    assert "files contain" in done.stdout and "kill -9" in done.stdout


def test_install_writes_hooks_that_start_the_interpreter(project: Project) -> None:
    shown = run("-w", project.path, "install", "claude", "--dry-run")
    assert f"{sys.executable} -m backtrail hook claude" in shown.stdout


def test_ctrl_c_ends_the_command(project: Project) -> None:
    workspace = Workspace(project)
    workspace.init()
    with holding(workspace.store):
        line = [sys.executable, "-m", "backtrail", "-w", str(project.path), "save"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == -signal.SIGINT
