"""Measures how the cost grows with the number of files and with the number of checkpoints."""

import statistics

import tools
import trees

FILES = [1_000, 10_000, 100_000]
CHECKPOINTS = [10, 100, 1_000, 10_000]


def measure(scratch, binary, rounds):
    return {
        "files": {count: with_files(scratch, binary, rounds, count) for count in FILES},
        "checkpoints": with_checkpoints(scratch, binary, rounds),
    }


def median(rounds, act):
    return statistics.median(act() for _ in range(rounds))


def edit(files, count, stamp):
    start = stamp * 37 % len(files)
    for number in range(count):
        with open(files[(start + number) % len(files)], "ab") as stream:
            stream.write(f"edit {stamp}\n".encode())


def with_files(scratch, binary, rounds, count):
    tree = scratch / f"tree-{count}"
    trees.make(tree, count, count * 8 // 1000)
    files = trees.files_of(tree)
    tool = tools.Backtrail(scratch, tree, binary)
    tool.forget()
    found = {"first save": tool.save(), "peak": tool.peak}
    tool.save()
    found["no change"] = median(rounds, tool.save)

    def edited():
        edited.stamp += 1
        edit(files, 1, edited.stamp)
        return tool.save()

    edited.stamp = 0
    found["1 file edited"] = median(rounds, edited)
    return found


def with_checkpoints(scratch, binary, rounds):
    tree = scratch / "tree-checkpoints"
    trees.make(tree, 1_000, 8)
    files = trees.files_of(tree)
    tool = tools.Backtrail(scratch, tree, binary)
    tool.forget()
    found, made = {}, 0
    for count in CHECKPOINTS:
        last = []
        while made < count:
            edit(files, 10, made)
            last.append(tool.save())
            made += 1
        listing = tools.Backtrail(scratch, tree, binary)
        found[count] = {
            "save, 10 files edited": statistics.median(last[-20:]),
            "slowest save": max(last),
            "list": median(rounds, lambda: listing.command("list", "--limit", "10")),
            "list all": median(rounds, lambda: listing.command("list", "--limit", str(count))),
            "peak of list": listing.peak,
            "store, MB": trees.size_of(tool.store()),
        }
    return found


def table(result):
    lines = []
    for title, rows in result.items():
        names = list(next(iter(rows.values())))
        lines.append(f"{title:<14}" + "".join(f"{name:>24}" for name in names))
        for count, row in rows.items():
            lines.append(f"{count:<14}" + "".join(f"{row[name]:>24.1f}" for name in names))
        lines.append("")
    return "\n".join(lines)
