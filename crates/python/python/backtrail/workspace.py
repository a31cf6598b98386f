"""A directory under protection: what every operation hangs on."""

from __future__ import annotations

import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Literal, TypeVar, get_args

from . import _given as given
from . import conversation as conversations
from ._native import Call, NativeSurvey, NativeWorkspace, forget_store, stores_directory, workspaces
from ._given import CheckpointRef as CheckpointRef
from ._given import StrPath as StrPath
from .errors import BacktrailError, CallbackError, UsageError
from .results import (
    Checkpoint,
    Diff,
    Event,
    EventName,
    Exported,
    Kind,
    NotApplied,
    Pruned,
    Restored,
    Saved,
    Shown,
    Status,
    Stepped,
    Verdict,
    Verification,
    Version,
    WorkspaceInfo,
    moment,
)

if TYPE_CHECKING:
    from .guard import Guard

Only = Literal["all", "files", "state"]

Callback = Callable[[Event], object]

_Result = TypeVar("_Result")
_log = logging.getLogger("backtrail")

EVENTS: tuple[str, ...] = get_args(EventName)

calls: ContextVar[list[Call] | None] = ContextVar("backtrail_calls", default=None)
"""Where a caller is told of calls as they begin, to be able to stop them."""


class Workspace:
    """A directory under protection, with its store.

    `path` is the directory itself, `store` a place for its store other than the usual one. `settings` has the tables of
    a settings file and wins over both of them: ``{"retention": {"step": 50}}``. `exclude` has patterns of paths to leave
    out, on top of those in the settings. `wait` says how many seconds to wait while somebody else works on the workspace.
    `force` takes directories such as the home directory, too.

    Paths are relative to the workspace, wherever the process stands, or absolute. All methods can be called from any
    thread, and let other threads run while they work.
    """

    def __init__(
        self,
        path: StrPath,
        store: StrPath | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        exclude: Iterable[str] = (),
        wait: float = 30.0,
        force: bool = False,
    ) -> None:
        self._open(path, store, settings, exclude, wait, force, around=False)

    @classmethod
    def around(
        cls,
        path: StrPath = ".",
        store: StrPath | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        exclude: Iterable[str] = (),
        wait: float = 30.0,
        force: bool = False,
    ) -> Workspace:
        """The workspace that `path` lies in: the nearest directory above it that has a store, else a ``.git``.

        A nearer ``.git`` goes first where the workspace around it has none itself, or skips it.
        """
        workspace = cls.__new__(cls)
        workspace._open(path, store, settings, exclude, wait, force, around=True)
        return workspace

    def _open(
        self,
        path: StrPath,
        store: StrPath | None,
        settings: Mapping[str, Any] | None,
        exclude: Iterable[str],
        wait: float,
        force: bool,
        *,
        around: bool,
    ) -> None:
        if isinstance(exclude, str):
            raise TypeError("exclude is a list of patterns, not a str")
        if settings is not None and not isinstance(settings, Mapping):
            raise TypeError(f"settings is a mapping of tables, not {type(settings).__name__}")
        self._options: dict[str, Any] = {
            "settings": dict(settings or {}),
            "exclude": list(exclude),
            "wait": wait,
            "force": force,
        }
        words = {
            **self._options,
            "around": around,
            "store": None if store is None else given.path(store),
            "settings": json.dumps(self._options["settings"], default=os.fspath),
        }
        self._native = NativeWorkspace(given.path(path), words)
        self._callbacks: dict[str, List[Callback]] = {name: [] for name in EVENTS}

    @property
    def path(self) -> Path:
        """The directory under protection."""
        return Path(self._native.root)

    @property
    def store(self) -> Path:
        """Its store: a bare git repository, made by the first save."""
        return Path(self._native.store)

    def __repr__(self) -> str:
        return f"Workspace({self._native.root!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Callbacks stay behind: they belong to this process.
        return _rebuild, (type(self), self._native.root, self._native.store, self._options)

    # Taking checkpoints

    def init(self) -> bool:
        """Makes the store without a checkpoint; says whether it was missing. The first save does this by itself."""
        return self._run(bool, self._native.init)

    def save(
        self,
        message: str | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        kind: Kind = "manual",
        step: int | None = None,
        session: str | None = None,
        session_number: int | None = None,
        tokens: int | None = None,
        agent: str | None = None,
        turn: int | None = None,
        prompt: str | None = None,
        tool: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        attachments: Mapping[str, bytes | str] | None = None,
        conversation: Any = None,
        include: Iterable[StrPath] = (),
        allow_empty: bool = False,
        if_changed: bool = False,
    ) -> Saved:
        """Takes a checkpoint. When this returns, it survives a power cut.

        Where nothing changed and nothing but a message or who works on what (`agent`, `session` with its numbers,
        `turn`, `prompt`, `tool`) is given, none is made: ``created`` is false. With `allow_empty` one is made all the
        same, with `if_changed` none is made then, whatever else is given. `conversation` is any object that JSON can
        hold, and comes back from `restore`. `include` names paths to capture although a rule leaves them out, now and
        later.
        """
        if attachments is not None and not isinstance(attachments, Mapping):
            raise TypeError(f"attachments is a mapping of names to bytes, not {type(attachments).__name__}")
        kept = {key: given.attachment(key, value) for key, value in (attachments or {}).items()}
        if conversation is not None:
            if conversations.NAME in kept:
                raise UsageError(f"{conversations.NAME!r} is the attachment that holds the conversation")
            kept[conversations.NAME] = conversations.to_bytes(conversation)
        words = {
            "message": message,
            "name": name,
            "description": description,
            "kind": kind,
            "step": step,
            "session": session,
            "session_number": session_number,
            "tokens": tokens,
            "agent": agent,
            "turn": turn,
            "prompt": prompt,
            "tool": tool,
            "metadata": given.json_text("metadata", metadata),
            "attachments": list(kept.items()),
            "include": given.paths(include),
            "allow_empty": allow_empty,
            "if_changed": if_changed,
        }
        return self._run(Saved._of, self._native.save, words)

    def step(
        self,
        session: str | None = None,
        touching: Iterable[StrPath] = (),
        *,
        message: str | None = None,
        agent: str | None = None,
        turn: int | None = None,
        prompt: str | None = None,
        tool: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Stepped:
        """Says that a step of an agent is about to happen.

        It is counted per session, and a checkpoint is taken where the setting ``every_n_steps`` has one due: always
        where `touching` names a file that was not captured yet, ignored ones included.
        """
        words = {
            "session": session,
            "touching": given.paths(touching),
            "message": message,
            "agent": agent,
            "turn": turn,
            "prompt": prompt,
            "tool": tool,
            "metadata": given.json_text("metadata", metadata),
        }
        return self._run(Stepped._of, self._native.step, words)

    # Looking

    def list(
        self,
        limit: int | None = None,
        *,
        kind: Kind | None = None,
        session: str | None = None,
        path: StrPath | None = None,
        grep: str | None = None,
        since: datetime | timedelta | None = None,
        safety: bool = True,
    ) -> List[Checkpoint]:
        """The checkpoints, newest first. `since` is a moment, or how long ago; `safety` takes in those of restores."""
        words = {
            "limit": limit,
            "kind": kind,
            "session": session,
            "path": None if path is None else given.path(path),
            "grep": grep,
            "since_milliseconds": None if since is None else given.since(since),
            "hide_safety": not safety,
        }
        return self._run(lambda found: [Checkpoint._of(plain) for plain in found], self._native.list, words)

    def current(self) -> Checkpoint | None:
        """The checkpoint that the workspace stands on; none before the first."""
        found = self._run(lambda word: word, self._native.current)
        return None if found is None else self.get(found)

    def get(self, checkpoint: CheckpointRef) -> Checkpoint:
        """One checkpoint."""
        return self._run(Checkpoint._of, self._native.get, given.word(checkpoint))

    def show(self, checkpoint: CheckpointRef) -> Shown:
        """One checkpoint with what it changed."""
        return self._run(Shown._of, self._native.show, given.word(checkpoint))

    def status(self, since: CheckpointRef | None = None) -> Status:
        """What changed on disk since a checkpoint, or since the one that the workspace stands on."""
        return self._run(Status._of, self._native.status, given.word_or_none(since))

    def diff(
        self,
        from_checkpoint: CheckpointRef | None = None,
        to_checkpoint: CheckpointRef | None = None,
        paths: StrPath | Iterable[StrPath] | None = None,
    ) -> Diff:
        """What differs between two checkpoints, or between one and the files on disk."""
        words = given.word_or_none(from_checkpoint), given.word_or_none(to_checkpoint)
        return self._run(Diff._of, self._native.diff, *words, given.paths_or_none(paths))

    def patch(self, checkpoint: CheckpointRef, paths: StrPath | Iterable[StrPath] | None = None) -> Diff:
        """What a checkpoint changed: the difference against the one before it, or against nothing."""
        return self._run(Diff._of, self._native.patch, given.word(checkpoint), given.paths_or_none(paths))

    def _patch_text(self, checkpoint: CheckpointRef, path: StrPath) -> str:
        """The text alone of what `patch` gives: callers that want no more are quick ones."""
        return self._run(str, self._native.patch_text, given.word(checkpoint), given.path(path))

    def read(self, checkpoint: CheckpointRef, path: StrPath) -> bytes:
        """The bytes of one file at a checkpoint; of a symlink, its target."""
        return self._run(bytes, self._native.read, given.word(checkpoint), given.path(path))

    def attachment(self, checkpoint: CheckpointRef, name: str) -> bytes:
        """The bytes of an attachment."""
        return self._run(bytes, self._native.attachment, given.word(checkpoint), name)

    def conversation(self, checkpoint: CheckpointRef) -> Any:
        """What was saved with the checkpoint as its conversation; none where nothing was."""
        found = self.get(checkpoint)
        if all(attachment.name != conversations.NAME for attachment in found.attachments):
            return None
        return conversations.from_bytes(self.attachment(found, conversations.NAME))

    def history(self, path: StrPath) -> List[Version]:
        """Every version of one path, newest first, deletions included."""
        make: Callable[[Sequence[dict[str, Any]]], List[Version]] = lambda found: [Version(**plain) for plain in found]
        return self._run(make, self._native.history, given.path(path))

    def export(self, checkpoint: CheckpointRef, directory: StrPath) -> Exported:
        """Writes a checkpoint's files into a new or empty directory elsewhere."""
        target = Path(given.path(directory)).absolute()
        return self._run(lambda files: Exported(target, files), self._native.export, given.word(checkpoint), target)

    def events(self) -> List[Event]:
        """What happened to this workspace so far, oldest first; the oldest are forgotten at some time."""
        make: Callable[[Sequence[str]], List[Event]] = lambda lines: [Event._of(json.loads(line)) for line in lines]
        return self._run(make, self._native.events)

    # Going back

    def plan(
        self,
        checkpoint: CheckpointRef,
        paths: StrPath | Iterable[StrPath] | None = None,
        *,
        only: Only = "all",
        exact: bool = False,
        skip_conflicts: bool = False,
        git: bool = False,
    ) -> Restored:
        """What `restore` would do with the same arguments. Touches nothing."""
        words = _restore_words(checkpoint, paths, only, exact, skip_conflicts, git, None)
        return self._run(Restored._of, self._native.plan, words)

    def restore(
        self,
        checkpoint: CheckpointRef,
        paths: StrPath | Iterable[StrPath] | None = None,
        *,
        plan: Restored | str | None = None,
        only: Only = "all",
        exact: bool = False,
        skip_conflicts: bool = False,
        git: bool = False,
    ) -> Restored:
        """Makes the workspace, or just some paths, equal to a checkpoint.

        A safety checkpoint is taken first, so that nothing is lost and `undo` takes it back. With `plan`, nothing is
        done unless the plan is still the same. `only` tells the agent's own state files from all others. `exact` also
        removes what an incomplete checkpoint lacks. `git` also moves HEAD, branch and index of the user's repository back.
        """
        words = _restore_words(checkpoint, paths, only, exact, skip_conflicts, git, plan)
        return self._run(self._restored, self._native.restore, words)

    def rewind(self, steps: int = 1, *, turn: bool = False) -> Restored:
        """Goes back so many checkpoints from where the workspace stands; with `turn`, to before the N-th last prompt."""
        if not isinstance(steps, int) or isinstance(steps, bool):
            raise TypeError(f"steps is a number, not {type(steps).__name__}")
        if steps < 1:
            raise UsageError(f"rewind goes back 1 step or more, not {steps}")
        if not turn:
            return self.restore(f"@~{steps}")
        turns = self._run(lambda ids: ids, self._native.turns_behind)
        if len(turns) < steps:
            raise UsageError(f"there are only {len(turns)} prompts to go back")
        return self.restore(turns[steps - 1])

    def undo(self) -> Restored:
        """Takes back the last restore; repeated, it walks further back. ``applied`` is false where there is none.

        ``conversation`` is that of the checkpoint which the workspace stands on then.
        """
        return self._run(self._taken_back, self._native.undo)

    def redo(self) -> Restored:
        """Takes back the last undo; otherwise as `undo`."""
        return self._run(self._taken_back, self._native.redo)

    def guard(self, message: str | None = None) -> Guard:
        """A checkpoint around a block: ``with workspace.guard("try it"):`` rolls back if the block raises."""
        from .guard import Guard

        return Guard(self, message)

    def _survey(self) -> NativeSurvey:
        """The names, sizes and times of everything in the workspace, captured or not."""
        survey: NativeSurvey = self._run(lambda survey: survey, self._native.survey)
        return survey

    def _not_taken_back(self, survey: NativeSurvey, restored: Restored) -> List[str]:
        """What differs from a survey although the workspace was restored; conflicts included."""
        try:
            found = self._run(lambda paths: paths, self._native.not_taken_back, survey, restored.checkpoint)
        except BacktrailError:
            # The rollback is done; nothing else is known to be as before.
            found = ["."]
        return sorted({*found, *(conflict.path for conflict in restored.conflicts)})

    # Looking after the store

    def delete(
        self,
        *checkpoints: CheckpointRef,
        older_than: datetime | timedelta | None = None,
        kind: Kind | None = None,
        force: bool = False,
    ) -> List[str]:
        """Forgets checkpoints; feature ones only by force. Gives their ids.

        Instead of naming them, `older_than` takes all that are older than this, or from before that moment, of one
        `kind` or of all; the one that the workspace stands on and pinned ones stay.
        """
        if older_than is None:
            if kind is not None:
                raise UsageError("kind works only with older_than; give older_than, too")
            words = [given.word(checkpoint) for checkpoint in checkpoints]
            return self._run(lambda ids: ids, self._native.delete, words, force)
        if checkpoints:
            raise UsageError("give checkpoints or older_than, not both")
        age = given.age(older_than)
        return self._run(lambda ids: ids, self._native.delete_older, age, {"kind": kind}, force)

    def pin(self, checkpoint: CheckpointRef) -> Checkpoint:
        """Keeps a checkpoint from retention."""
        return self._run(Checkpoint._of, self._native.pin, given.word(checkpoint))

    def unpin(self, checkpoint: CheckpointRef) -> Checkpoint:
        """Leaves a checkpoint to retention again."""
        return self._run(Checkpoint._of, self._native.unpin, given.word(checkpoint))

    def plan_prune(self) -> List[Verdict]:
        """What retention says of every checkpoint, newest first. Touches nothing."""
        make: Callable[[Sequence[dict[str, Any]]], List[Verdict]] = lambda found: [Verdict(**plain) for plain in found]
        return self._run(make, self._native.plan_prune)

    def prune(self) -> Pruned:
        """Applies the retention policy now, and reclaims space."""

        def make(plain: dict[str, Any]) -> Pruned:
            limits = [NotApplied(**limit) for limit in plain.pop("not_applied")]
            return Pruned(**plain, not_applied=limits)

        return self._run(make, self._native.prune)

    def verify(self) -> Verification:
        """Checks every object, ref and record of the store. Damage is told, not raised."""
        return self._run(Verification._of, self._native.verify)

    def forget(self, *, yes: bool) -> None:
        """Removes the store with all its checkpoints. The workspace itself is not touched."""
        if yes is not True:
            raise UsageError("this removes all checkpoints for good; confirm with forget(yes=True)")
        if self._run(bool, self._native.has_store):
            forget_store(self._native.store, self._options["wait"])

    @staticmethod
    def all(stores: StrPath | None = None) -> List[WorkspaceInfo]:
        """Every workspace that has a store, by path. `stores` is a directory of stores other than the usual one."""
        found = workspaces(stores_directory() if stores is None else given.path(stores))
        return [WorkspaceInfo._of(plain) for plain in found]

    # Events

    def on(self, event: EventName, callback: Callback) -> Callable[[], None]:
        """Calls `callback` with each `Event` of this name that an operation of this object causes.

        It is called after the operation, in the thread that ran it, and may use the workspace. Should it raise, the
        operation raises `CallbackError`, which has its result. What this returns removes the callback again.
        """
        if event not in EVENTS:
            raise UsageError(f"there is no event {event!r}; the events are {', '.join(EVENTS)}")
        if not callable(callback):
            raise TypeError(f"a callback is a function, not {type(callback).__name__}")
        self._callbacks[event].append(callback)

        def remove() -> None:
            if callback in self._callbacks[event]:
                self._callbacks[event].remove(callback)

        return remove

    # How it is done

    def _run(self, make: Callable[[Any], _Result], operation: Callable[..., Any], *arguments: Any) -> _Result:
        call = Call()
        listeners = calls.get()
        if listeners is not None:
            listeners.append(call)
        try:
            result = make(operation(*arguments, call))
        except BaseException as problem:
            happened = [Event._of(plain) for plain in call.take_events()]
            if isinstance(problem, BacktrailError):
                details = {"code": problem.code, "message": problem.message}
                happened.append(Event("error", moment(time.time_ns() // 1_000_000), None, details))
            for event, failure in self._tell(happened):
                # The operation's own failure is the one to be raised.
                _log.error("a callback for %s raised", event.event, exc_info=failure)
            raise
        told = call.take_events()
        failures = self._tell([Event._of(plain) for plain in told]) if told else None
        if failures:
            event, failure = failures[0]
            message = f"the operation was done, but a callback for {event.event} raised {failure!r}"
            error = CallbackError(message)
            error.result = result
            raise error from failure
        return result

    def _tell(self, events: Iterable[Event]) -> List[tuple[Event, Exception]]:
        failures: List[tuple[Event, Exception]] = []
        for event in events:
            for callback in tuple(self._callbacks.get(event.event, ())):
                try:
                    callback(event)
                except Exception as failure:
                    failures.append((event, failure))
        return failures

    def _restored(self, plain: dict[str, Any]) -> Restored:
        return Restored._of(plain, self._conversation_at(plain["target"]))

    def _taken_back(self, plain: dict[str, Any]) -> Restored:
        # What was restored is a safety checkpoint: the conversation is where the workspace stood when that was taken.
        return Restored._of(plain, self._conversation_at("@") if plain["applied"] else None)

    def _conversation_at(self, word: str) -> Any:
        try:
            return self.conversation(word)
        except (BacktrailError, ValueError, RecursionError) as problem:
            # The files are back, and the caller must hear of that.
            warnings.warn(f"the conversation of {word} can't be read: {problem}", stacklevel=5)
            return None


def _rebuild(kind: type[Workspace], root: str, store: str, options: dict[str, Any]) -> Workspace:
    return kind(root, store, **options)


def _restore_words(
    checkpoint: CheckpointRef,
    paths: StrPath | Iterable[StrPath] | None,
    only: Only,
    exact: bool,
    skip_conflicts: bool,
    git: bool,
    plan: Restored | str | None,
) -> dict[str, Any]:
    return {
        "word": given.word(checkpoint),
        "paths": given.paths_or_none(paths),
        "only": only,
        "exact": exact,
        "skip_conflicts": skip_conflicts,
        "git": git,
        "plan": plan.plan if isinstance(plan, Restored) else plan,
    }
