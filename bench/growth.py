"""Measures how the cost grows with the number of files and with the number of checkpoints."""

import html
import itertools
import shutil
import statistics

import tools
import trees

FILES = [1_000, 10_000, 100_000, 300_000, 1_000_000]
CHECKPOINTS = [10, 100, 1_000, 10_000, 50_000]
# The cost of some saves is in work that is done once in a hundred: a mean over fewer would hide it.
CONSECUTIVE = 200


def measure(scratch, binary, rounds, most_files, most_checkpoints):
    return {
        "files": {count: with_files(scratch, binary, rounds, count) for count in FILES if count <= most_files},
        "checkpoints": with_checkpoints(scratch, binary, most_checkpoints),
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
    found = {"first save": tool.save(), "peak, MB": tool.peak}
    tool.save()
    found["no change"] = median(rounds, tool.save)

    def edited():
        edited.stamp += 1
        edit(files, 1, edited.stamp)
        return tool.save()

    edited.stamp = 0
    found["1 file edited"] = median(rounds, edited)
    tool.forget()
    shutil.rmtree(tree)
    return found


class Consecutive:
    """Runs a command many times, and keeps the mean time by the clock and of the processor."""

    def __init__(self, tool, count):
        self.tool, self.count, self.found = tool, count, {}

    def measure(self, name, act):
        clock, processor = [], []
        for number in range(self.count):
            clock.append(act(number))
            processor.append(self.tool.cpu)
        self.found[name] = statistics.mean(clock)
        self.found[f"{name}, CPU"] = statistics.mean(processor)


def with_checkpoints(scratch, binary, most):
    tree = scratch / "tree-checkpoints"
    trees.make(tree, 50, 0)
    files = trees.files_of(tree)
    tool = tools.Backtrail(scratch, tree, binary)
    tool.forget()
    found, stamps = {}, itertools.count()
    # Files that only grow would make later saves slower for another reason.
    sizes = {path: path.stat().st_size for path in files}

    def save(_=0):
        stamp = next(stamps)
        path = files[stamp * 7 % len(files)]
        if path.stat().st_size > sizes[path] + 2_000:
            with open(path, "r+b") as stream:
                stream.truncate(sizes[path])
        edit([path], 1, stamp)
        return tool.save()

    made = 0
    for count in [count for count in CHECKPOINTS if count <= most]:
        # The checkpoints that are measured belong to the number.
        consecutive = Consecutive(tool, min(CONSECUTIVE, count - made))
        while made < count - consecutive.count:
            save()
            made += 1
        consecutive.measure("save", save)
        made += consecutive.count
        found[count] = reading(tool, files, consecutive)
    return found


def reading(tool, files, consecutive):
    """Measures the other commands. Restores add safety checkpoints, of which only the last few are kept."""
    save_checkpoint = lambda: tool.command("save", "x", "--allow-empty", "--name", "measured")
    save_checkpoint()
    consecutive.count = min(consecutive.count, 50)
    consecutive.measure("status", lambda _: tool.command("status"))
    consecutive.measure("list --limit 20", lambda _: tool.command("list", "--limit", "20"))
    consecutive.measure("show @~1", lambda _: tool.command("show", "@~1"))
    consecutive.measure("history", lambda number: tool.command("history", str(files[number % len(files)])))

    def restored(number):
        path = files[number % len(files)]
        edit([path], 1, number)
        return tool.command("restore", "@", str(path))

    consecutive.measure("restore a path", restored)
    consecutive.measure("undo", lambda _: tool.command("undo"))
    tool.command("restore", "@")
    consecutive.found["store, MB"] = trees.size_of(tool.store())
    return consecutive.found


def table(result):
    lines = []
    for title, rows in result.items():
        if not rows:
            continue
        counts = list(rows)
        lines.append(f"{title:<24}" + "".join(f"{count:>12,}" for count in counts))
        for name in rows[counts[0]]:
            lines.append(f"{name:<24}" + "".join(f"{rows[count][name]:>12.1f}" for count in counts))
        lines.append("")
    return "\n".join(lines)


PANEL_WIDTH, PANEL_HEIGHT, MARGIN = 430, 240, 60
COLOURS = ["#2f6f4f", "#7a4f9e", "#b5651d", "#2d6ca2", "#a23b3b", "#6b6b2f", "#4f8f8f"]


def write_svg(path, result):
    """Draws the time of each operation over the number of files and of checkpoints, both axes logarithmic."""
    panels = [(title, rows) for title, rows in result.items() if rows]
    width, height = MARGIN + len(panels) * (PANEL_WIDTH + MARGIN + 90), PANEL_HEIGHT + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="#333" role="img" aria-label="Cost over size">'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
    ]
    for number, (title, rows) in enumerate(panels):
        parts += panel(MARGIN + number * (PANEL_WIDTH + MARGIN + 90), title, rows)
    path.write_text("".join(parts) + "</svg>\n")


def panel(left, title, rows):
    import math

    counts = list(rows)
    names = [name for name in rows[counts[0]] if "MB" not in name and "CPU" not in name]
    values = [rows[count][name] for count in counts for name in names]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(counts[0]), math.log10(counts[-1])
    x = lambda count: left + (math.log10(count) - first) / max(last - first, 1e-9) * PANEL_WIDTH
    y = lambda value: MARGIN + PANEL_HEIGHT - (math.log10(value) - low) / max(high - low, 1e-9) * PANEL_HEIGHT
    yield f'<text x="{left}" y="{MARGIN - 26}" font-size="14" font-weight="600">milliseconds by number of {title}</text>'
    for power in range(low, high + 1):
        yield f'<line x1="{left}" x2="{left + PANEL_WIDTH}" y1="{y(10**power):.1f}" y2="{y(10**power):.1f}" stroke="#ddd"/>'
        yield f'<text x="{left - 8}" y="{y(10**power) + 4:.1f}" text-anchor="end">{10**power:g}</text>'
    for count in counts:
        yield f'<text x="{x(count):.1f}" y="{MARGIN + PANEL_HEIGHT + 20}" text-anchor="middle">{count:,}</text>'
    taken = []
    for colour, name in zip(itertools.cycle(COLOURS), names):
        points = " ".join(f"{x(count):.1f},{y(rows[count][name]):.1f}" for count in counts)
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        place = y(rows[counts[-1]][name])
        while any(abs(place - other) < 14 for other in taken):
            place += 14
        taken.append(place)
        yield f'<text x="{left + PANEL_WIDTH + 6}" y="{place + 4:.1f}" fill="{colour}">{html.escape(name)}</text>'
