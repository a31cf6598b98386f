"""Alternates an older and a newer program on the same trees. The older one also runs against itself, to measure the noise."""

import shutil
import statistics

import tools

# The two runs of the older program, and the newer one.
OLD, AGAIN, NEW = "old", "old again", "new"


class Contestant(tools.Backtrail):
    """One program with its own store."""

    def __init__(self, name, scratch, tree, binary):
        self.name = name
        super().__init__(scratch, tree, binary)

    def status(self):
        return self.command("status")


def contestants(scratch, tree, old, new):
    """Copies each program next to its store and gives it a name.

    A linker and a copy leave a program in memory pages of different sizes. That alone made a difference of 5 %.
    """
    copies = []
    for name, binary in ((OLD, old), (AGAIN, old), (NEW, new)):
        copy = scratch / f"backtrail-{name.replace(' ', '-')}"
        shutil.copy(binary, copy)
        copies.append(Contestant(name, scratch, tree, str(copy)))
    return copies


def measure(contestants, edit, rounds):
    """Returns the milliseconds of each cell: one number per round for each contestant."""
    for contestant in contestants:
        contestant.save()
    return {
        "save, no change": turns(contestants, rounds, lambda contestant: contestant.save()),
        "save, 1 file edited": turns(contestants, rounds, lambda contestant: contestant.save(), before_round=lambda: edit(1)),
        "status": turns(contestants, rounds, lambda contestant: contestant.status()),
        "restore, 1 file edited": turns(contestants, rounds, lambda contestant: contestant.restore_all(), before_turn=lambda contestant: save_and_edit(contestant, edit)),
    }


def save_and_edit(contestant, edit):
    contestant.save()
    edit(1)


def turns(contestants, rounds, act, before_round=lambda: None, before_turn=lambda contestant: None):
    """Runs every contestant once per round. The first one changes from round to round, so that the order favours none."""
    times = {contestant.name: [] for contestant in contestants}
    for number in range(rounds):
        before_round()
        start = number % len(contestants)
        for contestant in contestants[start:] + contestants[:start]:
            before_turn(contestant)
            times[contestant.name].append(act(contestant))
    return times


def judge(times):
    """Returns the medians of one cell, the slowdown of the newer program, and the noise of the older one, in percent.

    Times are compared within a round, so that a temporary slowdown of the machine affects all three.
    """
    old, again, new = times[OLD], times[AGAIN], times[NEW]
    slower = statistics.median(late / ((first + second) / 2) for first, second, late in zip(old, again, new))
    return {
        "old": statistics.median(old + again),
        "new": statistics.median(new),
        "slower": (slower - 1) * 100,
        "noise": noise([second / first for first, second in zip(old, again)]) * 100,
    }


def noise(ratios):
    """Returns the distance of the median ratio from 1 that chance explains: the distance itself, or twice its standard error."""
    middle = statistics.median(ratios)
    deviation = 1.4826 * statistics.median(abs(ratio - middle) for ratio in ratios)
    return max(abs(middle - 1), 2 * 1.2533 * deviation / len(ratios) ** 0.5)


def table(results):
    """Formats one line for each cell of each tree."""
    lines = ["| tree | cell | old, ms | new, ms | new against old | old against itself |", "|---|---|---|---|---|---|"]
    for tree, cells in results.items():
        for name, cell in cells.items():
            lines.append(f"| {tree} | {name} | {cell['old']:.1f} | {cell['new']:.1f} | {cell['slower']:+.1f} % | {cell['noise']:.1f} % |")
    return "\n".join(lines)


def too_slow(results, max_slowdown):
    """Returns the cells that got slower by more than `max_slowdown` percent beyond the noise."""
    return [
        f"{tree}: {name} is {cell['slower']:.1f} % slower ({max_slowdown:g} % allowed, {cell['noise']:.1f} % noise)"
        for tree, cells in results.items()
        for name, cell in cells.items()
        if cell["slower"] > max_slowdown + cell["noise"]
    ]
