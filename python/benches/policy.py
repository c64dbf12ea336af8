"""What a policy that is a class costs, beside the same one in Rust: by turns, one thread."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import refault

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
from mru import Mru  # noqa: E402
from sieve import Sieve  # noqa: E402

# `policy.py ROUNDS ACCESSES`
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
ACCESSES = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000
TRACES = {
    "many hits": (f"{ACCESSES}: files:zipf:100000:skew=1.0", "30%"),
    "half hits": (f"{ACCESSES}: files:zipf:100000:skew=0.8", "10%"),
}


class Nothing(refault.Policy):
    """Takes the batches and gives no victim: what the way into Python costs."""

    def batch(self, cache, hooks, folios):
        """Not looked at."""

    def evict_folios(self, cache, n):
        """The kernel's lists say what goes."""
        return ()


def main() -> None:
    """Prints a line for each trace and policy."""
    print("trace      policy    hit rate  M accesses/s  microseconds a hook")
    for name, (phase, memory) in TRACES.items():
        trace = refault.Trace.generate(phase)
        policies = ["lru", "sieve", "mru", Nothing, Sieve, Mru]
        speeds: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            rows = refault.replay(trace, memory, policies, threads=1).rows
            for row in rows:
                speeds.setdefault(row["policy"], []).append(row["maccesses_per_s"])
        for row in rows:
            speed = statistics.median(speeds[row["policy"]])
            # A hit is a hook; a page that comes is one, and one when it goes.
            hooks = (row["hits"] + 2 * row["misses"]) / row["accesses"]
            print(f"{name:<9}  {row['policy']:<8}  {row['hit_rate']:>8.1%}  {speed:>12.2f}  {1 / speed / hooks:>19.2f}")


if __name__ == "__main__":
    main()
