"""Pictures of results as SVG, drawn by matplotlib: ``pip install 'refault[plot]'``."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Points = Sequence[tuple[float, float]]

SMALL = {"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "refault"}

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
"""Colours of lines, in the order of the report (``crates/report/src/model.rs``)."""

OF_POLICIES = {
    "lru": "#0072b2",
    "mglru": "#d55e00",
    "opt": "#000000",
    "lru-2013": "#56b4e9",
    "lru-none": "#808080",
    "lru-shadow": "#cc79a7",
    "mglru-shadow": "#e69f00",
}
"""Colours that the report gives to policies."""


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
        axes.set_prop_cycle(color=COLOURS)
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
            axes.plot(*zip(*line), marker=".", linewidth=1.2, label=name, color=OF_POLICIES.get(name), gid=f"line of {name}")
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
