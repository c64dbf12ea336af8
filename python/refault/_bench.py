"""The published benchmarks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import _refault
from ._table import Table
from ._words import Names


class BenchResult:
    """What benchmarks gave, beside what was published.

    ``benchmarks`` is the list that ``--json`` prints (``docs/reference/bench.md``).
    """

    def __init__(self, reports: Sequence[str]) -> None:
        self.benchmarks: list[dict[str, Any]] = [json.loads(report) for report in reports]

    @property
    def table(self) -> Table:
        """A row for each ratio: what was published, what came out, and whether it is in its band."""
        rows = []
        for bench in self.benchmarks:
            for row in bench["rows"]:
                named = {"benchmark": bench["name"], "metric": row["metric"], "label": row["label"]}
                for ratio in row["ratios"]:
                    low, high = ratio["band"] or (None, None)
                    rows.append({**named, **_plain(ratio), "band_low": low, "band_high": high})
        return Table([json.dumps(row) for row in rows])

    def __repr__(self) -> str:
        return f"<refault.BenchResult: {', '.join(bench['name'] for bench in self.benchmarks)}>"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def _plain(ratio: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in ratio.items() if name not in ("ratios", "band")}


def bench(
    names: Names = (),
    *,
    scale: float | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    check: bool = False,
    threads: int | None = None,
) -> BenchResult:
    """Runs published benchmarks by name, or scenario files with a ``[published]`` section.

    ``scale`` divides sizes, amounts of work and times; ``seeds`` runs with the seeds 1 to N;
    ``check`` looks at every sample whether memory, requests and pressure add up. None: all of them.
    """
    given = [names] if isinstance(names, str) else list(names)
    settings = {"scale": scale, "seed": seed, "check": check, "threads": threads}
    return BenchResult(_refault.bench(given, seeds, settings))
