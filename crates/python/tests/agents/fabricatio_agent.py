"""An agent of the real fabricatio_core with the mixin."""

import json
import os
import sys
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["FABRICATIO_EXT__CHECKPOINT__CHECKPOINT_DIR"] = sys.argv[2]

import fabricatio_core  # noqa: E402, F401
from fabricatio_core.capabilities.usages import UseLLM  # noqa: E402

from backtrail.compat.fabricatio import Checkpoint  # noqa: E402

workspace = Path(sys.argv[1])


class Agent(Checkpoint):
    name: str = "agent"
    description: str = "an agent"


(workspace / "a").write_text("1")
(workspace / "b").write_text("1")
agent = Agent(worktree_dir=workspace).mount_checkpoint_store()
first = agent.save_checkpoint("first")
(workspace / "a").write_text("2")
(workspace / "b").write_text("2")
second = agent.save_checkpoint()
seen = {"is one of theirs": issubclass(Agent, UseLLM), "id": len(first), "diff": "+2" in agent.get_file_diff(second, "a")}
agent.rollback(first, "a")
seen["one file"] = [(workspace / name).read_text() for name in "ab"]
agent.reset_to_checkpoint(first)
seen["all files"] = [(workspace / name).read_text() for name in "ab"]
agent.unmount_checkpoint_store()
try:
    agent.save_checkpoint()
except ValueError as problem:
    seen["without a store"] = str(problem)
seen["checkpoints lie where they should"] = bool(list(Path(sys.argv[2]).iterdir()))
print(json.dumps(seen))
