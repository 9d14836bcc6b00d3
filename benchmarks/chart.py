"""Bars as SVG: the median of each row, its range, and its goal.

Colors are of medium lightness and there is no background, so that a chart can be read in a light page and a dark one.
"""

from collections.abc import Sequence
from html import escape

from benchmarks.rows import Row, number

WIDTH, BAR_WIDTH, HEIGHT, BAR_HEIGHT = 760, 620, 44, 14
TEXT, KEPT, MISSED = "#6e7781", "#4c8dd6", "#d9822b"


def chart(heading: str, rows: Sequence[Row]) -> str:
    """Return a chart of the rows, on one scale that starts at 0."""
    goals = [row.goal.limit for row in rows if row.goal]
    scale = BAR_WIDTH / max([max(row.ratios) for row in rows] + goals)
    bars = [part for place, row in enumerate(rows) for part in _bar(row, place * HEIGHT, scale)]
    height = HEIGHT * len(rows)
    style = f'font-family="sans-serif" font-size="12" fill="{TEXT}" stroke="none"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return "\n".join([f'{head} role="img" {style}>', f"<title>{escape(heading)}</title>", *bars, "</svg>\n"])


def _bar(row: Row, top: int, scale: float) -> list[str]:
    """Return the parts of one row: its label, the bar, a line for its range, one for its goal, and its number."""
    y = top + 22
    color = MISSED if row.goal and not row.goal.is_met(row.median) else KEPT
    label = f'<tspan font-weight="bold">{escape(row.what)}</tspan>, relative to {escape(row.over)}'
    low, high = min(row.ratios) * scale, max(row.ratios) * scale
    goal = ""
    end = max(high, row.median * scale)
    if row.goal:
        at = row.goal.limit * scale
        goal = f'<path d="M{at:.1f} {y - 3}V{y + BAR_HEIGHT + 3}" stroke="{TEXT}" stroke-width="2"/>'
        end = max(end, at)
    return [
        f'<text x="0" y="{top + 16}">{label}</text>',
        f'<rect x="0" y="{y}" width="{row.median * scale:.1f}" height="{BAR_HEIGHT}" fill="{color}"/>',
        f'<path d="M{low:.1f} {y + 3}v8m0-4H{high:.1f}m0-4v8" stroke="{TEXT}" stroke-width="2" fill="none"/>',
        *([goal] if goal else []),
        f'<text x="{end + 6:.1f}" y="{y + 12}">{number(row.median)}{f" (goal {row.goal})" if row.goal else ""}</text>',
    ]
