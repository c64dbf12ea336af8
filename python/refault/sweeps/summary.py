"""What people publish: how many fewer misses than a policy, over traces."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from .. import _refault, _report, _svg
from .._table import Table

PERCENTILES = (10, 25, 50, 75, 90)


def label(row: dict[str, Any]) -> str:
    """The name of a row in the picture."""
    settings = "" if row["settings"] == "{}" else f" {row['settings']}"
    return (row["policy"] + " " + row["memory"] + settings)[:36]


class Summary(Table):
    """A row for each policy, size and settings: over how many traces, and the reduction of the miss
    ratio against another policy as mean and percentiles. 0.2 is a fifth fewer misses; less than 0
    is more of them."""

    @staticmethod
    def of(table: Any, against: str) -> Summary:
        """Of the rows of a sweep; a trace without the other policy, or that ran out of memory, does
        not count."""
        cells: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
        every = table.to_pylist()
        # A class that was changed is another policy of the same name.
        codes: dict[str, set[str | None]] = defaultdict(set)
        for row in every:
            codes[row["policy"]].add(row.get("code"))
        for row in every:
            if row["error"] is None and row["accesses"] == row["trace_accesses"]:
                of_trace = (row["digest"], row["asked_memory"], row["settings"])
                policy = row["policy"]
                if len(codes[policy]) > 1:
                    policy = f"{policy}@{(row['code'] or '')[:8]}"
                cells[of_trace][policy] = row["misses"] / row["accesses"]
        found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for (_, memory, settings), ratios in cells.items():
            base = ratios.get(against)
            if base is None:
                continue
            for policy, ratio in ratios.items():
                if policy != against:
                    found[settings, memory, policy].append(1.0 - ratio / base if base > 0 else 0.0)
        rows = []
        for (settings, memory, policy), reductions in sorted(found.items()):
            points = np.percentile(reductions, PERCENTILES)
            named = {f"p{p}": float(point) for p, point in zip(PERCENTILES, points)}
            head = {"policy": policy, "memory": memory, "settings": settings, "against": against}
            rows.append(json.dumps({**head, "traces": len(reductions), "mean": float(np.mean(reductions)), **named}))
        return Summary(rows)

    def report(self, output: str = "sweep.html", *, name: str = "sweep", failed: int = 0) -> str:
        """Writes a page of HTML, as ``refault report`` does of results; gives its path."""
        result = {"refault": _refault.__version__, "sweep": name, "failed": failed, "summary": self.rows}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{Path(name).stem or 'sweep'}.json"
            path.write_text(json.dumps(result))
            return _report.report(path, output=output)

    def svg(self) -> str:
        """For each row a line from the 10th to the 90th percentile, a box from the 25th to the 75th,
        a mark at the median and a dot at the mean."""
        rows = self.rows
        if not rows:
            return ""

        def draw(axes: Any) -> None:
            boxes = [
                {"label": label(row), "med": row["p50"], "mean": row["mean"], "q1": row["p25"], "q3": row["p75"]}
                | {"whislo": row["p10"], "whishi": row["p90"], "fliers": []}
                for row in rows[::-1]
            ]
            axes.bxp(boxes, orientation="horizontal", showmeans=True, showfliers=False, meanprops={"marker": "o", "markersize": 3})
            axes.axvline(0, color="gray", linewidth=0.8)
            axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
            axes.set_xlabel(f"fewer misses than {rows[0]['against']}, over {max(row['traces'] for row in rows)} traces")

        return _svg.picture(6, 0.7 + 0.25 * len(rows), draw)

    def text(self) -> str:
        """For a terminal."""
        head = f"{'policy':<14} {'memory':>8} {'traces':>7} {'mean':>8}" + "".join(
            f" {f'p{p}':>8}" for p in PERCENTILES
        )
        lines = [head]
        for row in self.rows:
            figures = "".join(f" {100 * row[name]:>7.2f}%" for name in ("mean", *(f"p{p}" for p in PERCENTILES)))
            settings = "" if row["settings"] == "{}" else f"  {row['settings']}"
            lines.append(f"{row['policy']:<14} {row['memory']:>8} {row['traces']:>7}{figures}{settings}")
        return "\n".join(lines)

    def _shown(self) -> list[str]:
        return self.columns

    def _repr_html_(self) -> str:
        return _svg.shown(self.svg) + super()._repr_html_()
