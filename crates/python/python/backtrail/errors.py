"""The exceptions.

Every failure of an operation is a `BacktrailError` with a stable `code`, the same word that the command line prints
with ``--json``.
"""

from __future__ import annotations

import errno
from typing import Any


class BacktrailError(Exception):
    """A failed operation. It changed nothing, unless the message says otherwise."""

    code: str = "internal"
    """The stable word for this kind of failure."""

    hint: str | None = None
    """The next step for the user. `None` if there is no general one."""

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
    """A bug in Backtrail."""

    code = "internal"
    hint: str | None = "please report this bug, with the steps that led to it"


class IoError(BacktrailError, OSError):
    """A failed system call. `errno` and `filename` are set if they are known."""

    code = "io"


class MissingPathError(IoError, FileNotFoundError):
    """A file or directory does not exist, such as the directory of a workspace."""


class NoSpaceError(IoError):
    """The disk is full."""

    code = "no_space"
    hint: str | None = "free some space, or keep the store on another disk with Workspace(path, store=...)"


class UsageError(BacktrailError, ValueError):
    """The arguments of the call are invalid."""

    code = "usage"


class SettingsError(BacktrailError):
    """A settings file can't be read."""

    code = "settings"


class NotFoundError(BacktrailError, LookupError):
    """The named checkpoint, path or attachment does not exist, or is ambiguous."""


class UnknownCheckpointError(NotFoundError):
    """No checkpoint matches."""

    code = "unknown_checkpoint"
    hint: str | None = "list the checkpoints with Workspace.list()"
    nearest: str | None = None
    """The most similar name. `None` if no name is similar."""


class AmbiguousCheckpointError(NotFoundError):
    """Several checkpoints match."""

    code = "ambiguous_checkpoint"
    hint: str | None = "give more characters of the id"
    candidates: list[str] = []
    """The ids of the checkpoints that match."""


class UnknownPathError(NotFoundError):
    """The checkpoint does not contain the path or attachment."""

    code = "unknown_path"


class ConflictError(BacktrailError):
    """Something is in the way of a restore. Nothing was written."""

    code = "conflict"
    hint: str | None = "move the path away, or restore the rest with skip_conflicts=True"


class PlanChangedError(ConflictError):
    """The files changed since the plan was made. Nothing was written."""

    code = "plan_changed"
    hint: str | None = "make a new plan with Workspace.plan()"


class StoreError(BacktrailError):
    """The store can't be used."""


class StoreDamagedError(StoreError):
    """Something in the store is missing or does not match its id."""

    code = "store_damaged"
    hint: str | None = "list the damage with Workspace.verify()"


class StoreTooNewError(StoreError):
    """A newer version of Backtrail wrote the store."""

    code = "store_too_new"
    hint: str | None = "update backtrail to the version that wrote the store"


class RefusedError(BacktrailError):
    """The operation was refused, because it could do harm that the caller did not intend."""


class ProtectedDirectoryError(RefusedError):
    """The directory holds so much that it is rarely meant as a workspace."""

    code = "protected_directory"
    hint: str | None = "use a directory below it, or Workspace(path, force=True)"


class FeatureCheckpointError(RefusedError):
    """A feature checkpoint is deleted only on explicit request."""

    code = "feature_checkpoint"
    hint: str | None = "delete it anyway with force=True"


class PathOutsideWorkspaceError(RefusedError, ValueError):
    """The path is not inside the workspace."""

    code = "path_outside_workspace"
    hint: str | None = "use a path relative to the workspace, or an absolute path inside it"


class GitStateError(RefusedError):
    """The user's git repository can't be moved safely."""

    code = "git_state"


class BusyError(BacktrailError, TimeoutError):
    """Another process or thread works on the workspace and did not release the lock in time."""

    code = "busy"
    hint: str | None = "retry, or wait longer with Workspace(path, wait=...)"


class InterruptedOperationError(BacktrailError, InterruptedError):
    """The operation was stopped before it changed anything."""

    code = "interrupted"


class CallbackError(BacktrailError):
    """The operation succeeded, and then a callback raised an exception."""

    code = "callback"
    result: Any = None
    """The result of the operation."""


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
    """Creates the exception for a code. The native half calls this."""
    kind = _CLASSES.get(code, BacktrailError)
    if kind is IoError and details.get("errno") == errno.ENOENT:
        kind = MissingPathError
    error = kind(message, code=code)
    for name, value in details.items():
        setattr(error, name, value)
    return error


def _rebuild(kind: type[BacktrailError], message: str, state: dict[str, Any]) -> BacktrailError:
    error = kind(message)
    error.__dict__.update(state)
    return error
