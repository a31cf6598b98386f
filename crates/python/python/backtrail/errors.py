"""What can go wrong.

Every failure of an operation is a `BacktrailError` with a stable `code`, the same word that the command line prints
with ``--json``.
"""

from __future__ import annotations

from typing import Any


class BacktrailError(Exception):
    """A failed operation. What it was to change is as it was, unless the message says otherwise."""

    code: str = "internal"
    """The stable word for this sort of failure."""

    hint: str | None = None
    """What to do about it, where that can be said."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, dict(self.__dict__))


class InternalError(BacktrailError):
    """A bug."""

    code = "internal"
    hint = "please report this bug, with the calls that led to it"


class IoError(BacktrailError, OSError):
    """The system refused something; `errno` and `filename` say what, where that is known."""

    code = "io"


class NoSpaceError(IoError):
    """The disk is full."""

    code = "no_space"
    hint = "free some space, or keep the store on another disk with Workspace(path, store=...)"


class UsageError(BacktrailError, ValueError):
    """The call makes no sense."""

    code = "usage"


class SettingsError(BacktrailError):
    """A settings file can't be read."""

    code = "settings"


class NotFoundError(BacktrailError, LookupError):
    """Nothing is there under that word."""


class UnknownCheckpointError(NotFoundError):
    """No checkpoint fits."""

    code = "unknown_checkpoint"
    hint = "list the checkpoints with Workspace.list()"
    nearest: str | None = None
    """A name that is nearly the same."""


class AmbiguousCheckpointError(NotFoundError):
    """Several checkpoints fit; `candidates` are their ids."""

    code = "ambiguous_checkpoint"
    hint = "write more characters of the id"
    candidates: list[str] = []


class UnknownPathError(NotFoundError):
    """No such path, or attachment, in the checkpoint."""

    code = "unknown_path"


class ConflictError(BacktrailError):
    """Something stands in the way of a restore. Nothing was written."""

    code = "conflict"
    hint = "move it away, or restore the rest with skip_conflicts=True"


class PlanChangedError(ConflictError):
    """The files are not those that the plan saw. Nothing was written."""

    code = "plan_changed"
    hint = "make a new plan with Workspace.plan()"


class StoreError(BacktrailError):
    """The store can't be used."""


class StoreDamagedError(StoreError):
    """Something in the store is missing or does not match its id."""

    code = "store_damaged"
    hint = "see what is affected with Workspace.verify()"


class StoreTooNewError(StoreError):
    """The store was written by a newer version."""

    code = "store_too_new"
    hint = "update Backtrail to the version that wrote it"


class RefusedError(BacktrailError):
    """It could be done, but somebody would regret it."""


class ProtectedDirectoryError(RefusedError):
    """The directory holds so much that nobody means it as a workspace."""

    code = "protected_directory"
    hint = "choose a directory inside it, or use Workspace(path, force=True)"


class FeatureCheckpointError(RefusedError):
    """A feature checkpoint stays for ever."""

    code = "feature_checkpoint"
    hint = "delete it anyway with force=True"


class PathOutsideWorkspaceError(RefusedError, ValueError):
    """The path is not inside the workspace."""

    code = "path_outside_workspace"
    hint = "paths are relative to the workspace, or absolute"


class GitStateError(RefusedError):
    """The user's git repository can't be moved safely."""

    code = "git_state"


class BusyError(BacktrailError, TimeoutError):
    """Another process or thread works on the workspace and did not let go in time."""

    code = "busy"
    hint = "try again, or wait longer with Workspace(path, wait=...)"


class InterruptedOperationError(BacktrailError, InterruptedError):
    """The operation was stopped while it only read."""

    code = "interrupted"


class CallbackError(BacktrailError):
    """The operation was done, and then a callback raised. `result` is what the operation returned."""

    code = "callback"
    result: Any = None


_CLASSES: dict[str, type[BacktrailError]] = {
    kind.code: kind
    for kind in (
        InternalError,
        IoError,
        NoSpaceError,
        UsageError,
        SettingsError,
        UnknownCheckpointError,
        AmbiguousCheckpointError,
        UnknownPathError,
        ConflictError,
        PlanChangedError,
        StoreDamagedError,
        StoreTooNewError,
        ProtectedDirectoryError,
        FeatureCheckpointError,
        PathOutsideWorkspaceError,
        GitStateError,
        BusyError,
        InterruptedOperationError,
    )
}


def from_code(code: str, message: str, details: dict[str, Any]) -> BacktrailError:
    """The exception for a code. The native half calls this."""
    error = _CLASSES.get(code, BacktrailError)(message, code=code)
    for name, value in details.items():
        setattr(error, name, value)
    return error


def _rebuild(kind: type[BacktrailError], message: str, state: dict[str, Any]) -> BacktrailError:
    error = kind(message)
    error.__dict__.update(state)
    return error
