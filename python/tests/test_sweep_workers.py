"""Workers that die under a sweep, on a scheduler that is made up."""

from types import SimpleNamespace

from distributed.scheduler import KilledWorker

from refault.sweeps.plan import Plan
from refault.sweeps.run import Job, Work


class Future:
    """A task that has ended."""

    status = "error"

    def __init__(self, key, error=None, found=None):
        self.key, self.error, self.found = key, error, found

    def result(self):
        if self.error is not None:
            raise self.error
        return self.found


class Client:
    """It notes what it is given."""

    def __init__(self):
        self.submitted = []

    def scheduler_info(self, n_workers=-1):
        return {"workers": {"w": {"nthreads": 1}}}

    def submit(self, *arguments, **_):
        self.submitted.append(arguments)
        return Future(f"again-{len(self.submitted)}")


class Store:
    """It notes what is written."""

    def __init__(self):
        self.rows = []

    def write(self, _, rows):
        self.rows += rows


class Progress:
    def done(self, *_, **__):
        pass


def test_a_task_beside_one_that_kills_workers_is_tried_by_itself():
    """Dask blames all tasks on the workers that died: an innocent one was a row with an error."""
    client, store, plan = Client(), Store(), Plan([], ["20%"], ["lru"])
    work = Work(plan, store, [], client, Progress())
    known = {"digest": "d", "url": "t.parquet", "name": "t", "accesses": 1, "footprint_pages": 1}
    cells = list(plan.named("d"))
    killed = KilledWorker("run-1", SimpleNamespace(address="tcp://w"), 3)
    for key in ["run-1", "run-2"]:
        work.take(Future(key, killed), Job(known, "t.parquet", cells))
    assert store.rows == []
    # One at a time, and only when nothing else is under way.
    added = set()
    work.fill(added)
    assert len(client.submitted) == len(work.jobs) == 1
    work.fill(added)
    assert len(client.submitted) == 1
    (_, job) = work.jobs.popitem()[1]
    work.take(Future("again-1", killed), job)
    assert [row["error"].split(":")[0] for row in store.rows] == ["KilledWorker"]
    work.fill(added)
    (_, job) = work.jobs.popitem()[1]
    work.take(Future("again-2", found={"cells": 1, "failed": 0, "accesses": 1}), job)
    work.fill(added)
    assert len(store.rows) == 1 and not work.jobs and len(client.submitted) == 2
