"""Checkpoints for the agents of other frameworks, one module each.

Each has a class that is given to the framework's agent. It takes a checkpoint of the workspace for each prompt, with
the conversation before it, and one before and after each tool that can change files. `Turns.rewind` goes back to before
a prompt. `checkpointed_tool` does the same for any other framework.
"""

from .turns import Rewound, Turns, checkpointed_tool

__all__ = ["Rewound", "Turns", "checkpointed_tool"]
