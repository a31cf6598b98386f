"""Pydantic AI with a scripted model."""

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from scenario import CALLS, PROMPTS, check, delete_file, root, write_file

from backtrail.integrations.pydantic_ai import Checkpoints


def scripted() -> Any:
    for name, arguments in [*CALLS, CALLS[1]]:
        yield ModelResponse(parts=[ToolCallPart(name, arguments)])
        yield ModelResponse(parts=[TextPart("done")])


script = scripted()
turns = Checkpoints(root)
agent = Agent(FunctionModel(lambda messages, told: next(script)), tools=[write_file, delete_file], capabilities=[turns])
history: list[Any] = []


def run(prompt: str) -> None:
    history[:] = agent.run_sync(prompt, message_history=history).all_messages()


def rewind(number: int) -> Any:
    rewound = asyncio.run(turns.arewind(number))
    history[:] = turns.messages(rewound)
    return rewound


states: list[Any] = [[]]
for prompt in PROMPTS:
    run(prompt)
    states.append(list(history))
check(turns, states, rewind, lambda: history, lambda: run(PROMPTS[1]))
