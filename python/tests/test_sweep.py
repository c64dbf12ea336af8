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
from contextlib import contextmanager
from pathlib import Path

import pytest

import refault
from refault.sweeps import fetch, run, store, task
from refault.sweeps.plan import Plan

TIMING = "maccesses_per_s"


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Ten small traces of different sizes."""
    folder = tmp_path_factory.mktemp("traces")
    for n in range(10):
        phase = f"{20000 + 1000 * n}: a:zipf:{400 + 50 * n}:skew=0.{n + 1}; b:loop:{150 + n}:kind=anon,op=w"
        refault.Trace.generate(phase, seed=n).write(folder / f"t{n}.parquet")
    return folder


ASKED = {
    "memory": ["10%", "20%", "40%", "60%", "100p"],
    "policy": ["lru", "mglru", "opt"],
    "settings": {"swappiness": [60, 100]},
}
"""30 cells a trace: 300 of ten."""


@pytest.fixture(scope="module")
def single(traces):
    """The same cells in this process, without any part of a sweep."""
    rows = {}
    for path in sorted(traces.glob("*.parquet")):
        trace = refault.Trace.read(path)
        for memory in ASKED["memory"]:
            for swappiness in ASKED["settings"]["swappiness"]:
                table = refault.replay(trace, memory, ASKED["policy"], swappiness=swappiness, threads=1)
                columns = {name: table.column(name) for name in table.columns}
                for n, policy in enumerate(columns["policy"]):
                    rows[path.stem, memory, swappiness, policy] = {name: columns[name][n] for name in columns}
    assert len(rows) == 300
    return rows


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
            if file.exists():
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
    # What failed is tried again, and what is mended is done.
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
        ({"settings": {"recency": ["3bit", "4bit"]}}, "is not a value of recency"),
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


def plan_file(traces, tmp_path, out="out"):
    lists = f"memory = {json.dumps(ASKED['memory'])}\npolicy = {json.dumps(ASKED['policy'])}\n"
    text = f'traces = ["{traces}/*.parquet"]\n{lists}'
    path = tmp_path / "plan.toml"
    path.write_text(f'{text}out = "{tmp_path / out}"\n[settings]\nswappiness = [60, 100]\n')
    return path


def command(*words, status=0):
    done = subprocess.run([sys.executable, "-m", "refault.sweep", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


def test_a_plan_in_a_file(traces, single, tmp_path):
    done = command(plan_file(traces, tmp_path), "--workers", 2)
    assert "300 cells in" in done.stderr and done.stdout.count("mglru") == 10
    check(run.Sweep(str(tmp_path / "out")), single)
    assert command(tmp_path / "plan.toml", "--summary").stdout == done.stdout
    (tmp_path / "bad.toml").write_text('traces = ["x"]\nmemory = "1M"\npolicy = "lru"\nspeed = 1\n')
    bad = command(tmp_path / "bad.toml", status=2)
    known = "known are traces, memory, policy, settings, read, storage, out"
    assert bad.stderr == f"error: {tmp_path}/bad.toml: unknown key 'speed'; {known}\n"


def test_plain_commands_do_the_same(traces, single, tmp_path):
    plan, emitted = plan_file(traces, tmp_path), tmp_path / "tasks.txt"
    assert command(plan, "--emit", emitted).stdout == f"10 tasks in {emitted}\n"
    lines = emitted.read_text().splitlines()
    assert len(lines) == 10 and all("# memory=" in line for line in lines)
    for line in lines:
        subprocess.run(line, shell=True, check=True)
    check(run.Sweep(str(tmp_path / "out")), single)
    before = files(tmp_path / "out")
    subprocess.run(lines[3], shell=True, check=True)
    assert files(tmp_path / "out") == before
    assert "is not one of the plan" in command(f"{emitted}.plan.json", "--task", 10, status=2).stderr


def test_threads_of_arrow_do_not_outlive_a_task(traces, single, tmp_path):
    """A thread of Arrow that lets go of a file of Python at the end of a process aborts it."""
    command(plan_file(traces, tmp_path), "--quiet")
    code = """if True:
        import os, sys
        from refault.sweeps.store import Store
        import pyarrow.parquet
        folder = next(name for name in os.listdir(sys.argv[1]) if name.startswith("digest="))
        before = len(os.listdir("/proc/self/task"))
        assert Store(sys.argv[1]).done(folder.removeprefix("digest="))
        assert Store(sys.argv[1]).table().num_rows == 300
        assert len(os.listdir("/proc/self/task")) == before
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], check=True)


def test_arrays_of_slurm_are_shell(traces, single, tmp_path):
    """With a stand-in for sbatch that does what it is asked for, one task after the other."""
    script = tmp_path / "tasks.sh"
    command(plan_file(traces, tmp_path), "--emit", script)
    stand_in = tmp_path / "bin" / "sbatch"
    stand_in.parent.mkdir()
    stand_in.write_text(
        "#!/bin/sh\nfor word; do case $word in\n"
        "--array=1-*) count=${word#--array=1-};;\n--wrap=*) wrap=${word#--wrap=};;\n"
        'esac; done\nfor id in $(seq "$count"); do SLURM_ARRAY_TASK_ID=$id sh -ec "$wrap"; done\n'
    )
    stand_in.chmod(0o755)
    path = f"{stand_in.parent}:{os.environ['PATH']}"
    subprocess.run(["sh", script], check=True, env={**os.environ, "PATH": path})
    check(run.Sweep(str(tmp_path / "out")), single)


def test_hyperqueue(traces, single, tmp_path):
    """With its real server and a real worker, which the package from PyPI starts by its library: it
    has no command, so that the file of the job is read here. Its workers offer no memory."""
    hyperqueue = pytest.importorskip("hyperqueue")
    tomllib = pytest.importorskip("tomllib")
    emitted = tmp_path / "tasks.toml"
    assert "10 tasks" in command(plan_file(traces, tmp_path), "--emit", emitted).stdout
    tasks = tomllib.loads(emitted.read_text())["task"]
    assert [entry["id"] for entry in tasks] == list(range(10))
    assert all(entry["request"][0]["resources"]["mem"] >= run.BASE_BYTES >> 20 for entry in tasks)
    with hyperqueue.LocalCluster(str(tmp_path / "hq")) as cluster:
        cluster.start_worker(hyperqueue.cluster.WorkerConfig(cores=2))
        client = cluster.client()
        job = hyperqueue.Job(default_workdir=str(tmp_path))
        for entry in tasks:
            job.program(entry["command"], env=dict(os.environ))
        client.wait_for_jobs([client.submit(job)])
    check(run.Sweep(str(tmp_path / "out")), single)


def test_a_million_cells_are_planned_in_seconds(tmp_path):
    """1,000 traces by 1,000 cells: named and written as tasks, in seconds and little memory."""
    code = (
        "import resource, sys, time\n"
        "from refault.sweeps import emit\n"
        "from refault.sweeps.plan import Plan\n"
        "begun = time.process_time()\n"
        "traces = [f'/no/such/trace-{n}.parquet' for n in range(1000)]\n"
        "plan = Plan.of(traces, [f'{n}p' for n in range(1, 101)], ['lru', 'mglru'], {'seed': [1, 2, 3, 4, 5]})\n"
        "named = sum(1 for n in range(1000) for _ in plan.named(str(n)))\n"
        f"emitted = emit.emit(plan, {str(tmp_path / 'tasks.txt')!r})\n"
        "print(named, emitted, time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    named, emitted, seconds, megabytes = done.stdout.split()
    assert (int(named), int(emitted)) == (1_000_000, 16_000)
    assert int(megabytes) < 500 and float(seconds) < 120


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
    assert summary.svg().count("<circle") == 2 and "<svg" in sweep._repr_html_()
    assert "over 10 traces" in summary.svg()


def test_a_plan_says_itself():
    plan = Plan.of("a.txt", [1 << 20, "25%"], "lru", {"swappiness": 60})
    assert plan.memory == ["1048576", "25%"] and plan.cells_per_trace() == 2
    names = [name for name, _ in plan.named("x")]
    assert len(set(names)) == 2 and names != [name for name, _ in plan.named("y")]
    assert names == [name for name, _ in Plan.of("b.txt", ["1048576", "25%"], ["lru"], {"swappiness": [60]}).named("x")]
