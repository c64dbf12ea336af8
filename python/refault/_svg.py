"""Curves as pictures that a notebook shows."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

COLOURS = ("#2f6fb0", "#3a923a", "#c03d3e", "#8a63b8", "#d08c2f", "#5b8f9c", "#7f7f7f")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 560, 300, 52, 14, 110, 40

Points = Sequence[tuple[float, float]]


def lines(series: Mapping[str, Points], x_label: str, y_label: str, *, y_percent: bool = True) -> str:
    """Lines with a point each, with axes and names."""
    points = [point for line in series.values() for point in line]
    if not points:
        return ""
    right = max(x for x, _ in points) or 1.0
    low, high = min(y for _, y in points), max(y for _, y in points)
    low, high = (low, high) if high - low > 1e-9 else (low - 0.5, high + 0.5)
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + wide * x / right, TOP + tall * (high - y) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">']
    parts.append('<g font-family="sans-serif" font-size="11" fill="currentColor">')
    for step in range(5):
        y = low + (high - low) * step / 4
        at = place(0, y)[1]
        label = f"{100 * y:.1f}%" if y_percent else f"{y:.3g}"
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{at:.1f}" y2="{at:.1f}" stroke="#8884"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
        x = right * step / 4
        parts.append(f'<text x="{place(x, low)[0]:.1f}" y="{HEIGHT - 24}" text-anchor="middle">{x:.3g}</text>')
    parts.append(f'<text x="{LEFT + wide / 2}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(x_label)}</text>')
    parts.append(f'<text x="{LEFT}" y="{TOP - 3}">{html.escape(y_label)}</text>')
    for n, (name, line) in enumerate(series.items()):
        colour = COLOURS[n % len(COLOURS)]
        places = [place(x, y) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{colour}"/>' for x, y in places]
        y = TOP + 8 + 16 * n
        parts.append(f'<rect x="{WIDTH - RIGHT + 12}" y="{y - 8}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 27}" y="{y + 1}">{html.escape(name)}</text>')
    parts.append("</g></svg>")
    return "".join(parts)
