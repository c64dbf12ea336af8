"""The cells that tests of sweeps ask for, and what a sweep must say of them."""

from __future__ import annotations

import json
from pathlib import Path

from refault.sweeps import store

TIMING = "maccesses_per_s"

ASKED = {
    "memory": ["10%", "20%", "40%", "60%", "100p"],
    "policy": ["lru", "mglru", "opt"],
    "settings": {"swappiness": [60, 100]},
}
"""30 cells a trace: 300 of ten."""


def check(sweep, single):
    """Every cell is there once, bit for bit as in a single process."""
    rows = sweep.table().to_pylist()
    assert len(rows) == len({row["cell"] for row in rows}) == len(single)
    for row in rows:
        assert row["error"] is None
        swappiness = json.loads(row["settings"])["swappiness"]
        want = single[row["trace"], row["asked_memory"], swappiness, row["policy"]]
        for name in set(want) - {*store.LEFT_OUT, TIMING}:
            assert row[name] == want[name], (row["cell"], name)


def files(out):
    return {path: path.stat().st_mtime_ns for path in Path(out).glob("digest=*/*.parquet")}
