"""LangChain's `create_agent`, and deepagents, with a scripted model."""

import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from scenario import CALLS, PROMPTS, check, delete_file, root, write_file

from backtrail.integrations.langchain import CheckpointMiddleware


class Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **named: Any) -> Any:
        return self


def scripted(calls: Any) -> Any:
    for number, (name, arguments) in enumerate(calls):
        yield AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{number}"}])
        yield AIMessage("done")


turns = CheckpointMiddleware(root)
model = Model(messages=scripted([*CALLS, CALLS[1]]))
tools = [write_file, delete_file]
if "deepagents" in sys.argv:
    from deepagents import create_deep_agent

    from deepagents.backends import FilesystemBackend

    # Its own tool writes, and ours deletes.
    model = Model(messages=scripted([("write_file", {"file_path": "/new", "content": "2"}), CALLS[1], CALLS[1]]))
    backend = FilesystemBackend(root_dir=root, virtual_mode=True)
    agent = create_deep_agent(
        model=model, tools=[delete_file], backend=backend, middleware=[turns], checkpointer=InMemorySaver()
    )
else:
    agent = create_agent(model, tools, middleware=[turns], checkpointer=InMemorySaver())
config: Any = {"configurable": {"thread_id": "t"}}


def state() -> Any:
    return agent.get_state(config).values.get("messages", [])


def run(prompt: str) -> None:
    agent.invoke({"messages": [{"role": "user", "content": prompt}]}, config)


states = [state()]
for prompt in PROMPTS:
    run(prompt)
    states.append(state())
check(turns, states, lambda number: turns.rewind_agent(agent, config, number), state, lambda: run(PROMPTS[1]))
