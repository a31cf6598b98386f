"""A home and a project for one agent, with the agent's model replaced by a stand-in."""

import json
import os
import pathlib
import subprocess
import time

FILES = {
    "app.txt": "greeting = 'hello'\n",
    "doomed.txt": "to be deleted\n",
    "lib/a.txt": "in a directory\n",
    "private/notes.txt": "ignored by git\n",
    ".env": "SECRET=1\n",
    ".gitignore": ".env\nprivate/\n",
}
PATIENCE_SECONDS = 300


class Wrong(Exception):
    """A check failed."""


class Scene:
    """One agent with its own home and project. A project can be shared by several scenes."""

    def __init__(self, agent, binary, programs, root, record=None, project=None):
        self.agent, self.binary, self.programs, self.root = agent, binary, programs, root
        self.home, self.project = root / "home", project or root / "project"
        self.notes = []
        self.plugin_words = []
        self.env = {
            "PATH": programs.path(), "HOME": str(self.home), "BACKTRAIL_HOME": str(self.project.parent / "backtrail"),
            "TERM": "dumb", "LANG": "C.UTF-8", "TMPDIR": str(root / "tmp"), "NO_COLOR": "1", "DO_NOT_TRACK": "1",
        }
        for place in (self.home, root / "tmp"):
            place.mkdir(parents=True)
        if project is None:
            self.make_project()
        self.service = agent.interface(self.project)
        self.env.update(agent.prepare(self))
        self.program = self.recorder(record) if record else binary
        first = agent.first(self)
        if first:
            self.run([programs.program(agent), *first])

    def make_project(self):
        self.project.mkdir(parents=True)
        for name, text in FILES.items():
            (self.project / name).parent.mkdir(exist_ok=True)
            (self.project / name).write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=self.project, env=self.env, check=True)

    def recorder(self, directory):
        """Returns a program that writes the payload of each hook into a file, and then does what Backtrail does."""
        directory.mkdir(parents=True, exist_ok=True)
        place = self.root / "recorder/backtrail"
        place.parent.mkdir()
        place.write_text(
            '#!/bin/sh\n[ "$1" = hook ] || exec ' + f"'{self.binary}'" + ' "$@"\n'
            f"file='{directory}'/$(date +%s%N).json; cat >\"$file\"; exec '{self.binary}' \"$@\" <\"$file\"\n"
        )
        place.chmod(0o755)
        return str(place)

    def run(self, words, program=None):
        done = subprocess.run(
            words, cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE_SECONDS,
        )
        if done.returncode:
            name = pathlib.Path(words[0]).name
            raise Wrong(f"{name} {' '.join(words[1:3])} ended with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")
        return done.stdout

    def prompt(self, text, session=None):
        began = time.monotonic()
        self.run([self.programs.program(self.agent), *self.agent.words(self, text, session)])
        self.note(f"prompt {text!r}: done in {time.monotonic() - began:.1f} s")

    def backtrail(self, *words):
        return json.loads(self.run([self.program if words[0] == "install" else self.binary, "--json", *words]))

    def kind(self, kind):
        found = self.backtrail("list", "--kind", kind)["checkpoints"]
        return list(reversed(found))

    def tree(self):
        files = (path for path in self.project.rglob("*") if ".git" not in path.parts and path.is_file())
        return {str(path.relative_to(self.project)): path.read_text() for path in files}

    def note(self, text):
        print(f"  {text}", flush=True)

    def check(self, holds, what):
        if not holds:
            raise Wrong(what)
        self.note(what)

    def wait_for(self, holds, what):
        """Waits until a condition holds, for work that goes on after the agent has ended."""
        deadline = time.monotonic() + 60
        while not holds():
            if time.monotonic() > deadline:
                raise Wrong(what)
            time.sleep(0.2)
        self.note(what)

    def close(self):
        self.service.close()
