"""Writes the results of a comparison as a table, as JSON, or as a chart."""

import html
import json


def table(result):
    """Formats the table for people."""
    tools = result["tools"]
    others = [tool for tool in tools if tool != "backtrail"]
    lines = [
        f"{result['files']} files, {result['megabytes']:.0f} MB, {result['directories']} directories; "
        f"medians of {result['rounds']}, milliseconds; in brackets: how many times as fast Backtrail is",
        "",
        f"{'':<28}" + "".join(f"{tool:>{22 if tool != 'backtrail' else 12}}" for tool in tools),
    ]
    for name, row in result["rows"].items():
        cells = f"{name:<28}{number(row.get('backtrail')):>12}"
        for tool in others:
            cells += f"{number(row.get(tool)) + ratio(row, tool):>22}"
        lines.append(cells)
    lines.append("")
    for name in ("store", "peak"):
        cells = [megabytes(result[name][tool], result["least_peak"] if name == "peak" else 0) for tool in tools]
        lines.append(f"{name + ', MB':<28}" + "".join(f"{cell:>{22 if tool != 'backtrail' else 12}}" for tool, cell in zip(tools, cells)))
    for name, value in result["floor"].items():
        against = result["rows"].get("no change", {}).get("backtrail")
        beside = f"   (no change takes {against / value:.2f} times that)" if against and name == "stat known files" else ""
        lines.append(f"floor: {name:<21}{value:>12.1f}{beside}")
    return "\n".join(lines)


def megabytes(value, least):
    """Formats a size. A process inherits the peak of its parent, so smaller values can't be measured."""
    return f"< {value:.0f}" if value <= least * 1.05 else f"{value:.0f}"


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def ratio(row, tool):
    ours, theirs = row.get("backtrail"), row.get(tool)
    return f" ({theirs / ours:.1f}×)" if ours and theirs else ""


def write_json(path, result):
    path.write_text(json.dumps(result, indent=2) + "\n")


COLOURS = {"backtrail": "#2f6f4f", "git commit": "#b8bdb5", "git tree": "#cfd3cc", "jj": "#c9b8a0", "restic": "#a9b8c9"}


def write_svg(path, result):
    """Draws bars for each row. Each row has its own scale, so that short bars can be distinguished."""
    label, bar, step, gap, width = 190, 360, 18, 16, 680
    parts, y = [], 46
    for name, row in result["rows"].items():
        present = [(tool, row[tool]) for tool in result["tools"] if row.get(tool) is not None]
        longest = max(value for _, value in present)
        parts.append(f'<text x="{label - 12}" y="{y + 13}" text-anchor="end" font-weight="600">{html.escape(name)}</text>')
        for tool, value in present:
            length = max(value / longest * bar, 1.5)
            parts.append(f'<rect x="{label}" y="{y}" width="{length:.1f}" height="{step - 4}" rx="2" fill="{COLOURS.get(tool, "#999")}"/>')
            text = f"{number(value)} ms · {tool}"
            parts.append(f'<text x="{label + length + 8:.1f}" y="{y + 12}" font-size="12">{html.escape(text)}</text>')
            y += step
        y += gap
    title = f"{result['files']:,} files, {result['megabytes']:.0f} MB: shorter is faster"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" viewBox="0 0 {width} {y}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="#333" role="img" aria-label="{html.escape(title)}">'
        f'<rect width="{width}" height="{y}" fill="#fff"/><text x="16" y="26" font-size="15" font-weight="600">{html.escape(title)}</text>'
    )
    path.write_text(head + "".join(parts) + "</svg>\n")
