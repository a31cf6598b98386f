"""An older program and a newer one, in turns on the same trees; the older one also against itself, which tells the noise."""

import shutil
import statistics

import tools

# The two runs of the older program, and the newer one.
OLD, AGAIN, NEW = "old", "old again", "new"


class Contestant(tools.Backtrail):
    """One program with a store of its own."""

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
    """The milliseconds of each cell: for each contestant one number a round."""
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
    """Lets everyone act once a round. Who begins changes, so that no place in the order is anyone's own."""
    times = {contestant.name: [] for contestant in contestants}
    for number in range(rounds):
        before_round()
        start = number % len(contestants)
        for contestant in contestants[start:] + contestants[:start]:
            before_turn(contestant)
            times[contestant.name].append(act(contestant))
    return times


def judge(times):
    """Medians of one cell, how much slower the newer program is, and how far the older one is from itself, in percent.

    Each round is compared with itself, so that what slows the machine down for a while concerns all three.
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
    """How far a median of such ratios is from 1 by chance: as far as it is, or twice its standard error."""
    middle = statistics.median(ratios)
    deviation = 1.4826 * statistics.median(abs(ratio - middle) for ratio in ratios)
    return max(abs(middle - 1), 2 * 1.2533 * deviation / len(ratios) ** 0.5)


def table(results):
    """One line for each cell of each tree."""
    lines = ["| tree | cell | old, ms | new, ms | new against old | old against itself |", "|---|---|---|---|---|---|"]
    for tree, cells in results.items():
        for name, cell in cells.items():
            lines.append(f"| {tree} | {name} | {cell['old']:.1f} | {cell['new']:.1f} | {cell['slower']:+.1f} % | {cell['noise']:.1f} % |")
    return "\n".join(lines)


def too_slow(results, max_slowdown):
    """The cells that got slower by more than so many percent, beyond the noise."""
    return [
        f"{tree}: {name} is {cell['slower']:.1f} % slower ({max_slowdown:g} % are allowed, and {cell['noise']:.1f} % are noise)"
        for tree, cells in results.items()
        for name, cell in cells.items()
        if cell["slower"] > max_slowdown + cell["noise"]
    ]
