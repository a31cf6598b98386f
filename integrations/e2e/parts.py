"""What is tested with each agent. Each part is a column of the table."""

import threading

import stand_ins
from scene import FILES

AFTER_FIRST = {".gitignore": FILES[".gitignore"], "app.txt": stand_ins.EDITED, "made.txt": stand_ins.MADE}


def configuration(scene):
    """Returns every file in the agent's home with its bytes."""
    return {str(path): path.read_bytes() for path in scene.home.rglob("*") if path.is_file()}


def install(scene):
    untouched = configuration(scene)
    installed = scene.backtrail("install", scene.agent.name)
    scene.check(installed["rehearsal"]["ok"], f"installed; a sample took {installed['rehearsal']['milliseconds']} ms")
    scene.backtrail("uninstall", scene.agent.name)
    scene.check(configuration(scene) == untouched, "uninstall restored the same bytes")
    scene.backtrail("install", scene.agent.name)


def hooks(scene):
    scene.check(scene.tree() == FILES, "the project is in its initial state")
    scene.prompt("FIRST prompt")
    scene.check(scene.tree() == AFTER_FIRST, "the agent wrote two files and deleted the rest, with .env and an ignored file")
    turns, steps = scene.kind("turn"), scene.kind("step")
    scene.check(len(turns) == 1, "one prompt")
    scene.check(turns[0]["prompt"] == scene.agent.prompt_text("FIRST prompt"), f"its text is {turns[0]['prompt']!r}")
    scene.check({c["session"] for c in turns + steps} == {turns[0]["session"]}, f"all checkpoints are of session {turns[0]['session']}")
    changed = [path for step in steps for path in step["files_changed"]]
    scene.check("made.txt" in changed, "the file that a tool wrote is in a step")
    wrong = [step["turn"] for step in steps if step["turn"] != 1]
    scene.check(not wrong, "all steps belong to the prompt")


def deletion(scene):
    changed = {path for step in scene.kind("step") for path in step["files_changed"]}
    scene.check({".env", "doomed.txt", "lib/a.txt"} <= changed, "the deleted files are in steps")
    plan = scene.backtrail("rewind", "--turn", "--dry-run")
    back = {change["path"] for change in plan["changes"]}
    scene.check("private/notes.txt" in back, "the ignored file that the command named can come back")


def revert(scene):
    scene.backtrail("revert", "turn:1")
    scene.check(scene.tree() == FILES, "revert turn:1 takes back the whole prompt")
    scene.backtrail("undo")
    scene.check(scene.tree() == AFTER_FIRST, "undo brings the work back")


def rewind(scene):
    session = scene.kind("turn")[0]["session"]
    scene.prompt("SECOND prompt", session if scene.agent.resumes else None)
    turns = scene.kind("turn")
    numbers = [turn["turn"] for turn in turns]
    scene.check(numbers == ([1, 2] if scene.agent.resumes else [1, 1]), f"the second prompt counts: {numbers}")
    scene.backtrail("rewind", "--turn")
    scene.check(scene.tree() == AFTER_FIRST, "rewind --turn takes back the second prompt")
    scene.backtrail("rewind", "--turn")
    scene.check(scene.tree() == FILES, "and then the first one, with every ignored file")
    scene.backtrail("undo")
    scene.backtrail("undo")


def conversation(scene):
    turns = scene.kind("turn")
    second = turns[1]
    scene.check([a["name"] for a in second["attachments"]] == ["conversation"], f"the conversation is stored: {second['attachments']}")
    live = {path: path.read_bytes() for path in scene.home.rglob("*.jsonl")}
    forked = scene.backtrail("restore", second["id"], "--conversation")["conversation"]
    scene.check(forked["session"] and forked["session"] != second["session"], f"it is session {forked['session']}: {forked['command']}")
    scene.check(all(path.read_bytes() == text for path, text in live.items()), "no file of an earlier session was written")
    scene.check(scene.tree() == AFTER_FIRST, "the files are as before the second prompt")
    scene.agent.adopt(scene, forked)
    scene.prompt("THIRD prompt", forked["session"])
    asked = scene.service.prompts_of_last_request()
    scene.check(asked == ["FIRST", "THIRD"], f"the model was asked with the first and the third prompt only: {asked}")
    newest = scene.kind("turn")[-1]
    scene.check(newest["session"] == forked["session"], "the new session has its own checkpoints")


def told(scene):
    """Runs a prompt after a restore: the agent reads that files changed."""
    first = scene.kind("turn")[0]
    scene.backtrail("restore", first["id"])
    # A session that has just started knows the files as they are.
    session = scene.kind("turn")[-1]["session"]
    scene.prompt("SECOND prompt", session)
    words = "Read a file again before you rely on it"
    scene.check(scene.service.was_told(words), "the agent was told that files were restored")


def mcp(scene):
    before = scene.kind("manual")
    scene.prompt("FOURTH prompt")
    saved = [checkpoint["message"] for checkpoint in scene.kind("manual")[len(before):]]
    scene.check(saved == [stand_ins.SAVED], "the model asked for a checkpoint, and it exists")


def background(scene):
    count = len(scene.kind("turn"))
    scene.prompt("FIFTH prompt")
    scene.wait_for((scene.project / "background.txt").exists, "the command in the background wrote its file")
    turns = scene.kind("turn")[count:]
    scene.check(len(turns) == 1, "it is one prompt")
    scene.prompt("THIRD prompt")
    holders = [c for c in scene.backtrail("list")["checkpoints"] if "background.txt" in c["files_changed"]]
    scene.check(len(holders) == 1, "the file is in one checkpoint")


def subagent(scene):
    count = len(scene.kind("turn"))
    scene.prompt("SIXTH prompt")
    scene.wait_for((scene.project / "delegated.txt").exists, "the subagent wrote its file")
    turns = scene.kind("turn")[count:]
    scene.check(len(turns) == 1, f"it is one prompt: {[turn['prompt'] for turn in turns]}")
    steps = [step for step in scene.kind("step") if "delegated.txt" in step["files_changed"]]
    scene.check(len(steps) == 1 and steps[0]["session"] == turns[0]["session"], "its work belongs to the session that started it")


def two_sessions(scene):
    count = len(scene.kind("turn"))
    failures = []

    def one(word):
        try:
            scene.prompt(f"{word} prompt")
        except Exception as wrong:  # Reported by the thread that waits.
            failures.append(wrong)

    both = [threading.Thread(target=one, args=(word,)) for word in ("EIGHTH", "NINTH")]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    if failures:
        raise failures[0]
    turns = scene.kind("turn")[count:]
    sessions = {turn["session"] for turn in turns}
    scene.check(len(turns) == 2 and len(sessions) == 2, "two sessions at once, each with its prompt")
    mine = {}
    for session in sessions:
        plan = scene.backtrail("revert", "--session", session, "--dry-run")
        mine[session] = {change["path"] for change in plan["changes"]}
    scene.check(sorted(map(sorted, mine.values())) == [["left.txt"], ["right.txt"]], f"each file belongs to the session that wrote it: {mine}")
    named = {turn["prompt"]: turn["session"] for turn in turns}
    eighth = named.get(scene.agent.prompt_text("EIGHTH prompt"))
    if len(named) == 2:
        scene.check(mine[eighth] == {"left.txt"}, "and to the right one")
    left = next(session for session, paths in mine.items() if paths == {"left.txt"})
    scene.backtrail("revert", "--session", left)
    present = scene.tree()
    scene.check("left.txt" not in present and "right.txt" in present, "revert --session takes back one of them")


# The order matters: later parts continue in the project of earlier ones.
PARTS = {
    "install": install, "hooks": hooks, "deletion": deletion, "revert turn:1": revert, "rewind --turn": rewind,
    "conversation": conversation, "agent is told": told, "MCP": mcp, "background": background, "subagent": subagent,
    "two sessions": two_sessions,
}
# If one of these fails, the others can't be judged.
NEEDED = ("install", "hooks")
