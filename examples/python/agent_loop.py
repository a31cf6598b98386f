"""An agent loop with checkpoints. An attempt is kept if the tests pass, and rolled back if they fail.

Run it anywhere; it works in a temporary directory. `ask_model` stands in for a model: its first answer is wrong.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from backtrail import Workspace

ANSWERS = ["def double(x):\n    return x ** 2\n", "def double(x):\n    return x * 2\n"]


def ask_model(messages: list[dict[str, str]]) -> str:
    return ANSWERS[sum(message["role"] == "assistant" for message in messages)]


def tests_pass(project: Path) -> bool:
    test = "from double import double; assert [double(n) for n in (0, 2, 5)] == [0, 4, 10]"
    return subprocess.run([sys.executable, "-c", test], cwd=project, capture_output=True).returncode == 0


def main(project: Path) -> None:
    workspace = Workspace(project)
    messages = [{"role": "user", "content": "write double(x)"}]
    while True:
        with workspace.guard(f"attempt {len(messages)}") as attempt:
            answer = ask_model(messages)
            (project / "double.py").write_text(answer)
            passed = tests_pass(project)
            if not passed:
                attempt.rollback()
        messages.append({"role": "assistant", "content": answer})
        if passed:
            saved = workspace.save("the tests pass", kind="feature", conversation=messages)
            print(f"kept {saved.checkpoint.short_id}: {saved.checkpoint.message}")
            return
        print(f"rolled back {attempt.checkpoint.short_id}: the tests failed")
        messages.append({"role": "user", "content": "the tests failed, try again"})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(Path(directory))
