"""Strands Agents with a scripted model."""

import copy
import json
from typing import Any

from scenario import CALLS, PROMPTS, check, delete_file, root, write_file
from strands import Agent, tool
from strands.models import Model

from backtrail.integrations.strands import CheckpointPlugin


class Scripted(Model):
    def __init__(self) -> None:
        self.script = self.scripted()

    def scripted(self) -> Any:
        for number, (name, arguments) in enumerate([*CALLS, CALLS[1]]):
            yield {"toolUse": {"name": name, "toolUseId": f"call-{number}"}}, {"toolUse": {"input": json.dumps(arguments)}}
            yield {}, {"text": "done"}

    def update_config(self, **named: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError
        yield

    async def stream(self, *arguments: Any, **named: Any) -> Any:
        start, delta = next(self.script)
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if start else "end_turn"}}


turns = CheckpointPlugin(root)
agent = Agent(model=Scripted(), tools=[tool(write_file), tool(delete_file)], plugins=[turns], callback_handler=None)


def state() -> Any:
    return copy.deepcopy(agent.messages)


states = [state()]
for prompt in PROMPTS:
    agent(prompt)
    states.append(state())
check(turns, states, lambda number: turns.rewind_agent(agent, number), state, lambda: agent(PROMPTS[1]))
