"""Replay from Python beside the command: the same trace, by turns. ``REFAULT_COMMAND`` names it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import refault

# `replay.py ROUNDS ACCESSES`
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
ACCESSES = int(sys.argv[2]) if len(sys.argv) > 2 else 8_000_000
PHASE = f"{ACCESSES}: a:zipf:200000:skew=0.9,weight=4; b:loop:60000"
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Prints a line for each policy, and what loading costs."""
    command = os.environ.get("REFAULT_COMMAND", ROOT / "target" / "release" / "refault")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        refault.Trace.generate(PHASE).write(path)
        trace = refault.Trace.read(path)
        print("policy  command M/s  Python M/s  Python / command")
        for policy in ("lru", "mglru", "opt"):
            both: tuple[list[float], list[float]] = ([], [])
            for _ in range(ROUNDS):
                words = [command, "replay", path, "--memory", "25%", "--policy", policy, "--threads", "1", "--json"]
                out = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["rows"][0]
                own = refault.replay(trace, "25%", policy, threads=1).rows[0]
                assert own["misses"] == out["misses"]
                both[0].append(out["maccesses_per_s"])
                both[1].append(own["maccesses_per_s"])
            theirs, ours = map(statistics.median, both)
            print(f"{policy:<6}  {theirs:>11.1f}  {ours:>10.1f}  {ours / theirs:>16.3f}")
        whole: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            subprocess.run([command, "replay", path, "--threads", "1", "--json"], capture_output=True, check=True)
            between = time.perf_counter()
            refault.replay(path, threads=1)
            whole[0].append(between - begun)
            whole[1].append(time.perf_counter() - between)
        theirs, ours = map(statistics.median, whole)
        print(f"reading the file and nine rows: command {theirs:.2f} s, Python {ours:.2f} s, {ours / theirs:.3f}")
        pages = np.random.default_rng(1).zipf(1.2, trace.accesses) % 200_000
        begun = time.perf_counter()
        refault.Trace.from_numpy(pages)
        print(f"from_numpy: {trace.accesses / (time.perf_counter() - begun) / 1e6:.1f} M accesses a second")


if __name__ == "__main__":
    main()
