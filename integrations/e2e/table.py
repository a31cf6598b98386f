"""The table that a run prints, which docs/agents.md shows."""


class Cell:
    """The result of one part for one agent."""

    def __init__(self, word, reason=None):
        self.word, self.reason = word, reason


def table(rows, parts):
    """Returns the table as Markdown, with the reasons below it. `rows` has the cells of each agent by part."""
    head = ["agent", *parts]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    reasons = []
    for title, cells in rows:
        words = []
        for part in parts:
            cell = cells.get(part, Cell("–"))
            if cell.reason:
                if cell.reason not in reasons:
                    reasons.append(cell.reason)
                words.append(f"{cell.word} ({reasons.index(cell.reason) + 1})")
            else:
                words.append(cell.word)
        lines.append(f"| {' | '.join([title, *words])} |")
    lines += ["", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))]
    return "\n".join(lines).rstrip() + "\n"
