"""What operations return: plain values, with `to_dict()` for what the command line prints with ``--json``."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

Kind = Literal["manual", "automatic", "feature", "session", "turn", "step", "safety"]
ChangeStatus = Literal["added", "modified", "deleted", "type_changed", "mode_changed"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def moment(milliseconds: int) -> datetime:
    """An aware datetime, exact to the millisecond."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def milliseconds(time: datetime) -> int:
    """The other way round; a datetime without a zone is local time, as everywhere in Python."""
    return (time.astimezone(timezone.utc) - _EPOCH) // timedelta(milliseconds=1)


def timestamp(time: datetime) -> str:
    """RFC 3339 in UTC, always to the millisecond."""
    return time.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text(path: str) -> str:
    """A path for JSON: bytes that are not UTF-8 are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def _texts(paths: Iterable[str]) -> list[str]:
    return [text(path) for path in paths]


def _path_keys(path: str) -> dict[str, str]:
    keys = {"path": text(path)}
    if keys["path"] != path:
        keys["path_base64"] = base64.b64encode(os.fsencode(path)).decode("ascii")
    return keys


@dataclass(frozen=True, slots=True)
class GitState:
    """Where the user's own repository stood."""

    commit: str | None
    branch: str | None
    dirty_files: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {"commit": self.commit, "branch": self.branch, "dirty_files": _texts(self.dirty_files)}


@dataclass(frozen=True, slots=True)
class FeatureState:
    """What the feature list said."""

    current: str | None
    completed: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {"current": self.current, "completed": list(self.completed)}


@dataclass(frozen=True, slots=True)
class Context:
    """What the agent said about its session."""

    session_number: int | None
    token_usage: int | None

    def to_dict(self) -> dict[str, Any]:
        return {"session_number": self.session_number, "token_usage": self.token_usage}


@dataclass(frozen=True, slots=True)
class Attachment:
    """Bytes that are kept beside the files."""

    name: str
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A snapshot on the timeline."""

    id: str
    short_id: str
    name: str | None
    message: str
    description: str | None
    kind: Kind
    timestamp: datetime
    parent: str | None
    files_changed: list[str]
    insertions: int
    deletions: int
    step: int | None
    session: str | None
    agent: str | None
    turn: int | None
    prompt: str | None
    tool: str | None
    git: GitState | None
    feature_state: FeatureState | None
    context: Context | None
    attachments: list[Attachment]
    metadata: dict[str, Any]
    pinned: bool
    complete: bool
    dropped: int
    """How many paths the one before it held, were still on disk, and could not be captured."""
    scope: list[str] | None

    def __hash__(self) -> int:
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
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
            "insertions": self.insertions,
            "deletions": self.deletions,
            "step": self.step,
            "session": self.session,
            "agent": self.agent,
            "turn": self.turn,
            "prompt": self.prompt,
            "tool": self.tool,
            "git": self.git.to_dict() if self.git else None,
            "feature_state": self.feature_state.to_dict() if self.feature_state else None,
            "context": self.context.to_dict() if self.context else None,
            "attachments": [attachment.to_dict() for attachment in self.attachments],
            "metadata": dict(self.metadata),
            "pinned": self.pinned,
            "complete": self.complete,
            "dropped": self.dropped,
            "scope": None if self.scope is None else _texts(self.scope),
        }

    @staticmethod
    def _of(plain: dict[str, Any]) -> Checkpoint:
        plain = dict(plain)
        plain["timestamp"] = moment(plain.pop("milliseconds"))
        plain["git"] = GitState(**plain["git"]) if plain["git"] else None
        plain["feature_state"] = FeatureState(**plain["feature_state"]) if plain["feature_state"] else None
        plain["context"] = Context(**plain["context"]) if plain["context"] else None
        plain["attachments"] = [Attachment(**attachment) for attachment in plain["attachments"]]
        return Checkpoint(**plain)


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs. A directory ends in ``/``."""

    path: str
    status: ChangeStatus
    insertions: int
    deletions: int
    binary: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "insertions": self.insertions,
            "deletions": self.deletions,
            "binary": self.binary,
            **_path_keys(self.path),
        }


def _changes(plain: list[dict[str, Any]]) -> list[Change]:
    return [Change(**change) for change in plain]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A path that was left out, with the reason."""

    path: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"path": text(self.path), "reason": self.reason}


def _skipped(plain: list[dict[str, Any]]) -> list[Skipped]:
    return [Skipped(**skipped) for skipped in plain]


@dataclass(frozen=True, slots=True)
class Saved:
    """The outcome of `Workspace.save`."""

    created: bool
    """Was one made? Otherwise nothing had changed, and the checkpoint is the one that the workspace stands on."""
    checkpoint: Checkpoint
    skipped: list[Skipped]
    dropped: list[Skipped] = field(default_factory=list)
    """Paths that the checkpoint before it held, that are still on disk, and that are not captured any more."""

    @property
    def id(self) -> str:
        """The checkpoint's id."""
        return self.checkpoint.id

    def to_dict(self) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True)
class Stepped:
    """The outcome of `Workspace.step`."""

    step: int
    """The number of the step in its session, from 1."""
    created: bool
    checkpoint: Checkpoint | None
    """The checkpoint that was taken; none where none was due, or nothing had changed."""
    dropped: list[Skipped] = field(default_factory=list)
    """Paths that the checkpoint before it held, that are still on disk, and that are not captured any more."""

    def to_dict(self) -> dict[str, Any]:
        checkpoint = self.checkpoint.to_dict() if self.checkpoint else None
        dropped = [skipped.to_dict() for skipped in self.dropped]
        return {"step": self.step, "created": self.created, "checkpoint": checkpoint, "dropped": dropped}

    @staticmethod
    def _of(plain: dict[str, Any]) -> Stepped:
        checkpoint = Checkpoint._of(plain["checkpoint"]) if plain["checkpoint"] else None
        return Stepped(plain["step"], plain["created"], checkpoint, _skipped(plain["dropped"]))


@dataclass(frozen=True, slots=True)
class Shown:
    """The outcome of `Workspace.show`: a checkpoint with its changes."""

    checkpoint: Checkpoint
    changes: list[Change]

    def to_dict(self) -> dict[str, Any]:
        return {"checkpoint": self.checkpoint.to_dict(), "changes": [change.to_dict() for change in self.changes]}

    @staticmethod
    def _of(plain: dict[str, Any]) -> Shown:
        return Shown(Checkpoint._of(plain["checkpoint"]), _changes(plain["changes"]))


@dataclass(frozen=True, slots=True)
class Status:
    """The outcome of `Workspace.status`: what changed on disk. True where something did."""

    checkpoint: Checkpoint | None
    changes: list[Change]
    skipped: list[Skipped] = field(default_factory=list)
    """What the checkpoint holds and a new one would leave out: how it changed can't be told."""

    def __bool__(self) -> bool:
        return bool(self.changes or self.skipped)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def to_dict(self) -> dict[str, Any]:
        checkpoint = self.checkpoint.to_dict() if self.checkpoint else None
        answer: dict[str, Any] = {"checkpoint": checkpoint, "changes": [change.to_dict() for change in self.changes]}
        if self.skipped:
            answer["skipped"] = [skipped.to_dict() for skipped in self.skipped]
        return answer

    @staticmethod
    def _of(plain: dict[str, Any]) -> Status:
        checkpoint = Checkpoint._of(plain["checkpoint"]) if plain["checkpoint"] else None
        return Status(checkpoint, _changes(plain["changes"]), _skipped(plain["skipped"]))


@dataclass(frozen=True, slots=True)
class Diff:
    """The outcome of `Workspace.diff`."""

    from_id: str | None
    to_id: str | None
    """None for the files on disk."""
    changes: list[Change]
    patch: str
    """What ``git apply`` takes."""
    skipped: list[Skipped] = field(default_factory=list)
    """What the older side holds and a checkpoint of the files on disk would leave out: how it differs can't be told."""

    @property
    def added_files(self) -> list[str]:
        return [change.path for change in self.changes if change.status == "added"]

    @property
    def modified_files(self) -> list[str]:
        return [change.path for change in self.changes if change.status not in ("added", "deleted")]

    @property
    def deleted_files(self) -> list[str]:
        return [change.path for change in self.changes if change.status == "deleted"]

    def to_dict(self) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a path."""

    checkpoint: str
    status: ChangeStatus
    bytes: int | None
    insertions: int
    deletions: int
    binary: bool
    safety: bool
    """Whether only the safety checkpoint of a restore has it: work that was not saved."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint,
            "status": self.status,
            "bytes": self.bytes,
            "insertions": self.insertions,
            "deletions": self.deletions,
            "binary": self.binary,
            "safety": self.safety,
        }


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that something stood in the way of, or that somebody wrote in between."""

    path: str
    reason: str
    kept: str | None
    """Where the bytes are kept that somebody wrote in between: the id of an object in the store."""

    def to_dict(self) -> dict[str, Any]:
        return {"path": text(self.path), "reason": self.reason, "kept": self.kept}


@dataclass(frozen=True, slots=True)
class GitMoved:
    """Where the user's repository stands after a restore that moved it."""

    commit: str | None
    branch: str | None

    def to_dict(self) -> dict[str, Any]:
        return {"commit": self.commit, "branch": self.branch}


@dataclass(frozen=True, slots=True)
class Restored:
    """The outcome of a restore, or the plan of one."""

    checkpoint: str | None
    """The checkpoint that was restored; none where there was nothing to take back."""
    plan: str | None
    """A hash over everything that would change: hand it to `Workspace.restore` to do just that."""
    changes: list[Change]
    """What happens to the workspace: a file that comes back is ``added``."""
    applied: bool
    safety: str | None
    """The checkpoint that holds the workspace as it was before."""
    conflicts: list[Conflict]
    git: GitMoved | None = None
    """Where the user's repository stands, where it was moved."""
    conversation: Any = field(default=None, compare=False)
    """What was saved with the checkpoint as its conversation."""
    stays: list[Conflict] = field(default_factory=list)
    """Of a plan: what should go and would stay, and stands in nobody's way. A restore has it in its conflicts."""

    def to_dict(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "plan": self.plan,
            "changes": [change.to_dict() for change in self.changes],
            "applied": self.applied,
            "safety": self.safety,
            "conflicts": [conflict.to_dict() for conflict in self.conflicts],
            "git": self.git.to_dict() if self.git else None,
        }
        if self.stays:
            answer["stays"] = [conflict.to_dict() for conflict in self.stays]
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
        )


@dataclass(frozen=True, slots=True)
class Exported:
    """The outcome of `Workspace.export`."""

    directory: Path
    files: int
    """How many files, links included."""

    def to_dict(self) -> dict[str, Any]:
        return {"directory": text(str(self.directory)), "files": self.files}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What retention says of one checkpoint."""

    id: str
    kind: Kind
    keep: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "keep": self.keep, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class NotApplied:
    """A limit of retention that is set and was not applied."""

    key: str
    """The key in the settings: ``max_age`` or ``max_bytes``."""
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"key": self.key, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Pruned:
    """The outcome of `Workspace.prune`."""

    deleted: list[str]
    kept: int
    bytes_before: int
    bytes_after: int
    not_applied: list[NotApplied] = field(default_factory=list)
    """Limits that are set and were not applied."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "deleted": list(self.deleted),
            "kept": self.kept,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "not_applied": [limit.to_dict() for limit in self.not_applied],
        }


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in the store that is not as it should be."""

    id: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of `Workspace.verify`. True where all is well."""

    checkpoints: int
    damaged: list[Damage]

    @property
    def ok(self) -> bool:
        return not self.damaged

    def __bool__(self) -> bool:
        return self.ok

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "checkpoints": self.checkpoints,
            "damaged": [damage.to_dict() for damage in self.damaged],
        }

    @staticmethod
    def _of(plain: dict[str, Any]) -> Verification:
        return Verification(plain["checkpoints"], [Damage(**damage) for damage in plain["damaged"]])


@dataclass(frozen=True, slots=True)
class WorkspaceInfo:
    """A workspace that has a store."""

    path: Path
    exists: bool
    is_gone: bool
    """Is it gone for good, rather than on a disk that is not mounted?"""
    store: Path
    bytes: int
    checkpoints: int
    newest: datetime | None
    moved_to: Path | None = None
    """Where it is by now, if it was renamed where it lay."""

    def to_dict(self) -> dict[str, Any]:
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
    "checkpoints_pruned",
    "recovered",
    "error",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    event: EventName
    time: datetime
    checkpoint: str | None = None
    """The checkpoint that it is about, where there is one."""
    details: dict[str, Any] = field(default_factory=dict)
    """Whatever else there is to say about it."""

    def to_dict(self) -> dict[str, Any]:
        own = {"event": self.event, "time": timestamp(self.time)}
        return {**own, **({"checkpoint": self.checkpoint} if self.checkpoint else {}), **self.details}

    @staticmethod
    def _of(plain: dict[str, Any]) -> Event:
        details = dict(plain)
        name, time = details.pop("event"), details.pop("time")
        return Event(name, _parse_time(time), details.pop("checkpoint", None), details)


def _parse_time(time: str) -> datetime:
    # Python 3.10 reads neither a `Z` nor more than six digits of a second.
    whole, _, fraction = time.removesuffix("Z").partition(".")
    parsed = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc)
    return parsed + timedelta(microseconds=int(fraction[:6].ljust(6, "0")) if fraction else 0)
