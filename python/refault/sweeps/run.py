"""Sweeps on Dask."""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from .. import _policy
from . import fetch, task
from .own import Own
from .plan import TASK_CELLS, Cell, Plan
from .progress import Progress
from .store import CannotWrite, Store
from .summary import Summary

MEMORY = "MEMORY"
"""The resource of Dask's workers that tasks take their estimate of, in bytes."""

BASE_BYTES = 192 << 20
"""What a worker needs beside traces: Python, Dask, Arrow."""

WINDOW = 8
"""Tasks under way for each thread of the workers: the scheduler never has a million."""


def estimate(known: dict[str, Any], threads: int = 1) -> int:
    """Bytes that replaying a trace takes: its accesses, what OPT knows of each, and an engine."""
    return BASE_BYTES + 8 * known.get("accesses", 0) + 128 * threads * known.get("footprint_pages", 0)


def estimate_unread(file_bytes: int) -> int:
    """The same before it was read: an access is not much less than half a byte of a file."""
    return BASE_BYTES + 20 * file_bytes


class Sweep:
    """The results of a sweep, be it finished or not."""

    def __init__(self, out: str, own: dict[str, Own] | None = None) -> None:
        self._store = Store(out)
        self._own = own or {}
        self.out = out

    def table(self) -> Any:
        """All rows as a table of pyarrow: the columns of a replay, ``cell``, ``url``, ``digest``,
        ``asked_memory``, ``settings`` (JSON), ``version``, ``code`` and ``error``. Of a policy that is
        a class, the rows of the class as it is now."""
        return self._store.table({name: own.code for name, own in self._own.items()})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table().__arrow_c_stream__(requested_schema)

    def failed(self) -> list[dict[str, Any]]:
        """The rows that ended with an error."""
        return [row for row in self.table().to_pylist() if row["error"] is not None]

    def summary(self, against: str = "lru") -> Summary:
        """How many fewer misses than a policy, over the traces: mean and percentiles."""
        return Summary.of(self.table(), against)

    def report(self, output: str = "sweep.html", against: str = "lru") -> str:
        """Writes the summary as a page of HTML; gives its path."""
        return self.summary(against).report(output, name=str(self.out), failed=len(self.failed()))

    def __repr__(self) -> str:
        return f"<refault.Sweep {self.out!r}>"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def sweep(
    traces: Any,
    memory: Any,
    policy: Any,
    settings: dict[str, Any] | None = None,
    client: Any = None,
    out: Any = "results/",
    *,
    read: dict[str, Any] | None = None,
    storage: dict[str, Any] | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> Sweep:
    """Replays every trace at every size under every policy with every combination of settings.

    ``policy`` is as of ``replay``: names, and classes derived from ``refault.Policy``, which workers
    get with their module, or as ``"module:Class"``, which they import.

    ``traces`` are paths, globs or URLs of ``fsspec`` (``s3://``, ``gs://``, ``https://``, with
    ``storage`` as its options); ``settings`` gives each setting of ``replay`` a value or a list of
    them; ``read`` is as of ``Trace.read``. ``client`` is a Dask client; without one there are
    ``workers`` processes on this machine, one a core by default. ``out`` is a path or URL that all
    workers reach.

    Results are written as they come. The same sweep started again does what is missing.
    """
    plan = Plan.of(traces, memory, policy, settings, read, storage, out)
    return run(plan, client, workers, progress)


def run(plan: Plan, client: Any = None, workers: int | None = None, progress: bool = True) -> Sweep:
    """Runs a plan on a client of Dask, or on processes of this machine."""
    store = Store(plan.out)
    store.try_it()
    urls = fetch.expand(plan)
    with local_client(workers) if client is None else given_client(client) as connected:
        Work(plan, store, urls, connected, Progress(len(urls) * plan.cells_per_trace(), progress)).run()
    return Sweep(plan.out, plan.own)


@contextmanager
def given_client(client: Any) -> Iterator[Any]:
    """A client that somebody else closes."""
    yield client


@contextmanager
def local_client(workers: int | None) -> Iterator[Any]:
    """Processes of this machine, with the memory that it has."""
    from dask.distributed import Client, LocalCluster
    from distributed.system import MEMORY_LIMIT

    count = workers or len(os.sched_getaffinity(0))
    each = int(MEMORY_LIMIT // count)
    cluster = LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        memory_limit=each,
        resources={MEMORY: each},
        dashboard_address=None,
        # Its small server of HTTP is there all the same: on a port that no other sweep has.
        scheduler_kwargs={"dashboard_address": ":0"},
        silence_logs=50,
    )
    with cluster, Client(cluster) as client:
        yield client


@dataclass
class Job:
    """A task that is under way."""

    known: dict[str, Any] | None
    """Of which trace; none: it is surveyed, and its first cells are done."""
    url: str
    cells: list[tuple[str, Cell]] = field(default_factory=list)
    alone: bool = False
    """Nothing else is under way beside it."""


class Work:
    """A plan under way: surveys of traces, and for each the cells that are missing."""

    def __init__(self, plan: Plan, store: Store, urls: list[str], client: Any, progress: Progress) -> None:
        self.plan, self.store, self.client, self.progress = plan, store, client, progress
        self.urls = iter(urls)
        self.ready: deque[Iterator[tuple[Job, str | None]]] = deque()
        self.jobs: dict[str, tuple[Any, Job]] = {}
        self.surveyed: set[str] = set()
        self.suspects: deque[Job] = deque()
        """Tasks on whose workers several died. Dask does not tell which of the tasks there did it, so
        each is tried once more by itself, when all others are done."""
        self.anonymous: list[str] = []
        """Traces without pages of files."""
        self.seen: tuple[float, list[dict[str, Any]]] | None = None

    def run(self) -> None:
        """Until all is done."""
        from dask.distributed import as_completed

        finished = as_completed(loop=self.client.loop)
        self.fill(finished)
        try:
            for future in finished:
                _, job = self.jobs.pop(future.key)
                self.take(future, job)
                future.release()
                self.fill(finished)
        finally:
            self.client.cancel([future for future, _ in self.jobs.values()])
            self.progress.end()
        self.warn()

    def warn(self) -> None:
        """Says that policies for pages of files have nothing to choose among in some of the traces."""
        idle = _policy.of_files(",".join(name for name in self.plan.policy if name not in self.plan.own), [])
        idle += list(self.plan.own)
        if self.anonymous and idle:
            first, more = min(self.anonymous), len(self.anonymous) - 1
            others = f" and {more:,} more" if more else ""
            warnings.warn(f"{first}{others}: {_policy.nothing_for(idle)}", stacklevel=4)

    def workers(self) -> list[dict[str, Any]]:
        """What the workers say of themselves, not older than a second."""
        now = time.monotonic()
        if self.seen is None or now - self.seen[0] > 1:
            self.seen = (now, list(scheduler_info(self.client)["workers"].values()))
        return self.seen[1]

    def fill(self, finished: Any) -> None:
        """Hands the scheduler tasks, as long as it has few."""
        threads = sum(worker["nthreads"] for worker in self.workers()) or 1
        while len(self.jobs) < max(WINDOW * threads, 16):
            if not self.ready and not self.next_trace():
                break
            following = next(self.ready[0], None) if self.ready else None
            if following is not None:
                finished.add(self.submit(*following))
            elif self.ready:
                self.ready.popleft()
        if not self.jobs and self.suspects:
            finished.add(self.submit(self.suspects.popleft(), None))

    def next_trace(self) -> bool:
        """Its cells, if it is known; else a survey of it. False: there is none."""
        url = next(self.urls, None)
        if url is None:
            return False
        known = None
        try:
            stamp, _ = fetch.stamp(url, self.plan.storage)
            known = self.store.survey(task.survey_name(stamp, self.plan.read))
        except Exception:
            # The survey says what is wrong with it.
            pass
        if known is None:
            self.ready.append(iter([(Job(None, url), None)]))
        else:
            known = {**known, "url": url, "name": task.name_of(url)}
            self.missing(known, self.store.done(known["digest"]), [], None)
        return True

    def missing(self, known: dict[str, Any], done: set[str], tried: list[str], worker: str | None) -> None:
        """The cells of a trace that are neither there nor were tried, in tasks; first where the
        trace already is."""
        if known["digest"] in self.surveyed:
            # The same content under another name: its cells are the same.
            self.progress.known(self.plan.cells_per_trace() - len(tried))
            return
        self.surveyed.add(known["digest"])
        if not known.get("files", True):
            self.anonymous.append(known["name"])
        if done:
            self.progress.known(sum(name in done for name, _ in self.plan.named(known["digest"])))
        self.ready.appendleft(self.tasks(known, done | set(tried), worker))

    def tasks(self, known: dict[str, Any], done: set[str], worker: str | None) -> Iterator[tuple[Job, str | None]]:
        """The cells of a trace that are not done, some at a time: they are not all there at once."""
        named = ((name, cell) for name, cell in self.plan.named(known["digest"]) if name not in done)
        while some := list(itertools.islice(named, TASK_CELLS)):
            yield Job(known, known["url"], some), worker

    def submit(self, job: Job, worker: str | None) -> Any:
        plan = self.plan
        arguments: tuple[Any, ...]
        if job.known is None:
            _, size = stamp_or_nothing(job.url, plan.storage)
            arguments = (task.begin, job.url, plan, TASK_CELLS)
            needed = estimate_unread(size)
        else:
            arguments = (task.run, job.known, job.cells, plan.read, plan.storage, plan.out, plan.own)
            needed = estimate(job.known)
        where = {"workers": [worker], "allow_other_workers": True} if worker else {}
        # The rest of a trace comes before the next trace.
        priority = 0 if job.known is None else 1
        future = self.client.submit(
            *arguments, pure=False, priority=priority, resources=self.resources(needed), **where
        )
        self.jobs[future.key] = (future, job)
        return future

    def resources(self, needed: int) -> dict[str, int]:
        """Its memory, if workers say how much they have; more than any has is all of one."""
        have = [worker["resources"][MEMORY] for worker in self.workers() if MEMORY in worker.get("resources", {})]
        return {MEMORY: min(needed, max(have))} if have else {}

    def take(self, future: Any, job: Job) -> None:
        """What came of a task."""
        from dask.distributed import CancelledError, KilledWorker

        error = None
        try:
            # The worker is gone since: the scheduler has it done again, and this waits.
            found = future.result()
        except Exception as raised:
            if future.status != "error" or isinstance(raised, CancelledError):
                # No task failed: nobody is there who knows of it.
                lost = "the scheduler has lost the tasks; start the sweep again to do what is missing"
                raise ConnectionError(lost) from raised
            if isinstance(raised, CannotWrite):
                raise
            if isinstance(raised, KilledWorker) and not job.alone:
                self.suspects.append(replace(job, alone=True))
                return
            error = raised
        if error is None:
            counts = found["counts"] if job.known is None else found
            self.progress.done(**counts)
            if job.known is None:
                self.missing(found["known"], found["done"], found["tried"], self.holder(future))
        elif job.known is None:
            # It killed workers: no cell of it can be replayed.
            said = task.said(error)
            self.write_failed(task.unreadable(job.url, said), None, said)
        else:
            self.write_failed(job.known, job.cells, task.said(error))

    def holder(self, future: Any) -> str | None:
        """The worker that has surveyed a trace, and so has it."""
        holders = self.client.who_has([future]).get(future.key) or ()
        return next(iter(holders), None)

    def write_failed(self, known: dict[str, Any], cells: list[tuple[str, Cell]] | None, error: str) -> None:
        """Rows of cells whose workers died."""
        every = list(self.plan.named(known["digest"])) if cells is None else cells
        for some in (every[at : at + TASK_CELLS] for at in range(0, len(every), TASK_CELLS)):
            self.store.write(known["digest"], [task.failed(known, name, cell, error) for name, cell in some])
            self.progress.done(len(some), len(some), 0)


def scheduler_info(client: Any) -> dict[str, Any]:
    """With all workers: new versions name five of them unless they are asked for more."""
    try:
        return client.scheduler_info(n_workers=-1)
    except TypeError:
        return client.scheduler_info()


def stamp_or_nothing(url: str, storage: dict[str, Any]) -> tuple[str, int]:
    """The stamp of what may not be there."""
    try:
        return fetch.stamp(url, storage)
    except Exception:
        return "", 0
