"""`Workspace`, the class with all operations on a protected directory."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Literal, TypeVar, get_args

from . import _given as given
from . import conversation as conversations
from ._native import Call, NativeBisection, NativeSurvey, NativeWorkspace, forget_store, stores_directory, workspaces
from ._given import CheckpointRef as CheckpointRef
from ._given import StrPath as StrPath
from .errors import BacktrailError, CallbackError, UsageError
from .results import (
    Adopted,
    Bisected,
    Blame,
    Change,
    Checkpoint,
    Checkpoints,
    Diff,
    Event,
    EventName,
    Exported,
    Fork,
    Kind,
    NotApplied,
    Pruned,
    Restored,
    Reverted,
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
"""The list to which each call is added when it begins, so that the caller can stop it. `None` if no caller wants to."""


class Workspace:
    """A protected directory, with its store.

    `path` is the directory itself, and `store` a location for its store other than the default. `settings` has the
    tables of a settings file and overrides both the user's and the workspace's settings file:
    ``{"retention": {"step": 50}}``. `exclude` has patterns of paths to skip, in addition to the patterns in the
    settings. `wait` is the number of seconds to wait while another process or thread works on the workspace. `force`
    also accepts directories such as the home directory.

    Paths are absolute, or relative to the workspace, whatever the current directory is. All methods can be called from
    any thread, and release the interpreter lock while they work.
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
        """Returns the workspace that contains `path`.

        This is the nearest directory at or above `path` that has a store, or else the nearest one that has a ``.git``,
        or else `path` itself. A directory with a ``.git`` below the one with the store takes precedence if the latter
        has no ``.git`` itself, or skips the former.
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
            raise TypeError("exclude must be a list of patterns, not a str")
        if settings is not None and not isinstance(settings, Mapping):
            raise TypeError(f"settings must be a mapping of tables, not {type(settings).__name__}")
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
        """The protected directory."""
        return Path(self._native.root)

    @property
    def store(self) -> Path:
        """The directory of the store: a bare git repository, which the first save creates."""
        return Path(self._native.store)

    def __repr__(self) -> str:
        return f"Workspace({self._native.root!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Callbacks are left out, because they belong to this process.
        return _rebuild, (type(self), self._native.root, self._native.store, self._options)

    # Taking checkpoints

    def init(self) -> bool:
        """Creates the store without a checkpoint. Returns whether it was missing. The first save does this, too."""
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
        command: str | None = None,
        author: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        attachments: Mapping[str, bytes | str] | None = None,
        conversation: Any = None,
        include: Iterable[StrPath] = (),
        allow_empty: bool = False,
        if_changed: bool = False,
    ) -> Saved:
        """Takes a checkpoint. Once this returns, the checkpoint survives a power cut.

        If no file changed, and the only other arguments are a message or a description of the work (`agent`, `session`
        with its numbers, `turn`, `prompt`, `tool`, `command`, `author`), no checkpoint is taken, and ``created`` is
        false. `allow_empty` takes a checkpoint even then. `if_changed` takes none if no file changed, whatever else is given. `conversation`
        is any object that JSON can represent; `restore` returns it. `include` has paths to capture although a rule
        skips them, in this checkpoint and in later ones.
        """
        if attachments is not None and not isinstance(attachments, Mapping):
            raise TypeError(f"attachments must be a mapping of names to bytes, not {type(attachments).__name__}")
        kept = {key: given.attachment(key, value) for key, value in (attachments or {}).items()}
        if conversation is not None:
            if conversations.NAME in kept:
                raise UsageError(f"the attachment name {conversations.NAME!r} is reserved for the conversation")
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
            "command": command,
            "author": author,
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
        command: str | None = None,
        author: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Stepped:
        """Counts a step that an agent is about to make, and takes a checkpoint if one is due.

        Steps are counted per session. The setting ``every_n_steps`` determines when a checkpoint is due. One is always
        due if `touching` has a file that was not captured yet, even an ignored one.
        """
        words = {
            "session": session,
            "touching": given.paths(touching),
            "message": message,
            "agent": agent,
            "turn": turn,
            "prompt": prompt,
            "tool": tool,
            "command": command,
            "author": author,
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
    ) -> Checkpoints:
        """Returns the checkpoints, newest first.

        `since` is a time, or an age. `safety` includes the safety checkpoints of restores.
        """
        words = {
            "limit": limit,
            "kind": kind,
            "session": session,
            "path": None if path is None else given.path(path),
            "grep": grep,
            "since_milliseconds": None if since is None else given.since(since),
            "hide_safety": not safety,
        }
        make: Callable[[Sequence[dict[str, Any]]], Checkpoints] = lambda found: Checkpoints(map(Checkpoint._of, found))
        return self._run(make, self._native.list, words)

    def current(self) -> Checkpoint | None:
        """Returns the checkpoint that the workspace stands on, or `None` before the first one."""
        found = self._run(lambda word: word, self._native.current)
        return None if found is None else self.get(found)

    def get(self, checkpoint: CheckpointRef) -> Checkpoint:
        """Returns one checkpoint."""
        return self._run(Checkpoint._of, self._native.get, given.word(checkpoint))

    def show(self, checkpoint: CheckpointRef) -> Shown:
        """Returns one checkpoint with its changes."""
        return self._run(Shown._of, self._native.show, given.word(checkpoint))

    def status(self, since: CheckpointRef | None = None) -> Status:
        """Returns the changes on disk since a checkpoint: by default, the one that the workspace stands on."""
        return self._run(Status._of, self._native.status, given.word_or_none(since))

    def diff(
        self,
        from_checkpoint: CheckpointRef | None = None,
        to_checkpoint: CheckpointRef | None = None,
        paths: StrPath | Iterable[StrPath] | None = None,
    ) -> Diff:
        """Returns the differences between two checkpoints, or between a checkpoint and the files on disk.

        `from_checkpoint` defaults to the checkpoint that the workspace stands on, and `to_checkpoint` to the files on
        disk.
        """
        words = given.word_or_none(from_checkpoint), given.word_or_none(to_checkpoint)
        return self._run(Diff._of, self._native.diff, *words, given.paths_or_none(paths))

    def patch(self, checkpoint: CheckpointRef, paths: StrPath | Iterable[StrPath] | None = None) -> Diff:
        """Returns the changes of a checkpoint: the difference from the one before it, or from an empty tree."""
        return self._run(Diff._of, self._native.patch, given.word(checkpoint), given.paths_or_none(paths))

    def _patch_text(self, checkpoint: CheckpointRef, path: StrPath) -> str:
        """Returns only the text of `patch` for one path. This is faster, because no `Diff` is built."""
        return self._run(str, self._native.patch_text, given.word(checkpoint), given.path(path))

    def read(self, checkpoint: CheckpointRef, path: StrPath) -> bytes:
        """Returns the bytes of one file at a checkpoint. For a symlink, this is its target."""
        return self._run(bytes, self._native.read, given.word(checkpoint), given.path(path))

    def attachment(self, checkpoint: CheckpointRef, name: str) -> bytes:
        """Returns the bytes of an attachment."""
        return self._run(bytes, self._native.attachment, given.word(checkpoint), name)

    def conversation(self, checkpoint: CheckpointRef) -> Any:
        """Returns the conversation that was saved with the checkpoint, or `None` if there is none."""
        found = self.get(checkpoint)
        if all(attachment.name != conversations.NAME for attachment in found.attachments):
            return None
        return conversations.from_bytes(self.attachment(found, conversations.NAME))

    def history(self, path: StrPath) -> List[Version]:
        """Returns every version of one path, newest first, including deletions."""
        make: Callable[[Sequence[dict[str, Any]]], List[Version]] = lambda found: [Version(**plain) for plain in found]
        return self._run(make, self._native.history, given.path(path))

    def blame(
        self, path: StrPath, checkpoint: CheckpointRef | None = None, lines: tuple[int, int] | None = None
    ) -> Blame:
        """Returns the checkpoint that introduced each line of a file, as it is on disk or at a checkpoint.

        `lines` has the first and the last line to return, counted from 1.
        """
        return self._run(Blame._of, self._native.blame, given.path(path), given.word_or_none(checkpoint), lines)

    def bisect(
        self,
        test: Callable[[Path], bool | None],
        *,
        good: CheckpointRef | None = None,
        bad: CheckpointRef | None = None,
        link: Iterable[str] | None = None,
    ) -> Bisected:
        """Returns the first checkpoint for which `test` fails.

        `test` gets a scratch directory with the files of one state after another. It returns whether the state is good,
        or `None` if the state can't be tested. An exception ends the search. `good` defaults to the oldest checkpoint on
        the line, and `bad` to the files on disk. `link` names skipped directories of the workspace that the scratch
        directory links to; by default these are the ones that a tool can rebuild, such as ``node_modules``.
        """
        if not callable(test):
            raise TypeError(f"test must be callable, not {type(test).__name__}")
        ends = given.word_or_none(good), given.word_or_none(bad)
        links = None if link is None else list(link)
        with tempfile.TemporaryDirectory(prefix="backtrail-bisect-") as name:
            directory = Path(name).resolve()
            same: Callable[[NativeBisection], NativeBisection] = lambda search: search
            search = self._run(same, self._native.bisection, *ends, directory, links)
            while self._run(bool, self._native.write_next, search):
                began = time.monotonic()
                passed = test(directory)
                search.record(None if passed is None else bool(passed), time.monotonic() - began)
            return self._run(Bisected._of, self._native.culprit, search)

    def export(self, checkpoint: CheckpointRef, directory: StrPath) -> Exported:
        """Writes the files of a checkpoint into a new or empty directory outside the workspace."""
        target = Path(given.path(directory)).absolute()
        return self._run(lambda files: Exported(target, files), self._native.export, given.word(checkpoint), target)

    def events(self) -> List[Event]:
        """Returns the events of this workspace, oldest first. The oldest are removed once there are many."""
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
        hunks: Iterable[str] | None = None,
    ) -> Restored:
        """Returns the plan of `restore` for the same arguments. Changes nothing."""
        words = _restore_words(checkpoint, paths, only, exact, skip_conflicts, git, None, hunks)
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
        hunks: Iterable[str] | None = None,
    ) -> Restored:
        """Makes the workspace, or only some paths, equal to a checkpoint.

        A safety checkpoint is taken first, so that nothing is lost and `undo` can take the restore back. If `plan` is
        given and the plan is another one by now, `PlanChangedError` is raised and nothing is changed. `only` selects
        the agent's own state files, all other files, or both. `exact` removes paths that the checkpoint lacks even if
        it is incomplete. `skip_conflicts` skips paths with a conflict, rather than to refuse the restore. `git` also
        moves HEAD, the branch and the index of the user's repository back. `hunks` has ids from `Workspace.hunks`; then
        only these hunks are restored.
        """
        words = _restore_words(checkpoint, paths, only, exact, skip_conflicts, git, plan, hunks)
        return self._run(self._restored, self._native.restore, words)

    def rewind(self, steps: int = 1, *, turn: bool = False) -> Restored:
        """Restores the checkpoint that lies `steps` checkpoints before the one that the workspace stands on.

        With `turn`, restores the state before the prompt that is the `steps`-th from the last.
        """
        if not isinstance(steps, int) or isinstance(steps, bool):
            raise TypeError(f"steps must be an int, not {type(steps).__name__}")
        if steps < 1:
            raise UsageError(f"steps must be 1 or more, not {steps}")
        if not turn:
            return self.restore(f"@~{steps}")
        turns = self._turns_behind()
        if len(turns) < steps:
            raise UsageError(f"steps is {steps}, but the number of prompts to go back to is {len(turns)}")
        return self.restore(turns[steps - 1])

    def _turns_behind(self) -> List[str]:
        """Returns the checkpoints of prompts on the line to where the workspace stands, newest first."""
        make: Callable[[Sequence[str]], List[str]] = list
        return self._run(make, self._native.turns_behind)

    def hunks(
        self,
        restore: CheckpointRef | None = None,
        paths: StrPath | Iterable[StrPath] | None = None,
        *,
        revert: CheckpointRef | None = None,
        turn: int | None = None,
        session: str | None = None,
    ) -> List[Change]:
        """Returns the changes that a restore or a revert would make on disk, those of text with their ``hunks``.

        `restore` is a checkpoint. `revert`, `turn` and `session` say what to take back, as for `Workspace.revert`.
        Without any of them, these are the changes on disk since the checkpoint that the workspace stands on. Pass ids of
        hunks to `restore` or `revert` as ``hunks``.
        """
        if revert is None and turn is None and session is None:
            words = _restore_words("@" if restore is None else restore, paths, "all", False, False, False, None, None)
            return self._run(Restored._of, self._native.plan, {**words, "list_hunks": True}).changes
        if restore is not None:
            raise UsageError("restore can't be combined with revert, turn or session")
        words = _revert_words(revert, paths, turn, session, False, False, None, None)
        return self._run(Reverted._made_of, self._native.plan_revert, {**words, "list_hunks": True}).changes

    def plan_revert(
        self,
        what: CheckpointRef | None = None,
        paths: StrPath | Iterable[StrPath] | None = None,
        *,
        turn: int | None = None,
        session: str | None = None,
        skip_conflicts: bool = False,
        markers: bool = False,
        hunks: Iterable[str] | None = None,
    ) -> Reverted:
        """Returns the plan of `revert` for the same arguments, with its conflicts. Changes nothing."""
        words = _revert_words(what, paths, turn, session, skip_conflicts, markers, None, hunks)
        return self._run(Reverted._made_of, self._native.plan_revert, words)

    def revert(
        self,
        what: CheckpointRef | None = None,
        paths: StrPath | Iterable[StrPath] | None = None,
        *,
        turn: int | None = None,
        session: str | None = None,
        plan: Restored | str | None = None,
        skip_conflicts: bool = False,
        markers: bool = False,
        hunks: Iterable[str] | None = None,
    ) -> Reverted:
        """Takes back one thing that was done, and keeps all later work.

        `what` is a checkpoint, whose own changes are taken back, ``turn:3`` for the agent's work for a prompt, or
        ``FROM..TO``. `turn` counts prompts from the last one, and `session` means all the agent's work in a session.
        Exactly one of the three is given; next to ``turn:3``, `session` only says whose prompt it is.

        Each file is merged with the edits that came after. If the same lines were changed since, `ConflictError` is
        raised and nothing is written, unless `skip_conflicts` leaves such files as they are, or `markers` writes both
        versions into them. A safety checkpoint is taken first, and `undo` takes the revert back.
        """
        words = _revert_words(what, paths, turn, session, skip_conflicts, markers, plan, hunks)
        return self._run(Reverted._made_of, self._native.revert, words)

    def fork(
        self,
        directory: StrPath,
        checkpoint: CheckpointRef | None = None,
        *,
        count: int | None = None,
        with_left_out: bool = False,
    ) -> List[Fork]:
        """Makes a new workspace with the files of a checkpoint, or with the files on disk, and returns it in a list.

        `directory` is new or empty, and outside this workspace. `count` makes that many, with ``-1``, ``-2`` and so on
        after the name. Directories that checkpoints skip are links to those here; `with_left_out` copies what is
        skipped. Each fork has a history of its own, which starts with the fork point.
        """
        named = Path(given.path(directory)).absolute()
        if count is not None and count < 1:
            raise UsageError(f"count must be 1 or more, not {count}")
        numbers = [""] if count is None else [f"-{number + 1}" for number in range(count)]
        words = {
            "word": given.word_or_none(checkpoint),
            "directories": [named.with_name(named.name + number) for number in numbers],
            "with_left_out": with_left_out,
        }
        return self._run(lambda made: [Fork._of(plain) for plain in made], self._native.fork, words)

    def forks(self) -> List[Fork]:
        """Returns the forks of this workspace, oldest first, with what was done in each."""
        return self._run(lambda found: [Fork._of(plain) for plain in found], self._native.forks)

    def plan_adopt(
        self, fork: StrPath | Fork, *, skip_conflicts: bool = False, markers: bool = False
    ) -> Adopted:
        """Returns the plan of `adopt` for the same arguments, with its conflicts. Changes no file."""
        words = _adopt_words(fork, skip_conflicts, markers, None)
        return self._run(Adopted._made_of, self._native.plan_adopt, words)

    def adopt(
        self,
        fork: StrPath | Fork,
        *,
        plan: Restored | str | None = None,
        skip_conflicts: bool = False,
        markers: bool = False,
    ) -> Adopted:
        """Brings the files of a fork back here, as they are on disk there.

        They are merged with the files here as in `revert`, with the fork point as the base. The fork stays as it is. A
        safety checkpoint is taken first, and `undo` takes the adoption back.
        """
        words = _adopt_words(fork, skip_conflicts, markers, plan)
        return self._run(Adopted._made_of, self._native.adopt, words)

    def undo(self) -> Restored:
        """Takes back the last restore or deletion. Repeated calls take back earlier ones.

        ``applied`` is false if there is nothing to take back. ``undeleted`` has the checkpoints that came back. ``conversation`` belongs to the checkpoint that the
        workspace stands on afterwards.
        """
        return self._run(self._taken_back, self._native.undo)

    def redo(self) -> Restored:
        """Takes back the last undo. The outcome has the same form as that of `undo`."""
        return self._run(self._taken_back, self._native.redo)

    def guard(self, message: str | None = None) -> Guard:
        """Returns a guard: ``with workspace.guard("try it"):`` rolls back if the block raises an exception."""
        from .guard import Guard

        return Guard(self, message)

    def _survey(self) -> NativeSurvey:
        """Returns the names, sizes and times of everything in the workspace, captured or not."""
        survey: NativeSurvey = self._run(lambda survey: survey, self._native.survey)
        return survey

    def _not_taken_back(self, survey: NativeSurvey, restored: Restored) -> List[str]:
        """Returns the paths that differ from a survey although the workspace was restored, including conflicts."""
        try:
            found = self._run(lambda paths: paths, self._native.not_taken_back, survey, restored.checkpoint)
        except BacktrailError:
            # The rollback is done. Any path that no checkpoint holds may differ.
            found = ["."]
        return sorted({*found, *(conflict.path for conflict in restored.conflicts)})

    # Maintaining the store

    def delete(
        self,
        *checkpoints: CheckpointRef,
        older_than: datetime | timedelta | None = None,
        kind: Kind | None = None,
        force: bool = False,
    ) -> List[str]:
        """Deletes checkpoints and returns their ids. Feature checkpoints are deleted only with `force`.

        Instead of `checkpoints`, `older_than` selects all checkpoints that are older than an age or a time, of one
        `kind` or of all kinds. Pinned checkpoints and the one that the workspace stands on are not selected.
        """
        if older_than is None:
            if kind is not None:
                raise UsageError("kind needs older_than: it limits which of the older checkpoints are deleted")
            words = [given.word(checkpoint) for checkpoint in checkpoints]
            return self._run(lambda ids: ids, self._native.delete, words, force)
        if checkpoints:
            raise UsageError("give checkpoints or older_than, not both")
        age = given.age(older_than)
        return self._run(lambda ids: ids, self._native.delete_older, age, {"kind": kind}, force)

    def pin(self, checkpoint: CheckpointRef) -> Checkpoint:
        """Pins a checkpoint, so that retention keeps it."""
        return self._run(Checkpoint._of, self._native.pin, given.word(checkpoint))

    def unpin(self, checkpoint: CheckpointRef) -> Checkpoint:
        """Removes the pin of a checkpoint, so that retention may delete it."""
        return self._run(Checkpoint._of, self._native.unpin, given.word(checkpoint))

    def plan_prune(self) -> List[Verdict]:
        """Returns the verdict of retention on every checkpoint, newest first. Changes nothing."""
        make: Callable[[Sequence[dict[str, Any]]], List[Verdict]] = lambda found: [Verdict(**plain) for plain in found]
        return self._run(make, self._native.plan_prune)

    def prune(self) -> Pruned:
        """Applies the retention policy now, and reclaims the space."""

        def make(plain: dict[str, Any]) -> Pruned:
            limits = [NotApplied(**limit) for limit in plain.pop("not_applied")]
            return Pruned(**plain, not_applied=limits)

        return self._run(make, self._native.prune)

    def verify(self) -> Verification:
        """Checks every object, ref and record of the store. Damage is returned, not raised."""
        return self._run(Verification._of, self._native.verify)

    def forget(self, *, yes: bool) -> None:
        """Removes the store with all its checkpoints. The workspace itself is not touched."""
        if yes is not True:
            raise UsageError("forget removes all checkpoints permanently; confirm with forget(yes=True)")
        if self._run(bool, self._native.has_store):
            forget_store(self._native.store, self._options["wait"])

    @staticmethod
    def all(stores: StrPath | None = None) -> List[WorkspaceInfo]:
        """Returns every workspace that has a store, sorted by path.

        `stores` is a directory of stores other than the default.
        """
        found = workspaces(stores_directory() if stores is None else given.path(stores))
        return [WorkspaceInfo._of(plain) for plain in found]

    # Events

    def on(self, event: EventName, callback: Callback) -> Callable[[], None]:
        """Calls `callback` with each `Event` of this name that an operation of this object causes.

        The callback is called after the operation, in the thread that ran the operation, and may use the workspace. If
        it raises, the operation raises `CallbackError`, which carries the result of the operation. Returns a function
        that removes the callback.
        """
        if event not in EVENTS:
            raise UsageError(f"unknown event {event!r}; the events are {', '.join(EVENTS)}")
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {type(callback).__name__}")
        self._callbacks[event].append(callback)

        def remove() -> None:
            if callback in self._callbacks[event]:
                self._callbacks[event].remove(callback)

        return remove

    # Running operations

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
            for event, failure in self._notify(happened):
                # The failure of the operation is raised, so that of the callback is only logged.
                _log.error("a callback for %s raised", event.event, exc_info=failure)
            raise
        caused = call.take_events()
        failures = self._notify([Event._of(plain) for plain in caused]) if caused else None
        if failures:
            event, failure = failures[0]
            message = f"the operation succeeded, but a callback for {event.event} raised {failure!r}"
            error = CallbackError(message)
            error.result = result
            raise error from failure
        return result

    def _notify(self, events: Iterable[Event]) -> List[tuple[Event, Exception]]:
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
        # The restored checkpoint is a safety checkpoint, which has no conversation. The workspace now stands on the
        # checkpoint that it stood on when the safety checkpoint was taken, and that one has it.
        return Restored._of(plain, self._conversation_at("@") if plain["applied"] else None)

    def _conversation_at(self, word: str) -> Any:
        try:
            return self.conversation(word)
        except (BacktrailError, ValueError, RecursionError) as problem:
            # The files are restored, and the caller must get the outcome.
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
    hunks: Iterable[str] | None,
) -> dict[str, Any]:
    return {
        "word": given.word(checkpoint),
        "paths": given.paths_or_none(paths),
        "only": only,
        "exact": exact,
        "skip_conflicts": skip_conflicts,
        "git": git,
        "plan": plan.plan if isinstance(plan, Restored) else plan,
        "hunks": given.ids_or_none(hunks),
    }


def _revert_words(
    what: CheckpointRef | None,
    paths: StrPath | Iterable[StrPath] | None,
    turn: int | None,
    session: str | None,
    skip_conflicts: bool,
    markers: bool,
    plan: Restored | str | None,
    hunks: Iterable[str] | None,
) -> dict[str, Any]:
    return {
        "what": given.word_or_none(what),
        "paths": given.paths_or_none(paths),
        "turn": turn,
        "session": session,
        "skip_conflicts": skip_conflicts,
        "markers": markers,
        "plan": plan.plan if isinstance(plan, Restored) else plan,
        "hunks": given.ids_or_none(hunks),
    }


def _adopt_words(
    fork: StrPath | Fork, skip_conflicts: bool, markers: bool, plan: Restored | str | None
) -> dict[str, Any]:
    directory = fork.path if isinstance(fork, Fork) else Path(given.path(fork)).absolute()
    return {
        "directory": directory,
        "skip_conflicts": skip_conflicts,
        "markers": markers,
        "plan": plan.plan if isinstance(plan, Restored) else plan,
    }
