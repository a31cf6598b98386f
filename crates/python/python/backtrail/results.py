"""The results of operations: plain values. `to_dict()` returns what the command line prints with ``--json``."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

from . import _display

Kind = Literal["manual", "automatic", "feature", "session", "turn", "step", "thread", "safety"]
ChangeStatus = Literal["added", "modified", "deleted", "type_changed", "mode_changed"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def moment(milliseconds: int) -> datetime:
    """Converts milliseconds since the epoch into an aware datetime."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def milliseconds(time: datetime) -> int:
    """Converts a datetime into milliseconds since the epoch. A naive datetime is local time, as elsewhere in Python."""
    return (time.astimezone(timezone.utc) - _EPOCH) // timedelta(milliseconds=1)


def timestamp(time: datetime) -> str:
    """Formats a datetime as RFC 3339 in UTC, always with milliseconds."""
    return time.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text(path: str) -> str:
    """Converts a path into text for JSON. Bytes that are not UTF-8 are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def _texts(paths: Iterable[str]) -> list[str]:
    return [text(path) for path in paths]


def _path_keys(path: str) -> dict[str, str]:
    keys = {"path": text(path)}
    if keys["path"] != path:
        keys["path_base64"] = base64.b64encode(os.fsencode(path)).decode("ascii")
    return keys


class Result:
    """The outcome of an operation: a plain value that can be compared and hashed."""

    __slots__ = ()

    def __str__(self) -> str:
        return _display.fields(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __hash__(self) -> int:
        compared = (field.name for field in fields(self) if field.compare)  # type: ignore[arg-type]
        return hash((type(self), *(_display.frozen(getattr(self, name)) for name in compared)))


@dataclass(frozen=True, slots=True, repr=False)
class GitState(Result):
    """The position of the user's own repository."""

    commit: str | None
    branch: str | None
    dirty_files: list[str]
    dirty_count: int
    """The number of `dirty_files`."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "commit": self.commit,
            "branch": self.branch,
            "dirty_files": _texts(self.dirty_files),
            "dirty_count": self.dirty_count,
        }


@dataclass(frozen=True, slots=True, repr=False)
class FeatureState(Result):
    """The contents of the feature list."""

    current: str | None
    completed: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"current": self.current, "completed": list(self.completed)}


@dataclass(frozen=True, slots=True, repr=False)
class Context(Result):
    """Facts that the agent gave about its session."""

    session_number: int | None
    token_usage: int | None

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"session_number": self.session_number, "token_usage": self.token_usage}


@dataclass(frozen=True, slots=True, repr=False)
class Attachment(Result):
    """Bytes that a checkpoint stores in addition to the files."""

    name: str
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"name": self.name, "bytes": self.bytes}


@dataclass(frozen=True, slots=True, repr=False)
class WorkTotals(Result):
    """The sums of what an agent did for a prompt, over its steps."""

    files: int
    insertions: int
    deletions: int

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"files": self.files, "insertions": self.insertions, "deletions": self.deletions}


@dataclass(frozen=True, slots=True, repr=False)
class Checkpoint(Result):
    """A snapshot on the timeline, with its record."""

    id: str
    short_id: str
    name: str | None
    message: str
    description: str | None
    kind: Kind
    timestamp: datetime
    parent: str | None
    files_changed: list[str]
    changed_count: int
    """The number of `files_changed`."""
    insertions: int
    deletions: int
    step: int | None
    session: str | None
    agent: str | None
    turn: int | None
    prompt: str | None
    tool: str | None
    command: str | None
    """The command line of that tool, if it was a shell. Secrets in it are masked."""
    author: str | None
    """The author of the changes against the parent: "agent", "other", or `None` if that is not known."""
    git: GitState | None
    feature_state: FeatureState | None
    context: Context | None
    attachments: list[Attachment]
    metadata: dict[str, Any]
    pinned: bool
    complete: bool
    dropped: int
    """The number of paths that the previous checkpoint held, that are still on disk, and that could not be captured."""
    scope: list[str] | None
    """The paths that a safety checkpoint covers. `None` for the whole workspace."""
    reverted: bool
    """True if a revert took its changes back. For the checkpoint of a prompt: if the agent's work for it is."""
    work_totals: WorkTotals | None
    """The sums of what the agent did for a prompt. `None` if this is not the checkpoint of a prompt."""

    def __hash__(self) -> int:
        return hash(self.id)

    def __str__(self) -> str:
        name = "" if self.name is None else f"[{self.name}] "
        counts = f"+{self.insertions} -{self.deletions}"
        return f"{self.short_id} {self.kind} {name}{_display.cut(self.message)!r} {counts}{' pinned' if self.pinned else ''}"

    def _repr_html_(self) -> str:
        return _display.checkpoints([self])

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "id": self.id,
            "short_id": self.short_id,
            "name": self.name,
            "message": self.message,
            "description": self.description,
            "kind": self.kind,
            "timestamp": timestamp(self.timestamp),
            "parent": self.parent,
            "files_changed": _texts(self.files_changed),
            "changed_count": self.changed_count,
            "insertions": self.insertions,
            "deletions": self.deletions,
            "step": self.step,
            "session": self.session,
            "agent": self.agent,
            "turn": self.turn,
            "prompt": self.prompt,
            "tool": self.tool,
            "command": self.command,
            "author": self.author,
            "git": self.git.to_dict() if self.git else None,
            "feature_state": self.feature_state.to_dict() if self.feature_state else None,
            "context": self.context.to_dict() if self.context else None,
            "attachments": [attachment.to_dict() for attachment in self.attachments],
            "metadata": dict(self.metadata),
            "pinned": self.pinned,
            "complete": self.complete,
            "dropped": self.dropped,
            "scope": None if self.scope is None else _texts(self.scope),
            "reverted": self.reverted,
            "work_totals": self.work_totals.to_dict() if self.work_totals else None,
        }

    @staticmethod
    def _of(plain: dict[str, Any]) -> Checkpoint:
        plain = dict(plain)
        plain["timestamp"] = moment(plain.pop("milliseconds"))
        plain["git"] = GitState(**plain["git"]) if plain["git"] else None
        plain["feature_state"] = FeatureState(**plain["feature_state"]) if plain["feature_state"] else None
        plain["context"] = Context(**plain["context"]) if plain["context"] else None
        plain["attachments"] = [Attachment(**attachment) for attachment in plain["attachments"]]
        plain["work_totals"] = WorkTotals(**plain["work_totals"]) if plain["work_totals"] else None
        return Checkpoint(**plain)


@dataclass(frozen=True, slots=True, repr=False)
class Hunk(Result):
    """A run of changed lines, with the lines around it."""

    id: str
    """Stays the same as long as the file does. `Workspace.restore` and `Workspace.revert` take it in ``hunks``."""
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    section: str
    lines: list[str]
    """The lines, each after a space, ``-`` or ``+``."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {name: getattr(self, name) for name in Hunk.__slots__}


@dataclass(frozen=True, slots=True, repr=False)
class Change(Result):
    """One path that differs. The path of a directory ends in ``/``."""

    path: str
    status: ChangeStatus
    insertions: int
    deletions: int
    binary: bool
    hunks: list[Hunk] | None = None
    """The hunks of a change of text. `None` if they were not asked for, and for other changes."""

    def __str__(self) -> str:
        return f"{self.status} {self.path} +{self.insertions} -{self.deletions}"

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "status": self.status,
            "insertions": self.insertions,
            "deletions": self.deletions,
            "binary": self.binary,
            **_path_keys(self.path),
            **({} if self.hunks is None else {"hunks": [hunk.to_dict() for hunk in self.hunks]}),
        }


def _changes(plain: list[dict[str, Any]]) -> list[Change]:
    changes = []
    for change in plain:
        hunks = change.pop("hunks")
        changes.append(Change(**change, hunks=None if hunks is None else [Hunk(**hunk) for hunk in hunks]))
    return changes


@dataclass(frozen=True, slots=True, repr=False)
class Skipped(Result):
    """A path that was skipped, with the reason."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"path": text(self.path), "reason": self.reason}


def _skipped(plain: list[dict[str, Any]]) -> list[Skipped]:
    return [Skipped(**skipped) for skipped in plain]


@dataclass(frozen=True, slots=True, repr=False)
class Saved(Result):
    """The outcome of `Workspace.save`."""

    created: bool
    """True if a checkpoint was taken. If not, nothing had changed, and `checkpoint` is the one that the workspace
    stands on."""
    checkpoint: Checkpoint
    skipped: list[Skipped]
    dropped: list[Skipped] = field(default_factory=list)
    """Paths that the previous checkpoint held, that are still on disk, and that are no longer captured."""

    @property
    def id(self) -> str:
        """The id of the checkpoint."""
        return self.checkpoint.id

    def __str__(self) -> str:
        return f"{'created' if self.created else 'unchanged'}: {self.checkpoint}"

    def _repr_html_(self) -> str:
        return _display.checkpoints([self.checkpoint])

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "created": self.created,
            "checkpoint": self.checkpoint.to_dict(),
            "skipped": [skipped.to_dict() for skipped in self.skipped],
            "dropped": [skipped.to_dict() for skipped in self.dropped],
        }

    @staticmethod
    def _of(plain: dict[str, Any]) -> Saved:
        checkpoint = Checkpoint._of(plain["checkpoint"])
        return Saved(plain["created"], checkpoint, _skipped(plain["skipped"]), _skipped(plain["dropped"]))


@dataclass(frozen=True, slots=True, repr=False)
class Stepped(Result):
    """The outcome of `Workspace.step`."""

    step: int
    """The number of the step in its session, counted from 1."""
    created: bool
    """True if a checkpoint was taken."""
    checkpoint: Checkpoint | None
    """The checkpoint that was taken. `None` if none was due, or nothing had changed."""
    dropped: list[Skipped] = field(default_factory=list)
    """Paths that the previous checkpoint held, that are still on disk, and that are no longer captured."""

    def __str__(self) -> str:
        return f"step {self.step}: {'no checkpoint' if self.checkpoint is None else self.checkpoint}"

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        checkpoint = self.checkpoint.to_dict() if self.checkpoint else None
        dropped = [skipped.to_dict() for skipped in self.dropped]
        return {"step": self.step, "created": self.created, "checkpoint": checkpoint, "dropped": dropped}

    @staticmethod
    def _of(plain: dict[str, Any]) -> Stepped:
        checkpoint = Checkpoint._of(plain["checkpoint"]) if plain["checkpoint"] else None
        return Stepped(plain["step"], plain["created"], checkpoint, _skipped(plain["dropped"]))


@dataclass(frozen=True, slots=True, repr=False)
class Shown(Result):
    """The outcome of `Workspace.show`: a checkpoint with its changes."""

    checkpoint: Checkpoint
    changes: list[Change]
    work: list[Change] | None = None
    """What the agent did for a prompt. `None` if this is not the checkpoint of a prompt."""
    turn_changes: list[Change] | None = None
    """The changes from a prompt to the end of the work for it, edits by hand included. `None` if this is not the
    checkpoint of a prompt."""

    def __str__(self) -> str:
        return f"{self.checkpoint}, {_display.count(len(self.changes), 'change')}"

    def _repr_html_(self) -> str:
        return _display.checkpoints([self.checkpoint]) + _display.changes(self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        answer: dict[str, Any] = {
            "checkpoint": self.checkpoint.to_dict(),
            "changes": [change.to_dict() for change in self.changes],
        }
        for key, changes in (("turn_changes", self.turn_changes), ("work", self.work)):
            if changes is not None:
                answer[key] = [change.to_dict() for change in changes]
        return answer

    @staticmethod
    def _of(plain: dict[str, Any]) -> Shown:
        work, turn_changes = (None if plain[key] is None else _changes(plain[key]) for key in ("work", "turn_changes"))
        return Shown(Checkpoint._of(plain["checkpoint"]), _changes(plain["changes"]), work, turn_changes)


@dataclass(frozen=True, slots=True, repr=False)
class Status(Result):
    """The outcome of `Workspace.status`: the changes on disk. True in a boolean context if there are any."""

    checkpoint: Checkpoint | None
    changes: list[Change]
    skipped: list[Skipped] = field(default_factory=list)
    """Paths that the checkpoint holds and that a new checkpoint would skip. It is unknown how they changed."""

    def __bool__(self) -> bool:
        return bool(self.changes or self.skipped)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __str__(self) -> str:
        at = "no checkpoint" if self.checkpoint is None else self.checkpoint.short_id
        return f"{_display.count(len(self.changes), 'change')} since {at}"

    def _repr_html_(self) -> str:
        return _display.changes(self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        checkpoint = self.checkpoint.to_dict() if self.checkpoint else None
        answer: dict[str, Any] = {"checkpoint": checkpoint, "changes": [change.to_dict() for change in self.changes]}
        if self.skipped:
            answer["skipped"] = [skipped.to_dict() for skipped in self.skipped]
        return answer

    @staticmethod
    def _of(plain: dict[str, Any]) -> Status:
        checkpoint = Checkpoint._of(plain["checkpoint"]) if plain["checkpoint"] else None
        return Status(checkpoint, _changes(plain["changes"]), _skipped(plain["skipped"]))


@dataclass(frozen=True, slots=True, repr=False)
class Diff(Result):
    """The outcome of `Workspace.diff`."""

    from_id: str | None
    to_id: str | None
    """The id of the newer side. `None` for the files on disk."""
    changes: list[Change]
    patch: str
    """The patch, in the form that ``git apply`` accepts."""
    skipped: list[Skipped] = field(default_factory=list)
    """Paths that the older side holds and that a checkpoint of the files on disk would skip. It is unknown how they
    differ."""

    @property
    def added_files(self) -> list[str]:
        """The paths that were added."""
        return [change.path for change in self.changes if change.status == "added"]

    @property
    def modified_files(self) -> list[str]:
        """The paths whose contents, type or mode changed."""
        return [change.path for change in self.changes if change.status not in ("added", "deleted")]

    @property
    def deleted_files(self) -> list[str]:
        """The paths that were deleted."""
        return [change.path for change in self.changes if change.status == "deleted"]

    def __str__(self) -> str:
        start = "nothing" if self.from_id is None else self.from_id[:12]
        end = "the files on disk" if self.to_id is None else self.to_id[:12]
        return f"{start} to {end}: {_display.count(len(self.changes), 'change')}"

    def _repr_html_(self) -> str:
        return _display.changes(self.changes) + _display.patch(self.patch)

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        answer: dict[str, Any] = {
            "from": self.from_id,
            "to": self.to_id,
            "changes": [change.to_dict() for change in self.changes],
            "added_files": _texts(self.added_files),
            "modified_files": _texts(self.modified_files),
            "deleted_files": _texts(self.deleted_files),
            "patch": self.patch,
        }
        if self.skipped:
            answer["skipped"] = [skipped.to_dict() for skipped in self.skipped]
        return answer

    @staticmethod
    def _of(plain: dict[str, Any]) -> Diff:
        changes, skipped = _changes(plain["changes"]), _skipped(plain["skipped"])
        return Diff(plain["from_id"], plain["to_id"], changes, plain["patch"], skipped)


@dataclass(frozen=True, slots=True, repr=False)
class Version(Result):
    """One version of a path."""

    checkpoint: str
    status: ChangeStatus
    bytes: int | None
    insertions: int
    deletions: int
    binary: bool
    safety: bool
    """True if only the safety checkpoint of a restore holds this version: the user had not saved it."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "checkpoint": self.checkpoint,
            "status": self.status,
            "bytes": self.bytes,
            "insertions": self.insertions,
            "deletions": self.deletions,
            "binary": self.binary,
            "safety": self.safety,
        }


@dataclass(frozen=True, slots=True, repr=False)
class BlameRange(Result):
    """Adjacent lines of a file with the same origin. `checkpoint` is `None` for lines that are only on disk."""

    start: int
    lines: int
    checkpoint: str | None
    path: str
    author: Literal["agent", "other"] | None
    turn: int | None
    session: str | None
    agent: str | None
    tool: str | None
    prompt: str | None
    timestamp: datetime | None
    approximate: bool
    """True if the lines may come from a deleted checkpoint before this one."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "start": self.start,
            "lines": self.lines,
            "checkpoint": self.checkpoint,
            "path": text(self.path),
            "author": self.author,
            "turn": self.turn,
            "session": self.session,
            "agent": self.agent,
            "tool": self.tool,
            "prompt": self.prompt,
            "timestamp": None if self.timestamp is None else timestamp(self.timestamp),
            "approximate": self.approximate,
        }

    @staticmethod
    def _of(plain: dict[str, Any]) -> BlameRange:
        time = plain.pop("milliseconds")
        return BlameRange(timestamp=None if time is None else moment(time), **plain)


@dataclass(frozen=True, slots=True, repr=False)
class Blame(Result):
    """The origin of each line of a file. `at` is `None` for the file on disk."""

    path: str
    at: str | None
    ranges: list[BlameRange]

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"path": text(self.path), "at": self.at, "ranges": [part.to_dict() for part in self.ranges]}

    @staticmethod
    def _of(plain: dict[str, Any]) -> Blame:
        return Blame(plain["path"], plain["at"], [BlameRange._of(part) for part in plain["ranges"]])


@dataclass(frozen=True, slots=True, repr=False)
class Tested(Result):
    """One test of a search. `checkpoint` is `None` for the files on disk."""

    checkpoint: str | None
    result: Literal["good", "bad", "skipped"]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "checkpoint": self.checkpoint,
            "result": self.result,
            "exit_code": None,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Bisected(Result):
    """The first state for which a test fails."""

    first_bad: str | None
    """`None` if the last state passes, or if the files on disk are the first that fail."""
    first_bad_is_unsaved: bool
    last_good: str | None
    """`None` if the first state fails already."""
    tested: list[Tested]
    changes: list[Change]
    """The changes from the last good state to the first bad one."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "first_bad": self.first_bad,
            "first_bad_is_unsaved": self.first_bad_is_unsaved,
            "last_good": self.last_good,
            "tested": [tested.to_dict() for tested in self.tested],
            "changes": [change.to_dict() for change in self.changes],
        }

    @staticmethod
    def _of(plain: dict[str, Any]) -> Bisected:
        plain["tested"] = [Tested(**tested) for tested in plain["tested"]]
        plain["changes"] = [Change(**change) for change in plain["changes"]]
        return Bisected(**plain)


@dataclass(frozen=True, slots=True, repr=False)
class Conflict(Result):
    """A path that a restore left alone: something was in the way, or another process wrote to it during the restore."""

    path: str
    reason: str
    kept: str | None
    """The id of the object in the store that keeps the bytes which another process wrote during the restore."""
    lines: list[tuple[int, int]] = field(default_factory=list)
    """The lines on disk that a revert can't decide about: the first and the last of each run, counted from 1."""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        lines = {"lines": [list(run) for run in self.lines]} if self.lines else {}
        return {"path": text(self.path), "reason": self.reason, "kept": self.kept, **lines}


@dataclass(frozen=True, slots=True, repr=False)
class GitMoved(Result):
    """The position of the user's repository after a restore that moved it."""

    commit: str | None
    branch: str | None

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"commit": self.commit, "branch": self.branch}


@dataclass(frozen=True, slots=True, repr=False)
class Restored(Result):
    """The outcome of a restore, or the plan of one."""

    checkpoint: str | None
    """The id of the restored checkpoint. `None` if there was nothing to take back."""
    plan: str | None
    """A hash of all the changes. Pass it to `Workspace.restore` to make exactly these changes."""
    changes: list[Change]
    """The changes to the workspace. A file that comes back is ``added``."""
    applied: bool
    """True if the restore was carried out. False for a plan, and if there was nothing to take back."""
    safety: str | None
    """The id of the safety checkpoint, which holds the workspace as it was before. `None` if nothing had to change."""
    conflicts: list[Conflict]
    """Paths with something in the way, and paths that another process changed during the restore."""
    git: GitMoved | None = None
    """The position of the user's repository. `None` if it was left alone."""
    conversation: Any = field(default=None, compare=False)
    """The conversation that was saved with the checkpoint. `None` if there is none."""
    stays: list[Conflict] = field(default_factory=list)
    """Paths that should be removed, and stay. They are not in the way of anything. After a restore, only git's own
    files are here; the others are in `conflicts`."""
    not_restored: list[Skipped] = field(default_factory=list)
    """Paths on disk that the checkpoint could not capture, although an earlier one held them. They are left as they
    are. Always empty after `Workspace.undo` and `Workspace.redo`."""
    undeleted: list[str] = field(default_factory=list)
    """The deleted checkpoints that `Workspace.undo` brought back. It then changed no file."""
    deleted: list[str] = field(default_factory=list)
    """The checkpoints that `Workspace.redo` deleted again."""
    stands_on: str | None = None
    """The id of the checkpoint that the workspace stands on afterwards. `to_dict` calls it ``checkpoint``, as the
    command line does."""

    def __str__(self) -> str:
        what = "restored" if self.applied else "would restore"
        target = "nothing" if self.checkpoint is None else self.checkpoint[:12]
        return f"{what} {target}: {_display.count(len(self.changes), 'change')}, {_display.count(len(self.conflicts), 'conflict')}"

    def _repr_html_(self) -> str:
        return _display.changes(self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        answer: dict[str, Any] = {
            "plan": self.plan,
            "changes": [change.to_dict() for change in self.changes],
            "applied": self.applied,
            "safety": self.safety,
            "checkpoint": self.stands_on,
            "conflicts": [conflict.to_dict() for conflict in self.conflicts],
            "git": self.git.to_dict() if self.git else None,
        }
        if self.stays:
            answer["stays"] = [conflict.to_dict() for conflict in self.stays]
        if self.not_restored:
            answer["not_restored"] = [skipped.to_dict() for skipped in self.not_restored]
        if self.undeleted:
            answer["undeleted"] = self.undeleted
        if self.deleted:
            answer["deleted"] = self.deleted
        return answer

    @staticmethod
    def _of(plain: dict[str, Any], conversation: Any = None) -> Restored:
        return Restored(
            plain["target"],
            plain["plan"],
            _changes(plain["changes"]),
            plain["applied"],
            plain["safety"],
            [Conflict(**conflict) for conflict in plain["conflicts"]],
            GitMoved(**plain["git"]) if plain["git"] else None,
            conversation,
            [Conflict(**conflict) for conflict in plain["stays"]],
            _skipped(plain["not_restored"]),
            plain["undeleted"],
            plain["deleted"],
            plain["stands_on"],
        )


@dataclass(frozen=True, slots=True, repr=False)
class MovedFile(Result):
    """A file that was changed at the path to which it was moved."""

    before: str
    now: str

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"from": text(self.before), "to": text(self.now)}


@dataclass(frozen=True, slots=True, repr=False)
class Adopted(Restored):
    """The outcome of `Workspace.adopt`, or the plan of one. `checkpoint` is `None`."""

    merged: list[str] = field(default_factory=list)
    """The changed paths whose lines were merged with edits in the workspace."""
    shared: list[str] = field(default_factory=list)
    """Paths that stay as they are because another session may have changed them at the same time. Always empty for an
    adoption."""
    moved: list[MovedFile] = field(default_factory=list)
    """Files that were changed at the paths to which they were moved."""

    def __str__(self) -> str:
        what = "adopted" if self.applied else "would adopt"
        return f"{what} {_display.count(len(self.changes), 'change')}, {_display.count(len(self.conflicts), 'conflict')}"

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        answer = Restored.to_dict(self)
        answer |= {"merged": [text(path) for path in self.merged], "shared": [text(path) for path in self.shared]}
        if self.moved:
            answer["moved"] = [moved.to_dict() for moved in self.moved]
        return answer

    @staticmethod
    def _made_of(plain: dict[str, Any]) -> Adopted:
        return Adopted(**_of_merge(plain))


@dataclass(frozen=True, slots=True, repr=False)
class Reverted(Adopted):
    """The outcome of `Workspace.revert`, or the plan of one. `checkpoint` is the newest one that was taken back."""

    reverted: list[str] = field(default_factory=list)
    """The ids of the checkpoints whose changes were taken back, newest first."""

    def __str__(self) -> str:
        what = "took back" if self.applied else "would take back"
        of = _display.count(len(self.reverted), "checkpoint")
        changes, conflicts = len(self.changes), len(self.conflicts)
        return f"{what} {of}: {_display.count(changes, 'change')}, {_display.count(conflicts, 'conflict')}"

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {**Adopted.to_dict(self), "reverted": list(self.reverted)}

    @staticmethod
    def _made_of(plain: dict[str, Any]) -> Reverted:
        return Reverted(**_of_merge(plain), reverted=plain["reverted"])


def _of_merge(plain: dict[str, Any]) -> dict[str, Any]:
    restored = Restored._of(plain["restored"])
    found = {each.name: getattr(restored, each.name) for each in fields(Restored)}
    moved = [MovedFile(**moved) for moved in plain["moved"]]
    return {**found, "merged": plain["merged"], "shared": plain["shared"], "moved": moved}


@dataclass(frozen=True, slots=True, repr=False)
class Fork(Result):
    """A fork of a workspace."""

    path: Path
    exists: bool
    checkpoint: str
    """The id of the fork point."""
    prompts: int
    """The number of prompts that were given there."""
    files: int | None
    """The number of files that changed since the fork point. `None` if it was deleted there."""
    insertions: int | None
    deletions: int | None

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "path": text(str(self.path)),
            "exists": self.exists,
            "checkpoint": self.checkpoint,
            "prompts": self.prompts,
            "files": self.files,
            "insertions": self.insertions,
            "deletions": self.deletions,
        }

    @staticmethod
    def _of(plain: dict[str, Any]) -> Fork:
        return Fork(**{**plain, "path": Path(plain["path"])})


@dataclass(frozen=True, slots=True, repr=False)
class Exported(Result):
    """The outcome of `Workspace.export`."""

    directory: Path
    files: int
    """The number of files, including symlinks."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"directory": text(str(self.directory)), "files": self.files}


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Result):
    """The decision of retention about one checkpoint."""

    id: str
    kind: Kind
    keep: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"id": self.id, "keep": self.keep, "reason": self.reason}


@dataclass(frozen=True, slots=True, repr=False)
class NotApplied(Result):
    """A retention limit that is set and was not applied."""

    key: str
    """The key in the settings: ``max_age`` or ``max_bytes``."""
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"key": self.key, "reason": self.reason}


@dataclass(frozen=True, slots=True, repr=False)
class Pruned(Result):
    """The outcome of `Workspace.prune`."""

    deleted: list[str]
    kept: int
    bytes_before: int
    bytes_after: int
    not_applied: list[NotApplied] = field(default_factory=list)
    """Retention limits that are set and were not applied."""

    def __str__(self) -> str:
        return f"deleted {len(self.deleted)}, kept {self.kept}, {self.bytes_before} to {self.bytes_after} bytes"

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "deleted": list(self.deleted),
            "kept": self.kept,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "not_applied": [limit.to_dict() for limit in self.not_applied],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Damage(Result):
    """A damaged item in the store."""

    id: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {"id": self.id, "reason": self.reason}


@dataclass(frozen=True, slots=True, repr=False)
class Verification(Result):
    """The outcome of `Workspace.verify`. True in a boolean context if nothing is damaged."""

    checkpoints: int
    damaged: list[Damage]

    @property
    def ok(self) -> bool:
        """True if nothing is damaged."""
        return not self.damaged

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return f"{_display.count(self.checkpoints, 'checkpoint')}, {len(self.damaged)} damaged"

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "ok": self.ok,
            "checkpoints": self.checkpoints,
            "damaged": [damage.to_dict() for damage in self.damaged],
        }

    @staticmethod
    def _of(plain: dict[str, Any]) -> Verification:
        return Verification(plain["checkpoints"], [Damage(**damage) for damage in plain["damaged"]])


@dataclass(frozen=True, slots=True, repr=False)
class WorkspaceInfo(Result):
    """A workspace that has a store."""

    path: Path
    exists: bool
    is_gone: bool
    """True if the workspace was deleted, rather than being on a disk that is not mounted."""
    store: Path
    bytes: int
    checkpoints: int
    newest: datetime | None
    moved_to: Path | None = None
    """The new path, if the workspace was renamed within its parent directory."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        return {
            "path": text(str(self.path)),
            "exists": self.exists,
            **({"moved_to": text(str(self.moved_to))} if self.moved_to else {}),
            "store": text(str(self.store)),
            "bytes": self.bytes,
            "checkpoints": self.checkpoints,
            "newest": timestamp(self.newest) if self.newest else None,
        }

    @staticmethod
    def _of(plain: dict[str, Any]) -> WorkspaceInfo:
        newest = plain["newest_milliseconds"]
        return WorkspaceInfo(
            Path(plain["path"]),
            plain["exists"],
            plain["is_gone"],
            Path(plain["store"]),
            plain["bytes"],
            plain["checkpoints"],
            None if newest is None else moment(newest),
            None if plain["moved_to"] is None else Path(plain["moved_to"]),
        )


EventName = Literal[
    "initialized",
    "checkpoint_created",
    "checkpoint_restored",
    "checkpoint_deleted",
    "checkpoints_undeleted",
    "checkpoints_pruned",
    "recovered",
    "error",
]


@dataclass(frozen=True, slots=True, repr=False)
class Event(Result):
    """An event of a workspace."""

    event: EventName
    time: datetime
    checkpoint: str | None = None
    """The id of the checkpoint that the event is about. `None` if there is no single one."""
    details: dict[str, Any] = field(default_factory=dict)
    """All other fields of the event."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what the command line prints with ``--json``."""
        own = {"event": self.event, "time": timestamp(self.time)}
        return {**own, **({"checkpoint": self.checkpoint} if self.checkpoint else {}), **self.details}

    @staticmethod
    def _of(plain: dict[str, Any]) -> Event:
        details = dict(plain)
        name, time = details.pop("event"), details.pop("time")
        return Event(name, _parse_time(time), details.pop("checkpoint", None), details)


def _parse_time(time: str) -> datetime:
    # `fromisoformat` of Python 3.10 accepts neither a `Z` nor more than six digits for the fraction of a second.
    whole, _, fraction = time.removesuffix("Z").partition(".")
    parsed = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc)
    return parsed + timedelta(microseconds=int(fraction[:6].ljust(6, "0")) if fraction else 0)


class Checkpoints(list[Checkpoint]):
    """Checkpoints, newest first. Notebooks show them as a table."""

    def _repr_html_(self) -> str:
        return _display.checkpoints(self)


# A dataclass gets a hash of its own, which fails for lists.
for _kind in tuple(globals().values()):
    if isinstance(_kind, type) and issubclass(_kind, Result) and _kind is not Checkpoint:
        _kind.__hash__ = Result.__hash__  # type: ignore[method-assign]
