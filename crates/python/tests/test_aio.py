from __future__ import annotations

import asyncio
import inspect
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from conftest import Project
from test_processes import holding

import backtrail
from backtrail import CallbackError, Event, UnknownCheckpointError, UsageError, aio

Workspace = aio.Workspace


async def test_every_method(project: Project, tmp_path: Path) -> None:
    workspace = Workspace(project)
    blocking = backtrail.Workspace(project)
    assert (workspace.path, workspace.store) == (blocking.path, blocking.store)
    assert await workspace.init()
    project.write("a", "1")
    first = await workspace.save("first", name="start", conversation=["hi"], attachments={"x": b"1"})
    project.write("a", "2")
    assert [change.path for change in await workspace.status()] == ["a"]
    second = await workspace.save("second", kind="step")
    assert await workspace.list() == blocking.list()
    assert await workspace.list(1, since=timedelta(hours=1), safety=False) == [second.checkpoint]
    assert await workspace.current() == second.checkpoint == await workspace.get("@")
    assert await workspace.show(second) == blocking.show(second)
    assert await workspace.diff(first, second) == blocking.diff(first, second)
    assert await workspace.patch(second, "a") == blocking.patch(second)
    assert await workspace.read(first, "a") == b"1"
    assert await workspace.attachment(first, "x") == b"1"
    assert await workspace.conversation("start") == ["hi"]
    assert len(await workspace.history("a")) == 2
    assert await workspace.blame("a") == blocking.blame("a")
    assert (await workspace.bisect(lambda directory: (directory / "a").read_text() == "1")).first_bad == second.id
    assert await workspace.hunks(first) == blocking.hunks(first)
    assert (await workspace.plan_revert(second)).changes == (await workspace.revert(second)).changes
    assert project.read("a") == "1" and (await workspace.undo()).applied
    (fork,) = await workspace.fork(tmp_path / "fork")
    (fork.path / "a").write_text("fork")
    assert [found.files for found in await workspace.forks()] == [1]
    assert (await workspace.plan_adopt(fork)).plan == (await workspace.adopt(fork)).plan
    assert project.read("a") == "fork" and (await workspace.undo()).applied
    assert (await workspace.export(first, tmp_path / "out")).files == 1
    plan = await workspace.plan(first)
    restored = await workspace.restore(first, plan=plan)
    assert restored.conversation == ["hi"] and project.read("a") == "1"
    assert (await workspace.undo()).applied and project.read("a") == "2"
    assert (await workspace.redo()).applied and project.read("a") == "1"
    await workspace.restore(second)
    await workspace.rewind()
    assert project.read("a") == "1"
    assert (await workspace.step("s", touching=["a"])).step == 1
    assert (await workspace.pin(second)).pinned
    assert not (await workspace.unpin(second)).pinned
    assert {verdict.id for verdict in await workspace.plan_prune()} >= {first.id, second.id}
    assert (await workspace.prune()).deleted == []
    assert (await workspace.verify()).ok
    assert {info.path for info in await Workspace.all()} == {project.path, fork.path}
    assert (await workspace.events())[0].event == "initialized"
    assert await workspace.delete(second) == [second.id]
    with pytest.raises(UnknownCheckpointError):
        await workspace.get(second)
    assert Workspace.around(project.path).path == project.path and "aio.Workspace" in repr(workspace)
    await workspace.forget(yes=True)
    assert await workspace.list() == []


def test_methods_and_signatures_equal_the_blocking_ones() -> None:
    for name, method in inspect.getmembers(backtrail.Workspace):
        if name.startswith("_") or not callable(method):
            continue
        twin = getattr(Workspace, name)
        theirs = inspect.signature(method).parameters
        assert list(inspect.signature(twin).parameters) == list(theirs), name
        defaults = [parameter.default for parameter in theirs.values()]
        assert [parameter.default for parameter in inspect.signature(twin).parameters.values()] == defaults, name
        assert inspect.iscoroutinefunction(twin) or name in ("around", "guard", "on"), name
        assert twin.__name__ == name and inspect.getdoc(twin), name


async def test_type_checkers_know_the_signatures(async_workspace: aio.Workspace) -> None:
    # mypy reports a `type: ignore` comment on a line without that error.
    with pytest.raises(TypeError):
        await async_workspace.save(mesage="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        await async_workspace.get(5)  # type: ignore[arg-type]
    _: int = await async_workspace.list()  # type: ignore[assignment]


async def test_overridden_methods_are_called(project: Project) -> None:
    class Loud(backtrail.Workspace):
        def current(self) -> backtrail.Checkpoint | None:
            raise KeyError("overridden")

    with pytest.raises(KeyError, match="overridden"):
        await Workspace._of(Loud(project)).current()


def test_every_argument_is_passed_on(async_workspace: aio.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, method in inspect.getmembers(backtrail.Workspace, inspect.isfunction):
        if name.startswith("_") or name in ("all", "guard", "on"):
            continue
        parameters = list(inspect.signature(method).parameters.values())[1:]
        given = {each.name: object() for each in parameters}
        several = [given[each.name] for each in parameters if each.kind is each.VAR_POSITIONAL]
        named = {each.name: given[each.name] for each in parameters if each.kind is not each.VAR_POSITIONAL}
        seen: list[Any] = []

        def see(*arguments: Any, seen: list[Any] = seen, **words: Any) -> None:
            seen.append((arguments, words))

        monkeypatch.setattr(async_workspace._blocking, name, see)
        asyncio.run(getattr(async_workspace, name)(*several, **named))
        [(arguments, words)] = seen
        bound = inspect.signature(method).bind(None, *arguments, **words).arguments
        bound.pop("self")
        assert bound == {**named, **{each.name: tuple(several) for each in parameters if several and each.name not in named}}


async def test_delete_older_than(async_workspace: aio.Workspace, project: Project) -> None:
    saved = []
    for number in range(4):
        project.write("a", str(number))
        saved.append((await async_workspace.save(str(number), kind="step" if number == 1 else "manual")).id)
    await async_workspace.pin(saved[2])
    assert await async_workspace.delete(older_than=timedelta(hours=1)) == []
    assert await async_workspace.delete(older_than=timedelta(0), kind="step") == [saved[1]]
    assert await async_workspace.delete(older_than=datetime.now(timezone.utc)) == [saved[0]]
    assert [checkpoint.id for checkpoint in await async_workspace.list()] == [saved[3], saved[2]]
    with pytest.raises(UsageError, match="not both"):
        await async_workspace.delete(saved[2], older_than=timedelta(0))
    with pytest.raises(UsageError, match="future"):
        await async_workspace.delete(older_than=timedelta(days=-1))


async def test_a_guard_rolls_back_even_if_it_is_cancelled_again(
    async_workspace: aio.Workspace, project: Project
) -> None:
    for number in range(200):
        project.write(f"{number % 10}/{number}", "1")
    begun = asyncio.Event()

    async def work() -> None:
        async with async_workspace.guard("try"):
            project.write("0/0", "2")
            begun.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled() and project.read("0/0") == "1"
    assert not any(checkpoint.pinned for checkpoint in await async_workspace.list())


def test_two_event_loops(async_workspace: aio.Workspace, project: Project) -> None:
    project.write("a", "1")
    told: list[str] = []

    async def tell(event: Event) -> None:
        await asyncio.sleep(0)
        told.append(event.checkpoint or "")

    async def work() -> None:
        for _ in range(5):
            await async_workspace.save(allow_empty=True)

    async_workspace.on("checkpoint_created", tell)
    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(told)) == len(asyncio.run(async_workspace.list())) == 10


async def test_the_event_loop_is_not_blocked(async_workspace: aio.Workspace, project: Project) -> None:
    for number in range(500):
        project.write(f"{number % 20}/{number}", str(number))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    await async_workspace.save()
    ticking.cancel()
    assert ticks > 10


async def test_concurrent_saves(async_workspace: aio.Workspace, project: Project) -> None:
    project.write("a", "1")
    saved = await asyncio.gather(*(async_workspace.save(str(n), allow_empty=True) for n in range(10)))
    assert len({one.id for one in saved}) == 10 == len(await async_workspace.list())


async def test_guard(async_workspace: aio.Workspace, project: Project) -> None:
    project.write("a", "1")
    with pytest.raises(ValueError):
        async with async_workspace.guard("try") as guard:
            project.write("a", "2")
            raise ValueError
    assert project.read("a") == "1" and guard.rolled_back and not (await async_workspace.get(guard.checkpoint)).pinned
    async with async_workspace.guard() as guard:
        project.write("a", "3")
    assert project.read("a") == "3" and not guard.rolled_back
    async with async_workspace.guard() as guard:
        project.write("a", "4")
        await guard.rollback()
    assert project.read("a") == "3"


async def test_callbacks_run_in_the_event_loop(async_workspace: aio.Workspace, project: Project) -> None:
    told: list[tuple[str, int]] = []

    async def later(event: Event) -> None:
        await asyncio.sleep(0)
        message = (await async_workspace.get(event.checkpoint or "")).message
        told.append((message, threading.get_ident()))

    def at_once(event: Event) -> None:
        told.append((event.event, threading.get_ident()))

    async_workspace.on("checkpoint_created", later)
    remove = async_workspace.on("checkpoint_created", at_once)
    project.write("a", "1")
    await async_workspace.save("first")
    me = threading.get_ident()
    assert told == [("first", me), ("checkpoint_created", me)]
    remove()

    async def fail(event: Event) -> None:
        raise RuntimeError("no")

    async_workspace.on("checkpoint_created", fail)
    project.write("a", "2")
    with pytest.raises(CallbackError) as caught:
        await async_workspace.save("second")
    assert caught.value.result.created and isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(TypeError):
        async_workspace.on("error", 5)  # type: ignore[arg-type]


async def test_a_cancelled_task_stops_its_save(project: Project) -> None:
    # The lock is held, so that the save would wait for half a minute.
    project.write("a", "1")
    workspace = Workspace(project, wait=30)
    await workspace.init()
    with holding(workspace.store):
        task = asyncio.create_task(workspace.save("never"))
        await asyncio.sleep(0.3)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < 10
    assert await workspace.list() == []
    assert (await workspace.save("now")).created
