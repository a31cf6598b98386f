"""The plugins and the extension of this repository, in place of the files that `install` writes."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import parts
from scene import FILES, Scene, Wrong

READY = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = {
    "claude": [],
    "codex": [["plugin", "marketplace", "add", str(READY)], ["plugin", "add", "backtrail@backtrail"]],
    "gemini": [["extensions", "link", str(READY / "gemini"), "--consent"]],
}


def load(scene):
    """Installs the plugin with the agent's own commands. The plugin looks for the program on the PATH."""
    (scene.root / "bin").mkdir()
    (scene.root / "bin/backtrail").symlink_to(scene.binary)
    scene.env["PATH"] = f"{scene.root / 'bin'}:{scene.env['PATH']}"
    if scene.agent.name == "claude":
        scene.plugin_words = ["--plugin-dir", str(READY / "claude-code")]
    for words in COMMANDS[scene.agent.name]:
        scene.run([scene.programs.program(scene.agent), *words])


def play(scene):
    load(scene)
    parts.hooks(scene)
    parts.mcp(scene)
    # Codex plugins have no commands.
    if scene.agent.name != "codex":
        scene.prompt("/backtrail:timeline")
        shown = scene.service.bodies[-1]
        scene.check("FIRST prompt" in shown and "FOURTH prompt" in shown, "/backtrail:timeline shows the model the prompts")
    scene.backtrail("rewind", "--turn", str(len(scene.kind("turn"))))
    scene.check(scene.tree() == FILES, "every file is restored")


def play_all(played, options, programs):
    """Plays the plugin of each agent that has one. Returns the number of failures."""
    failed = 0
    for agent in played:
        if agent.name not in COMMANDS:
            continue
        root = pathlib.Path(tempfile.mkdtemp(prefix=f"backtrail-e2e-{agent.name}-")).resolve()
        print(f"{agent.name}: the plugin of this repository", flush=True)
        scene = Scene(agent, os.path.abspath(options.bin), programs, root)
        try:
            play(scene)
            shutil.rmtree(root, ignore_errors=True)
        except (Wrong, subprocess.TimeoutExpired) as wrong:
            failed += 1
            print(f"  FAILED: {wrong}\n  the scene is kept in {root}", flush=True)
        scene.close()
    return failed
