"""smolagents with a scripted model."""

from typing import Any

from scenario import CALLS, PROMPTS, check, delete_file, root, write_file
from smolagents import ChatMessage, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

from backtrail.integrations.smolagents import CheckpointCallbacks


def scripted() -> Any:
    for number, (name, arguments) in enumerate([*CALLS, CALLS[1]]):
        for called, given in ((name, arguments), ("final_answer", {"answer": "done"})):
            function = ChatMessageToolCallFunction(name=called, arguments=given)
            call = ChatMessageToolCall(id=f"{called}-{number}", type="function", function=function)
            yield ChatMessage(role="assistant", content="", tool_calls=[call])


script = scripted()


class Scripted(Model):
    def generate(self, *arguments: Any, **named: Any) -> Any:
        return next(script)


turns = CheckpointCallbacks(root)
agent = turns.attach(ToolCallingAgent([tool(write_file), tool(delete_file)], Scripted(), verbosity_level=0))


def state() -> Any:
    return list(agent.memory.steps)


states = [state()]
for prompt in PROMPTS:
    turns.run(agent, prompt)
    states.append(state())
check(turns, states, lambda number: turns.rewind_agent(agent, number), state, lambda: turns.run(agent, PROMPTS[1]))
