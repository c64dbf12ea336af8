"""Cells a minute of a sweep with one and two workers, and what a task costs beside its replays."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import refault
from refault.sweeps import run

TRACES = int(sys.argv[1]) if len(sys.argv) > 1 else 40
ASKED = {"memory": ["10%", "25%", "50%"], "policy": ["lru", "mglru", "opt"]}


def timed(traces: Path, out: Path, workers: int) -> float:
    """Seconds of a sweep on workers that are there already."""
    with run.local_client(workers) as client:
        client.wait_for_workers(workers)
        # The first task of a worker imports everything.
        client.run(lambda: __import__("refault.sweeps.store", fromlist=["schema"]).schema())
        begun = time.perf_counter()
        refault.sweep(str(traces / "*.parquet"), client=client, out=out, progress=False, **ASKED)
        return time.perf_counter() - begun


def main() -> None:
    """Prints a line for each size of trace and number of workers."""
    print("accesses  workers  traces  cells  seconds  cells a minute  replays alone  beside them, ms a task")
    for accesses in (1_000, 1_000_000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for n in range(TRACES):
                trace = refault.Trace.generate(f"{accesses}: a:zipf:{accesses // 20}:skew=0.9", seed=n)
                trace.write(folder / f"{n}.parquet")
            begun = time.perf_counter()
            for n in range(TRACES):
                refault.replay(folder / f"{n}.parquet", threads=1, **ASKED)
            alone = time.perf_counter() - begun
            for workers in (1, 2):
                seconds = timed(folder, folder / f"out{workers}", workers)
                cells, extra = 9 * TRACES, 1000 * (seconds * workers - alone) / TRACES
                figures = (
                    f"{cells:>5}  {seconds:>7.2f}  {60 * cells / seconds:>14,.0f}  {alone:>11.2f} s  {extra:>22.1f}"
                )
                print(f"{accesses:>8}  {workers:>7}  {TRACES:>6}  {figures}")


if __name__ == "__main__":
    main()
