"""Sweeps: many traces at many sizes under many policies, on any number of machines.

| file | what is in it |
|---|---|
| ``own`` | policies that are classes |
| ``plan`` | what is asked: traces, sizes, policies, settings; cells and their names |
| ``fetch`` | traces from any file system, kept on the worker with a bound |
| ``store`` | results: a partitioned data set of Parquet, written as cells finish |
| ``task`` | what a worker does: surveying a trace, replaying cells of it |
| ``run`` | tasks on Dask, or one after the other |
| ``progress`` | a line of progress |
| ``summary`` | reductions of misses against a policy over traces, as table and picture |
| ``emit`` | tasks as plain commands for Slurm, HyperQueue and GNU parallel |

Each calls those above it. ``refault.sweep`` is ``run.sweep``; ``python -m refault.sweep`` is in
``refault/sweep.py``.
"""

from .plan import Plan
from .run import Sweep, sweep

__all__ = ["Plan", "Sweep", "sweep"]
