"""Plans of sweeps: in a file, and as commands for other schedulers."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from conftest import PEAK

from refault.sweeps import run
from refault.sweeps.plan import Plan
from sweep_cells import ASKED, check, files


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


def test_a_million_cells_are_planned_in_little_memory(tmp_path):
    """1,000 traces by 1,000 cells: named and written as tasks."""
    code = (
        PEAK + "from refault.sweeps import emit\n"
        "from refault.sweeps.plan import Plan\n"
        "traces = [f'/no/such/trace-{n}.parquet' for n in range(1000)]\n"
        "plan = Plan.of(traces, [f'{n}p' for n in range(1, 101)], ['lru', 'mglru'], {'seed': [1, 2, 3, 4, 5]})\n"
        "named = sum(1 for n in range(1000) for _ in plan.named(str(n)))\n"
        f"emitted = emit.emit(plan, {str(tmp_path / 'tasks.txt')!r})\n"
        "print(named, emitted, peak())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    named, emitted, peak = done.stdout.split()
    assert (int(named), int(emitted)) == (1_000_000, 16_000)
    assert int(peak) < 500 << 20


def test_a_plan_says_itself():
    plan = Plan.of("a.txt", [1 << 20, "25%"], "lru", {"swappiness": 60})
    assert plan.memory == ["1048576", "25%"] and plan.cells_per_trace() == 2
    names = [name for name, _ in plan.named("x")]
    assert len(set(names)) == 2 and names != [name for name, _ in plan.named("y")]
    assert names == [name for name, _ in Plan.of("b.txt", ["1048576", "25%"], ["lru"], {"swappiness": [60]}).named("x")]
