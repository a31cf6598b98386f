"""The measured tools, all with the same methods: forget, save, restore_file, restore_all, store."""

import os
import shutil
import subprocess
import time


class Failed(Exception):
    """A command failed."""


class Tool:
    """One tool with its own store.

    Each method that runs a command returns milliseconds. `peak` is the peak memory of the largest process, in megabytes.
    """

    name = ""
    is_ours = False

    def __init__(self, scratch, tree):
        self.tree, self.home, self.peak = tree, scratch / self.name.replace(" ", "-"), 0.0
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(scratch / "home"), "BACKTRAIL_HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "RESTIC_PASSWORD": "x",
            "XDG_CACHE_HOME": str(scratch / "home/cache"), "JJ_USER": "x", "JJ_EMAIL": "x@example.invalid",
            **{f"GIT_{who}_{what}": "x@example.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }

    def run(self, *words, cwd=None):
        """Runs a command and waits for its end."""
        began = time.perf_counter()
        process = subprocess.Popen(
            words, cwd=cwd or self.tree, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        complaint = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        took = (time.perf_counter() - began) * 1000
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
        if process.returncode:
            raise Failed(f"{' '.join(map(str, words))}: {complaint.decode(errors='replace')}")
        self.peak = max(self.peak, usage.ru_maxrss / 1000)
        self.cpu = (usage.ru_utime + usage.ru_stime) * 1000
        return took

    def forget(self):
        """Removes the store and creates an empty one."""
        shutil.rmtree(self.home, ignore_errors=True)

    def store(self):
        """Returns the directory of the store."""
        return self.home


class Backtrail(Tool):
    name = "backtrail"
    is_ours = True

    def __init__(self, scratch, tree, binary):
        super().__init__(scratch, tree)
        self.binary = binary

    def command(self, *words):
        return self.run(self.binary, "-w", str(self.tree), "-q", *words)

    def save(self):
        return self.command("save", "x", "--allow-empty")

    def restore_file(self, path):
        return self.command("restore", "@", str(path))

    def restore_all(self):
        return self.command("restore", "@")


class GitCommit(Tool):
    """The method of Cline, Roo and PraisonAI: a shadow repository with `git add -A` and `git commit`."""

    name = "git commit"

    def git(self, *words):
        return self.run("git", f"--git-dir={self.home}", f"--work-tree={self.tree}", "-c", "gc.auto=0", "-c", "maintenance.auto=false", *words)

    def forget(self):
        super().forget()
        self.run("git", "init", "-q", "--bare", str(self.home))

    def save(self):
        return self.git("add", "-A") + self.git("commit", "-q", "--allow-empty", "--no-verify", "-m", "x")

    def restore_file(self, path):
        return self.git("checkout", "-q", "HEAD", "--", str(path.relative_to(self.tree)))

    def restore_all(self):
        return self.git("reset", "-q", "--hard")


class GitTree(GitCommit):
    """The method of opencode: `git add -A` and `git write-tree`, with the id of the tree kept elsewhere."""

    name = "git tree"

    def save(self):
        return self.git("add", "-A") + self.git("write-tree")

    def restore_file(self, path):
        return self.git("checkout", "-q", "--", str(path.relative_to(self.tree)))

    def restore_all(self):
        return self.git("checkout-index", "-q", "-a", "-f", "-u")


class Jujutsu(Tool):
    name = "jj"

    def forget(self):
        super().forget()
        shutil.rmtree(self.tree / ".jj", ignore_errors=True)
        self.run("jj", "git", "init", "--no-colocate")

    def save(self):
        return self.run("jj", "commit", "-q", "-m", "x")

    def restore_file(self, path):
        return self.run("jj", "restore", "-q", str(path))

    def restore_all(self):
        return self.run("jj", "restore", "-q")

    def store(self):
        return self.tree / ".jj"


class Restic(Tool):
    name = "restic"

    def forget(self):
        super().forget()
        self.run("restic", "-q", "-r", str(self.home), "init")

    def save(self):
        return self.run("restic", "-q", "-r", str(self.home), "backup", ".")

    def restore_file(self, path):
        return self.run("restic", "-q", "-r", str(self.home), "restore", "latest", "--target", str(self.tree), "--include", str(path))

    def restore_all(self):
        return self.run("restic", "-q", "-r", str(self.home), "restore", "latest", "--target", str(self.tree))


def installed(scratch, tree, binary, wanted):
    """Returns the installed tools, Backtrail first."""
    tools = [Backtrail(scratch, tree, binary)]
    for kind, program in ((GitCommit, "git"), (GitTree, "git"), (Jujutsu, "jj"), (Restic, "restic")):
        if shutil.which(program) and (not wanted or kind.name in wanted):
            tools.append(kind(scratch, tree))
    return tools

