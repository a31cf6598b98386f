"""Measures the cost of many checkpoints: the time of early and late saves, and the disk space compared with git's."""

import statistics

import tools
import trees

EDITS = 10
EARLY = 10


def measure(scratch, tree, binary, checkpoints):
    """Saves the same edits with Backtrail and with git. Then both make their stores as small as they can."""
    files = trees.files_of(tree)
    ours, git = tools.Backtrail(scratch, tree, binary), tools.GitCommit(scratch, tree)
    rows = {tool.name: [] for tool in (ours, git)}
    for tool in (ours, git):
        tool.forget()
        tool.save()
    for number in range(checkpoints):
        for edit in range(EDITS):
            path = files[(number * 131 + edit * 17) % len(files)]
            with open(path, "ab") as stream:
                stream.write(f"edit {number}\n".encode())
        for tool in (ours, git):
            rows[tool.name].append(tool.save())
    before = {tool.name: trees.size_of(tool.store()) for tool in (ours, git)}
    shrinking = {ours.name: ours.command("prune"), git.name: git.git("gc", "-q", "--prune=now")}
    return {
        "checkpoints": checkpoints,
        "files": len(files),
        "kept": kept(ours),
        "tools": {
            tool.name: {
                f"save, first {EARLY}": statistics.median(rows[tool.name][:EARLY]),
                f"save, last {EARLY}": statistics.median(rows[tool.name][-EARLY:]),
                "slowest save": max(rows[tool.name]),
                "store, MB": before[tool.name],
                "prune / gc": shrinking[tool.name],
                "store after, MB": trees.size_of(tool.store()),
            }
            for tool in (ours, git)
        },
    }


def kept(tool):
    """Returns the number of checkpoints. If some are missing, the comparison of disk space is not valid."""
    return len(list((tool.store() / "stores").glob("*/backtrail/timeline"))[0].read_bytes().splitlines())


def table(result):
    lines = [
        f"{result['checkpoints']} checkpoints of {EDITS} edits on {result['files']} files, {result['kept']} kept; milliseconds and megabytes",
        "",
    ]
    names = list(next(iter(result["tools"].values())))
    lines.append(f"{'':<12}" + "".join(f"{name:>18}" for name in names))
    for tool, row in result["tools"].items():
        lines.append(f"{tool:<12}" + "".join(f"{row[name]:>18.1f}" for name in names))
    ours, git = (result["tools"][name]["store after, MB"] for name in ("backtrail", "git commit"))
    lines.append(f"\nafter prune and gc, Backtrail's store is {ours / git:.2f} times git's")
    return "\n".join(lines)
