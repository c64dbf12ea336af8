"""``python -m refault.sweep plan.toml``: a sweep from a file. ``refault.sweep(...)`` is a function."""

from __future__ import annotations

import argparse
import sys


def main(words: list[str] | None = None) -> int:
    """Runs it; the exit status: 1 if a cell failed, 2 for a mistake."""
    from refault.sweeps import emit, run
    from refault.sweeps.plan import Plan

    parser = argparse.ArgumentParser(
        prog="python -m refault.sweep",
        description="Replays many traces at many sizes under many policies (docs/how-to/sweep-many-traces.md).",
    )
    parser.add_argument("plan", help="a file of TOML: traces, memory, policy, out, [settings], [read], [storage]")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of Dask, such as tcp://host:8786")
    parser.add_argument("--workers", type=int, metavar="N", help="processes of this machine [default: one a core]")
    parser.add_argument("--out", metavar="PATH", help="where results go, in the place of the plan's own")
    parser.add_argument(
        "--emit", metavar="FILE", help="write the tasks as commands: .txt, .sh (Slurm), .toml (HyperQueue)"
    )
    parser.add_argument("--task", type=int, metavar="N", help="do what is missing of one task, as --emit writes it")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of --task [default: 1]")
    parser.add_argument("--summary", action="store_true", help="print the summary of what is there, and run nothing")
    parser.add_argument("--against", default="lru", metavar="POLICY", help="of the summary [default: lru]")
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")
    given = parser.parse_args(words)
    try:
        plan = Plan.load(given.plan)
        plan.out = given.out or plan.out
        if given.emit:
            print(f"{emit.emit(plan, given.emit):,} tasks in {given.emit}")
            return 0
        if given.task is not None:
            return 1 if emit.run_task(plan, given.task, given.threads)["failed"] else 0
        if given.summary:
            result = run.Sweep(plan.out, plan.own)
        elif given.scheduler:
            from dask.distributed import Client

            with Client(given.scheduler) as client:
                result = run.run(plan, client, progress=not given.quiet)
        else:
            result = run.run(plan, workers=given.workers, progress=not given.quiet)
        failed = len(result.failed())
        if not given.quiet:
            print(result.summary(given.against).text())
        if failed:
            print(f"error: {failed:,} cells have no figures; their column error says why", file=sys.stderr)
        return 1 if failed else 0
    except (OSError, ValueError, TypeError, ImportError) as e:
        print(f"error: {' '.join(str(e).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("error: interrupted; the same command does what is missing", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
