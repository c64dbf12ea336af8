"""Long work: without the interpreter's lock, and ended by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import refault

LONG = "3000000000: a:uniform:1000"
"""A trace that takes a minute to make, and longer to replay."""

WORK = {
    "generate": f"refault.Trace.generate({LONG!r})",
    "replay": "refault.replay(trace, memory=[f'{n}p' for n in range(100, 900)], policy='all')",
    "size": "refault.size(trace, 'hit_rate>50%', range='1p..900p', resolution='1p')",
    "bench": "refault.bench('fileserver', scale=1)",
    "arrow": "refault.Trace.from_arrow(endless())",
}

CODE = """
import itertools, sys, refault, pyarrow as pa
trace = refault.Trace.generate("4000000: a:uniform:1000")
batch = pa.record_batch({"page": list(range(100000))})
endless = lambda: pa.RecordBatchReader.from_batches(batch.schema, itertools.repeat(batch))
print("begun", flush=True)
try:
    %s
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("work", WORK)
def test_ctrl_c_ends_it(work):
    program = subprocess.Popen(
        [sys.executable, "-c", CODE % WORK[work]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stdout.readline() == "begun\n"
    time.sleep(1)
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=60)
    assert (out, program.returncode) == ("interrupted\n", 0), err


def test_the_lock_is_released():
    trace = refault.Trace.generate("400000: a:uniform:5000")
    done = []
    thread = threading.Thread(target=lambda: done.append(refault.replay(trace, policy="all", threads=1)))
    thread.start()
    turns = 0
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    assert done and turns > 20


def test_a_handler_of_a_signal_may_raise():
    class Enough(Exception):
        pass

    def handler(*_):
        raise Enough

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Enough):
            refault.Trace.generate(LONG)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_threads_of_python_replay_beside_each_other():
    trace = refault.Trace.generate("300000: a:zipf:5000")
    want = refault.replay(trace, memory="25%", policy="lru").column("misses")
    got: list = [None] * 8

    def replay(n):
        got[n] = refault.replay(trace, memory="25%", policy="lru", threads=1).column("misses")

    threads = [threading.Thread(target=replay, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [want] * 8 and os.getpid()
