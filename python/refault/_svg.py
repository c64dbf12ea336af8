"""Pictures of results as SVG, drawn by matplotlib: ``pip install 'refault[plot]'``."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Points = Sequence[tuple[float, float]]

SMALL = {"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "refault"}


def picture(width: float, height: float, draw: Callable[[Any], None]) -> str:
    """A picture of so many inches; ``draw`` gets its axes. The same data give the same text."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ModuleNotFoundError("pictures want matplotlib: pip install 'refault[plot]'") from None
    with matplotlib.rc_context(SMALL):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    # A notebook wants the element alone.
    return text.getvalue()[text.getvalue().index("<svg") :]


def lines(series: Mapping[str, Points], x_label: str, y_label: str, *, y_percent: bool = True) -> str:
    """Lines with a point each, with axes and names; nothing without points."""
    if not any(series.values()):
        return ""

    def draw(axes: Any) -> None:
        for name, line in series.items():
            axes.plot(*zip(*line), marker=".", linewidth=1.2, label=name, gid=f"line of {name}")
        axes.set(xlabel=x_label, ylabel=y_label, xlim=(0, None))
        axes.grid(axis="y", alpha=0.3)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        if y_percent:
            axes.yaxis.set_major_formatter(lambda y, _: f"{100 * y:g}%")

    return picture(5.8, 3, draw)


def shown(draw: Callable[[], str]) -> str:
    """For a notebook: the picture, or nothing where matplotlib is not installed."""
    try:
        return draw()
    except ModuleNotFoundError:
        return ""
