"""What people publish: how many fewer misses than a policy, over traces."""

from __future__ import annotations

import html
import json
from collections import defaultdict
from typing import Any

import numpy as np

from .. import _svg
from .._table import Table

PERCENTILES = (10, 25, 50, 75, 90)


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

    def svg(self) -> str:
        """For each row a line from the 10th to the 90th percentile, a box from the 25th to the 75th,
        a mark at the median and a dot at the mean."""
        rows = self.rows
        if not rows:
            return ""
        low = min(0.0, *(row["p10"] for row in rows), *(row["mean"] for row in rows))
        high = max(0.0, *(row["p90"] for row in rows), *(row["mean"] for row in rows))
        high = high if high - low > 1e-9 else low + 1e-3
        left, wide, tall = 210, 330, 22 * len(rows)
        x = lambda share: left + wide * (share - low) / (high - low)
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 570 {tall + 46}" width="570" role="img">']
        parts.append('<g font-family="sans-serif" font-size="11" fill="currentColor">')
        for step in range(5):
            share = low + (high - low) * step / 4
            parts.append(f'<line x1="{x(share):.1f}" x2="{x(share):.1f}" y1="4" y2="{tall + 8}" stroke="#8884"/>')
            parts.append(f'<text x="{x(share):.1f}" y="{tall + 22}" text-anchor="middle">{100 * share:.1f}%</text>')
        parts.append(f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="4" y2="{tall + 8}" stroke="#888"/>')
        for n, row in enumerate(rows):
            y, colour = 16 + 22 * n, _svg.COLOURS[n % len(_svg.COLOURS)]
            settings = "" if row["settings"] == "{}" else f" {row['settings']}"
            parts.append(
                f'<text x="4" y="{y + 4}">{html.escape((row["policy"] + " " + row["memory"] + settings)[:36])}</text>'
            )
            parts.append(
                f'<line x1="{x(row["p10"]):.1f}" x2="{x(row["p90"]):.1f}" y1="{y}" y2="{y}" stroke="{colour}"/>'
            )
            box = f'x="{x(row["p25"]):.1f}" width="{max(x(row["p75"]) - x(row["p25"]), 0.5):.1f}"'
            parts.append(f'<rect {box} y="{y - 6}" height="12" fill="{colour}" fill-opacity="0.35" stroke="{colour}"/>')
            median = f"{x(row['p50']):.1f}"
            parts.append(
                f'<line x1="{median}" x2="{median}" y1="{y - 6}" y2="{y + 6}" stroke="{colour}" stroke-width="2"/>'
            )
            parts.append(f'<circle cx="{x(row["mean"]):.1f}" cy="{y}" r="2.5" fill="{colour}"/>')
        label = f"fewer misses than {rows[0]['against']}, over {max(row['traces'] for row in rows)} traces"
        parts.append(f'<text x="{left + wide / 2}" y="{tall + 40}" text-anchor="middle">{html.escape(label)}</text>')
        parts.append("</g></svg>")
        return "".join(parts)

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
        return self.svg() + super()._repr_html_()
