"""Traces of arrays and tables, and what cannot be one."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from conftest import PEAK

import refault

RNG = np.random.default_rng(1)
PAGES = RNG.zipf(1.3, 50_000).astype(np.int64) % 3000


def misses(trace, memory="25%"):
    return [row["misses"] for row in refault.replay(trace, memory=memory).rows]


def as_file(tmp_path, pages, writes=None):
    path = tmp_path / "t.txt"
    letters = ["r" if writes is None or not w else "w" for w in (writes if writes is not None else pages)]
    path.write_text("".join(f"{page} {letter}\n" for page, letter in zip(pages, letters)))
    return refault.Trace.read(path)


def test_an_array_is_what_a_file_of_it_is(tmp_path):
    writes = PAGES % 7 == 0
    assert misses(refault.Trace.from_numpy(PAGES)) == misses(as_file(tmp_path, PAGES))
    trace = refault.Trace.from_numpy(PAGES, writes)
    assert misses(trace) == misses(as_file(tmp_path, PAGES, writes))
    assert trace.accesses == len(trace) == 50_000
    assert trace.footprint_pages == len(np.unique(PAGES))
    assert trace.info()["writes"] == writes.sum() and trace.path is None


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i8", ">u2", "?"])
def test_every_type_of_whole_numbers(dtype):
    pages = (PAGES % 2 if dtype == "?" else PAGES % 100).astype(dtype)
    assert misses(refault.Trace.from_numpy(pages), "50%") == misses(refault.Trace.from_numpy(pages.tolist()), "50%")


def test_strides_and_places():
    wide = np.zeros((50_000, 3), dtype=np.int64)
    wide[:, 1] = PAGES
    packed = np.zeros(50_000, dtype=[("byte", "u1"), ("page", "<u8")])
    packed["page"] = PAGES
    for pages in [wide[:, 1], np.ascontiguousarray(PAGES[::-1])[::-1], packed["page"]]:
        assert not pages.flags.c_contiguous or not pages.flags.aligned
        assert misses(refault.Trace.from_numpy(pages)) == misses(refault.Trace.from_numpy(PAGES))


@pytest.mark.parametrize(
    ("pages", "kind", "text"),
    [
        (None, TypeError, "pages: is None, not an array"),
        ([1.0, 2.0], TypeError, "pages: is of type float64, not of whole numbers"),
        (["a"], TypeError, "not of whole numbers"),
        ([None, 1], TypeError, "not of whole numbers"),
        ([1, 2**64], TypeError, "not of whole numbers"),
        ([], ValueError, "array: holds no access"),
        (np.zeros(0, np.int32), ValueError, "array: holds no access"),
        ([[1, 2]], ValueError, "pages: has 2 dimensions, not one"),
        (3, ValueError, "pages: has 0 dimensions, not one"),
        ([1, -3, 2], ValueError, "array: row 1: page: -3 is negative"),
        (np.array([7, 2**64 - 1], np.uint64), ValueError, "array: row 1: page 18446744073709551615 plus 1 is beyond"),
    ],
)
def test_what_is_no_trace(pages, kind, text):
    with pytest.raises(kind) as caught:
        refault.Trace.from_numpy(pages)
    assert text in str(caught.value)


def test_large_pages_are_pages():
    far = np.array([0, 2**63, 2**63 + 1, 2**64 - 2, 0], np.uint64)
    trace = refault.Trace.from_numpy(far)
    assert trace.footprint_pages == 4
    assert refault.replay(trace, memory="100%", policy="opt").rows[0]["misses"] == 4
    assert refault.replay(trace, memory="100%", policy="lru").rows[0]["accesses"] == 5


def test_other_columns_are_checked():
    with pytest.raises(ValueError, match="writes: has 2 entries, and pages has 3"):
        refault.Trace.from_numpy([1, 2, 3], [True, False])
    with pytest.raises(ValueError, match="row 1: write 2 is neither 0 nor 1"):
        refault.Trace.from_numpy([1, 2, 3], [0, 2, 0])
    with pytest.raises(ValueError, match="row 2: object 9 is too large; at most 1"):
        refault.Trace.from_numpy([1, 2, 3], objects=[0, 1, 9], object_names=["a", "b"])
    with pytest.raises(ValueError, match="task 4294967296 is too large"):
        refault.Trace.from_numpy([1], tasks=[2**32])
    with pytest.raises(ValueError, match="is no kind of object; it is file or anon"):
        refault.Trace.from_numpy([1], kind="tape")
    with pytest.raises(ValueError, match="objects: .* too many"):
        refault.Trace.from_numpy([1], objects=[2**40])
    for wrong in [{"page_size": 1000}, {"via": "air"}, {"max_accesses": 0}]:
        with pytest.raises(ValueError):
            refault.Trace.from_numpy([1], **wrong)


def test_objects_tasks_and_times_come_through(tmp_path):
    objects, tasks = PAGES % 3, PAGES % 5
    times = np.arange(len(PAGES), dtype=np.uint64) * 1000
    names = [("a", "file"), ("heap", "anon"), "c"]
    trace = refault.Trace.from_numpy(PAGES, objects=objects, object_names=names, tasks=tasks, time_ns=times, name="x")
    info = trace.info()
    assert [(o["name"], o["kind"]) for o in info["objects"]] == [("a", "file"), ("heap", "anon"), ("c", "file")]
    assert info["tasks"] == 5 and info["time_span_ns"] == (len(PAGES) - 1) * 1000
    trace.write(tmp_path / "x.parquet")
    again = refault.Trace.read(tmp_path / "x.parquet")
    written = again.info()
    for name in ["objects", "tasks", "time_span_ns", "accesses", "reads", "writes", "distinct_pages", "via", "trace"]:
        assert written[name] == info[name] or name == "via", name
    assert misses(again) == misses(trace)


def test_a_table_is_what_its_arrays_are(tmp_path):
    writes = PAGES % 7 == 0
    want = misses(refault.Trace.from_numpy(PAGES, writes))
    columns = {"page": PAGES, "write": writes}
    table = pa.table(columns)
    chunked = pa.concat_tables([table.slice(0, 7), table.slice(7, 0), table.slice(7)])
    for given in [table, chunked, pl.DataFrame(columns), table.to_reader(max_chunksize=1000), table.to_batches()[0]]:
        assert misses(refault.Trace.from_arrow(given)) == want
    ranges = pa.table({"page": [5, 100], "pages": pa.array([3, 2], pa.uint32()), "op": pa.array([5, 2], pa.uint8())})
    info = refault.Trace.from_arrow(ranges).info()
    assert (info["accesses"], info["distinct_pages"], info["writes"]) == (5, 5, 3)
    assert info["via"] == {"fd": 2, "map": 3, "unspecified": 0}


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"pgae": [1]}, "table: the table has no column page; it has pgae"),
        ({"page": [1.5]}, "column page is of type Float64"),
        ({"page": [1, None]}, "row 1: page: is null"),
        ({"page": [1, -1]}, "row 1: page: -1 is negative"),
        ({"page": [1], "pages": [0]}, "row 0: 0 pages are not 1 to"),
        ({"page": [1], "op": [32]}, "row 0: op 32 is not 0 to 5"),
        ({"page": pa.array([], pa.int64())}, "table: holds no access"),
    ],
)
def test_tables_that_are_no_trace(columns, text):
    with pytest.raises(ValueError) as caught:
        refault.Trace.from_arrow(pa.table(columns))
    assert text in str(caught.value)
    with pytest.raises((TypeError, ValueError)):
        refault.Trace.from_arrow(object())


def test_generated_traces_are_those_of_the_command(run, tmp_path):
    phase = "20000: interleave=round; db:zipf:400:skew=0.9; log:seq:9000:op=w"
    out = tmp_path / "w.parquet"
    assert run("trace", "generate", out, "--phase", phase, "--seed", "5")[0] == 0
    trace = refault.Trace.generate(phase, seed=5)
    assert misses(trace) == misses(refault.Trace.read(out))
    trace.write(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == out.read_bytes()
    with pytest.raises(ValueError, match="lop"):
        refault.Trace.generate("5: A:lop:3")
    with pytest.raises(ValueError, match="no phase"):
        refault.Trace.generate([])


def test_info_is_that_of_the_command(run, sqlite):
    import json

    assert refault.Trace.read(sqlite).info() == json.loads(run("trace", "info", sqlite, "--json")[1])


def test_a_file_that_changes(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("1\n2\n1\n")
    trace = refault.Trace.read(path)
    path.write_text("1\n2\n3\n4\n")
    with pytest.raises(ValueError, match="has changed since it was read"):
        trace.info()
    with pytest.raises(ValueError, match="has changed since it was read"):
        trace.write(tmp_path / "out.parquet")
    assert misses(trace, "100%")[2] == 2
    path.unlink()
    with pytest.raises(ValueError, match="has changed"):
        trace.info()


def test_a_trace_is_not_written_over_itself(tmp_path):
    path = tmp_path / "t.parquet"
    refault.Trace.from_numpy([1, 2, 3]).write(path)
    with pytest.raises(ValueError, match="is the trace to read"):
        refault.Trace.read(path).write(path)
    with pytest.raises(OSError):
        refault.Trace.read(path).write(tmp_path / "no" / "t.parquet")


def test_an_array_is_copied_once(tmp_path):
    """The trace takes 4 bytes an access, and nothing near the array comes on top."""
    code = (
        PEAK + "import numpy as np, refault\n"
        "pages = np.arange(16 << 20, dtype=np.int64) % 5000\n"
        "before = peak()\n"
        "trace = refault.Trace.from_numpy(pages)\n"
        "print((peak() - before) / pages.nbytes)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.75
