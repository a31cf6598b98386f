"""Checkpoints for smolagents.

>>> turns = CheckpointCallbacks("path/to/project")
>>> agent = turns.attach(ToolCallingAgent(tools, model))
>>> turns.run(agent, "add tests")
>>> turns.rewind_agent(agent)                           # files and memory as before that prompt
"""

from __future__ import annotations

from typing import Any

from .turns import Rewound, Turns, checkpointed_tool

__all__ = ["CheckpointCallbacks"]


class CheckpointCallbacks(Turns):
    """Takes a checkpoint for each task, and before and after each tool.

    smolagents calls its ``step_callbacks`` only at the end of a step, so that the tools themselves are wrapped.
    """

    agent: str = "smolagents"

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._steps: dict[str, list[Any]] = {}

    def attach(self, agent: Any) -> Any:
        """Wraps the tools of an agent. Returns the agent."""
        for name, tool in agent.tools.items():
            tool.forward = checkpointed_tool(self, name)(tool.forward)
        return agent

    def run(self, agent: Any, task: str, **named: Any) -> Any:
        """Runs a task, like ``agent.run`` without a reset. Takes the checkpoint of the task first."""
        steps = list(agent.memory.steps)
        checkpoint = self.begin_turn(task, [step.dict() for step in steps])
        self._steps[checkpoint.id] = steps
        return agent.run(task, reset=False, **named)

    def rewind_agent(self, agent: Any, turns: int = 1) -> Rewound:
        """Goes back to before a task: the files, and the memory of the agent.

        smolagents can't read its steps back, so that this process must have run the task. `Turns.rewind` restores the
        files in any process, and returns the steps as dictionaries.
        """
        target = self.checkpoint_of_turn(turns)
        steps = self._steps[target.id]
        rewound = self.rewind(turns)
        agent.memory.steps[:] = steps
        return rewound
