"""Figures as SVG within a page: their colors are those of the page, light or dark, and they load nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 480, 280
LEFT, RIGHT, TOP, BOTTOM = 48, 24, 32, 44


@dataclass(frozen=True)
class Axis:
    """A linear axis: its ends, the values that are written at it, and what they are."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    title: str

    def at(self, value: float) -> float:
        """Return where a value lies between the ends (0 to 1)."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


@dataclass(frozen=True)
class Plot:
    """A frame with two axes, in which a part of a figure is placed by its values."""

    x: Axis
    y: Axis

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the coordinates of a point."""
        across = LEFT + self.x.at(x) * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - self.y.at(y) * (HEIGHT - TOP - BOTTOM)

    def frame(self) -> str:
        """Return the axes: a line and a text for each tick, and the titles."""
        parts = []
        for value, text in self.y.ticks:
            _, y = self.place(self.x.low, value)
            parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
        for value, text in self.x.ticks:
            x, _ = self.place(value, self.y.low)
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(text)}</text>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(self.x.title)}</text>')
        parts.append(f'<text x="0" y="13">{escape(self.y.title)}</text>')
        return "".join(parts)

    def curve(self, points: Iterable[tuple[float, float]], kind: str) -> str:
        """Return a line through points; ``kind`` is its class in site.css."""
        placed = [self.place(*point) for point in points]
        return f'<path class="curve {kind}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in placed)}"/>'

    def dot(self, x: float, y: float, kind: str) -> str:
        """Return a point."""
        across, down = self.place(x, y)
        return f'<circle class="{kind}" cx="{across:.1f}" cy="{down:.1f}" r="4"/>'

    def bar(self, x: float, y: float, width: float, kind: str) -> str:
        """Return an upright bar from the bottom to ``y``, ``width`` wide in units of the figure, around ``x``."""
        across, down = self.place(x, y)
        size = f'width="{width:.1f}" height="{HEIGHT - BOTTOM - down:.1f}"'
        return f'<rect class="{kind}" x="{across - width / 2:.1f}" y="{down:.1f}" {size}/>'

    def label(self, x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
        """Return a text at a point."""
        across, down = self.place(x, y)
        return f'<text class="{kind}" x="{across:.1f}" y="{down:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def figure(caption: str, said: str, plot: Plot, parts: Iterable[str]) -> str:
    """Return a figure; ``said`` is what it shows, for those who cannot see it."""
    inside = plot.frame() + "".join(parts)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(said)}"'
    return f"<figure>\n<svg {box}>{inside}</svg>\n<figcaption>{escape(caption)}</figcaption>\n</figure>"
