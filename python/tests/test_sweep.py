"""Sweeps: on processes of this machine, on real schedulers and workers, and without Dask."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager, suppress

import pytest

import refault
from refault.sweeps import fetch, run, task
from sweep_cells import ASKED, check, files


class Dask:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder):
        self.folder, self.workers, self.named = folder, [], 0
        self.begin_scheduler(0)

    def begin_scheduler(self, port):
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        words = ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show"]
        self.scheduler = self.begin([*words, "--scheduler-file", str(file)])
        for _ in range(300):
            # Dask opens the file and then writes into it: for a moment it is there and empty.
            with suppress(FileNotFoundError, json.JSONDecodeError):
                self.address = json.loads(file.read_text())["address"]
                return
            time.sleep(0.1)
        raise AssertionError("the scheduler did not begin")

    def begin(self, words):
        log = (self.folder / "dask.log").open("ab")
        return subprocess.Popen([sys.executable, "-m", "dask", *words], stdout=log, stderr=log)

    def add_worker(self):
        self.named += 1
        words = ["worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", f"w{self.named}"]
        words += ["--resources", "MEMORY=4e9", "--local-directory", str(self.folder), "--death-timeout", "20"]
        self.workers.append(self.begin(words))

    def client(self, workers):
        from dask.distributed import Client

        client = Client(self.address, timeout=30)
        client.wait_for_workers(workers, timeout=60)
        return client

    def end(self):
        for process in [*self.workers, self.scheduler]:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def dask(tmp_path):
    cluster = Dask(tmp_path)
    try:
        yield cluster
    finally:
        cluster.end()


def go(client, traces, out, **more):
    return refault.sweep(str(traces / "*.parquet"), client=client, out=out, progress=False, **{**ASKED, **more})


def test_two_workers_say_what_one_process_says(dask, traces, single, tmp_path):
    dask.add_worker()
    dask.add_worker()
    with dask.client(2) as client:
        check(go(client, traces, tmp_path / "out"), single)
        before = files(tmp_path / "out")
        go(client, traces, tmp_path / "out")
        assert files(tmp_path / "out") == before


def begun(out, count, timeout=60):
    """Waits until so many files are there."""
    end = time.monotonic() + timeout
    while len(files(out)) < count:
        assert time.monotonic() < end, "the sweep did not get on"
        time.sleep(0.02)


@pytest.fixture
def slowly(monkeypatch):
    """Small tasks, so that there are many to be in the middle of."""
    monkeypatch.setattr(run, "TASK_CELLS", 2)


def test_a_worker_is_killed_and_another_comes(dask, traces, single, tmp_path, slowly):
    dask.add_worker()
    dask.add_worker()
    out = tmp_path / "out"
    with dask.client(2) as client:
        thread = threading.Thread(target=lambda: go(client, traces, out))
        thread.start()
        begun(out, 10)
        os.kill(dask.workers[0].pid, signal.SIGKILL)
        killed_at = len(files(out))
        dask.add_worker()
        thread.join(120)
        assert not thread.is_alive() and killed_at < 150
    check(run.Sweep(str(out)), single)
    assert len(files(out)) == 150


def test_the_scheduler_begins_again(dask, traces, single, tmp_path, slowly):
    dask.add_worker()
    dask.add_worker()
    out = tmp_path / "out"
    failures = []

    def first():
        try:
            go(client, traces, out)
        except BaseException as e:
            failures.append(e)

    client = dask.client(2)
    thread = threading.Thread(target=first)
    thread.start()
    begun(out, 10)
    dask.scheduler.kill()
    thread.join(120)
    client.close(timeout=2)
    assert not thread.is_alive() and failures, "the loss of the scheduler is an error"
    for worker in dask.workers:
        worker.kill()
        worker.wait()
    there = files(out)
    assert 10 <= len(there) < 150
    dask.begin_scheduler(0)
    dask.add_worker()
    with dask.client(1) as client:
        check(go(client, traces, out), single)
    after = files(out)
    assert all(after[path] == time for path, time in there.items()), "what was there was done again"


def test_a_trace_is_decoded_once_and_replayed_where_it_is(dask, traces, tmp_path):
    dask.add_worker()
    dask.add_worker()
    with dask.client(2) as client:
        go(client, traces, tmp_path / "out")
        decoded = [url for urls in client.run(lambda: list(task.decoded)).values() for url in urls]
        assert len(decoded) == len(set(decoded)) == 10


def test_errors_are_rows(traces, tmp_path):
    broken, missing = tmp_path / "broken.txt", tmp_path / "missing.txt"
    broken.write_text("1\n2\nx\n")
    small = tmp_path / "small.txt"
    small.write_text("1\n2\n1\n")
    given = [str(broken), str(missing), str(small), str(traces / "t0.parquet")]
    out = tmp_path / "out"
    sweep = refault.sweep(given, ["50%", "300p"], ["lru", "opt"], out=out, workers=1, progress=False)
    rows = sweep.table().to_pylist()
    errors = {(row["trace"], row["asked_memory"]): row["error"] for row in rows}
    assert len(rows) == 16 and len(sweep.failed()) == 10
    assert errors["broken", "50%"].endswith('broken.txt:3: page "x" is not a number')
    assert "FileNotFoundError" in errors["missing", "300p"]
    assert errors["small", "50%"] is None and "more than the footprint" in errors["small", "300p"]
    assert errors["t0", "300p"] is None
    # A failed job is tried again, and done once it is mended.
    missing.write_text("7\n8\n7\n")
    broken.write_text("1\n2\n3\n")
    again = refault.sweep(given, ["50%", "300p"], ["lru", "opt"], out=out, workers=1, progress=False)
    rows = again.table().to_pylist()
    assert len(rows) == 16 and sum(row["error"] is None for row in rows) == 10
    assert {row["trace"] for row in again.failed()} == {"broken", "missing", "small"}
    assert all("more than the footprint" in row["error"] for row in again.failed())


def test_a_trace_that_kills_workers_is_a_row(traces, tmp_path):
    """Its cells say that their workers died, and all others are done."""
    from dask.distributed import Client, LocalCluster, WorkerPlugin

    class Kill(WorkerPlugin):
        """On this trace every worker dies, those that come after it, too."""

        def setup(self, worker):
            import os
            import signal

            from refault.sweeps import task

            load = task.load
            deadly = lambda url, *more: (
                os.kill(os.getpid(), signal.SIGKILL) if url.endswith("t3.parquet") else load(url, *more)
            )
            task.load = deadly

    with LocalCluster(2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        with Client(cluster) as client:
            client.register_plugin(Kill())
            some = [str(traces / f"t{n}.parquet") for n in range(6)]
            sweep = refault.sweep(some, "20%", ["lru", "opt"], client=client, out=tmp_path / "out", progress=False)
    rows = sweep.table().to_pylist()
    assert len(rows) == 12
    failed = {row["url"] for row in sweep.failed()}
    assert failed == {str(traces / "t3.parquet")} and len(sweep.failed()) == 2
    assert all(row["error"].startswith("KilledWorker") for row in sweep.failed())


def test_a_result_that_went_with_its_worker_is_waited_for():
    """Dask calls it lost until another worker has done it again: not as when the scheduler is gone."""
    from dask.distributed import CancelledError

    from refault.sweeps.plan import Plan
    from refault.sweeps.run import Job, Work

    class Future:
        status = "lost"

        def __init__(self, then):
            self.then = then

        def result(self):
            if isinstance(self.then, Exception):
                raise self.then
            return self.then

    done = []

    class Progress:
        def done(self, **counts):
            done.append(counts)

    work = Work(Plan([], ["20%"], ["lru"]), None, [], None, Progress())
    known = {"digest": "d", "url": "t.parquet"}
    work.take(Future({"cells": 3}), Job(known, "t.parquet"))
    assert done == [{"cells": 3}]
    # A connection that broke is no cell that failed.
    for gone in [CancelledError("begin-1"), OSError("in <TCP>: connection refused")]:
        with pytest.raises(ConnectionError, match="start the sweep again"):
            work.take(Future(gone), Job(known, "t.parquet"))


def test_a_sweep_beside_another_warns_of_nothing():
    """Each has a small server of HTTP, which had one port for all of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with run.local_client(1), run.local_client(1) as other:
            assert other.submit(int).result() == 0


def test_the_same_content_is_done_once(traces, tmp_path):
    for name in ["a", "b"]:
        shutil.copy(traces / "t0.parquet", tmp_path / f"{name}.parquet")
    sweep = refault.sweep(str(tmp_path / "*.parquet"), "20%", "lru", out=tmp_path / "out", workers=1, progress=False)
    assert len(sweep.table()) == 1


def test_no_room_for_results(traces, tmp_path):
    if os.geteuid() == 0:
        out = "/dev/full/out"
    else:
        out = str(tmp_path / "no")
        os.mkdir(out, 0o500)
    with pytest.raises(OSError):
        refault.sweep(str(traces / "*.parquet"), "20%", "lru", out=out, workers=1, progress=False)


def test_mistakes_are_known_before_anything_runs(traces, tmp_path):
    def sweep(**more):
        given = {"traces": str(traces / "t0.parquet"), "memory": "20%", "policy": "lru", **more}
        refault.sweep(**given, out=tmp_path / "out")

    for more, text in [
        ({"policy": "belady"}, "unknown policy"),
        ({"memory": "20X"}, "is not a size"),
        ({"memory": "120%"}, "at most 100 %"),
        ({"memory": []}, "memory: there is none"),
        ({"settings": {"recency": ["3bit", "4bit"]}, "policy": "mglru-shadow"}, "is not a value of recency"),
        ({"read": {"speed": 1}}, "'speed' is not of Trace.read"),
        ({"traces": []}, "traces: there are none"),
    ]:
        with pytest.raises(ValueError, match=text):
            sweep(**more)
    with pytest.raises(FileNotFoundError, match="no trace is there"):
        sweep(traces=str(tmp_path / "*.none"))
    assert not (tmp_path / "out" / "_traces").exists() or not files(tmp_path / "out")


def test_copies_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv("REFAULT_CACHE", str(tmp_path))
    monkeypatch.setenv("REFAULT_CACHE_BYTES", "2500")
    for n in range(4):
        (tmp_path / f"{n}").write_bytes(b"x" * 1000)
        os.utime(tmp_path / f"{n}", (n, n))
    fetch.bound(tmp_path, keep=tmp_path / "0")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "3"]


@contextmanager
def s3(folder):
    """A server that is compatible with S3, with the files of a folder in its bucket."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    bucket = boto3.resource("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="traces")
    for path in folder.glob("*.parquet"):
        bucket.upload_file(str(path), f"fleet/{path.name}")
    try:
        yield {"key": "test", "secret": "test", "client_kwargs": {"endpoint_url": endpoint, "region_name": "us-east-1"}}
    finally:
        server.stop()


def test_traces_of_an_object_store(dask, traces, single, tmp_path, monkeypatch):
    monkeypatch.setenv("REFAULT_CACHE", str(tmp_path / "cache"))
    dask.add_worker()
    dask.add_worker()
    with s3(traces) as storage, dask.client(2) as client:
        sweep = refault.sweep(
            "s3://traces/fleet/*.parquet", client=client, out=tmp_path / "out", storage=storage, progress=False, **ASKED
        )
        check(sweep, single)
        assert {row["url"] for row in sweep.table().to_pylist()} == {
            f"s3://traces/fleet/t{n}.parquet" for n in range(10)
        }
    copies = [path.name for path in (tmp_path / "cache").iterdir()]
    assert len(copies) == 10 and all(name.endswith(".parquet") for name in copies)


def test_the_summary_counts_traces(traces, tmp_path):
    out = tmp_path / "out"
    sweep = refault.sweep(str(traces / "*.parquet"), ["20%", "40%"], ["lru", "opt"], out=out, workers=2, progress=False)
    summary = sweep.summary()
    by_trace = {}
    for row in sweep.table().to_pylist():
        if row["asked_memory"] == "20%":
            by_trace.setdefault(row["trace"], {})[row["policy"]] = row["misses"]
    want = [1 - both["opt"] / both["lru"] for both in by_trace.values()]
    first = summary.rows[0]
    assert (first["policy"], first["memory"], first["traces"]) == ("opt", "20%", 10)
    assert first["mean"] == pytest.approx(sum(want) / 10)
    assert first["p50"] == pytest.approx(sorted(want)[4] / 2 + sorted(want)[5] / 2)
    picture = summary.svg()
    assert all(f"{policy} {size}" in picture for policy, size in [("opt", "20%"), ("opt", "40%")])
    assert "<svg" in sweep._repr_html_()
    assert "over 10 traces" in picture
