"""Replays say what the command says."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from conftest import ROOT, in_python

import refault

TIMING = "maccesses_per_s"


def without_timing(rows):
    return [{name: value for name, value in row.items() if name != TIMING} for row in rows]


def test_rows_are_those_of_the_command(run, sqlite):
    words = ["--memory", "10%,512K,300p", "--policy", "lru,mglru-shadow,opt", "--set", "recency=literal"]
    words += ["--swap-max", "50%", "--swappiness", "100", "--windows", "4", "--seed", "7", "--kernel", "6.1"]
    status, out, err = run("replay", sqlite, *words, "--json")
    assert status == 0, err
    result = refault.replay(
        sqlite,
        memory=["10%", 512 << 10, "300p"],
        policy=["lru", "mglru-shadow", "opt"],
        recency="literal",
        swap_max="50%",
        swappiness=100,
        windows=4,
        seed=7,
        kernel="6.1",
    )
    assert without_timing(result.rows) == without_timing(json.loads(out)["rows"])
    assert len(result) == 9


def test_defaults_are_those_of_the_command(run, sqlite):
    _, out, _ = run("replay", sqlite, "--json")
    assert without_timing(refault.replay(sqlite).rows) == without_timing(json.loads(out)["rows"])
    _, out, _ = run("replay", sqlite, "--memory", "2%,100%", "--json")
    ends = refault.curve(sqlite).rows
    assert len(ends) == 48
    assert without_timing(ends[:3] + ends[-3:]) == without_timing(json.loads(out)["rows"])


def test_a_recording_says_what_is_not_given(run):
    recording = ROOT / "data" / "orders.parquet"
    for words, settings in [
        ([], {}),
        (["--memory", "50%", "--policy", "lru"], {"memory": "50%", "policy": "lru"}),
        (["--kernel", "6.1", "--swappiness", "10"], {"kernel": "6.1", "swappiness": 10}),
        (["--page-by-page"], {"page_by_page": True}),
    ]:
        _, out, err = run("replay", recording, *words, "--json")
        expected = json.loads(out)["rows"]
        assert len(expected) == 1, err
        assert without_timing(refault.replay(recording, **settings).rows) == without_timing(expected)


def test_a_recording_is_replayed_as_the_machine_that_was_recorded(run):
    recording = ROOT / "data" / "orders.parquet"
    rows = pa.table(refault.replay(recording)).to_pylist()
    assert rows[0]["read_pages"] >= rows[0]["reads"] > 0
    assert rows[0]["misses"] < refault.replay(recording, page_by_page=True).column("misses")[0]
    for settings in [{"swap_max": "1M"}, {"thp": "64k=always"}, {"via": "map"}]:
        with pytest.raises(ValueError, match="is a recording.*page_by_page"):
            refault.replay(recording, **settings)
        assert refault.replay(recording, page_by_page=True, memory="10%", **settings).rows


def test_columns_are_typed_and_null_where_there_is_nothing(sqlite):
    table = pa.table(refault.replay(sqlite, memory="25%", windows=3))
    types = {field.name: field.type for field in table.schema}
    assert types["misses"] == types["workingset_refault_anon"] == types["oom_at"] == pa.uint64()
    assert types["hit_rate"] == pa.float64() and types["policy"] == pa.string()
    assert types["window_misses"] == pa.list_(pa.uint64())
    assert types["memory.events.max"] == pa.uint64()
    rows = table.to_pylist()
    assert [row["policy"] for row in rows] == ["lru", "mglru", "opt"]
    assert rows[2]["pgsteal_anon"] is None and rows[0]["pgsteal_anon"] > 0
    assert sum(rows[1]["window_misses"]) == rows[1]["misses"]
    assert json.loads(rows[0]["config"])["recency"] == "3bit"


def test_miss_bits(run, sqlite, tmp_path):
    trace = refault.Trace.read(sqlite, max_accesses=100_003)
    result = refault.replay(trace, memory=["25%", "50%"], policy=["mglru", "opt"], miss_bits=True)
    for n, row in enumerate(result.rows):
        bits = result.miss_bits(n)
        assert bits.dtype == np.bool_ and len(bits) == 100_003
        assert bits.sum() == row["misses"]
    file = tmp_path / "bits"
    words = ["--memory", "50%", "--policy", "mglru", "--max-accesses", 100_003, "--miss-bits", file]
    assert run("replay", sqlite, *words)[0] == 0
    assert result.miss_bits(2, packed=True).tobytes() == file.read_bytes()
    with pytest.raises(ValueError, match="miss_bits=True"):
        refault.replay(trace, memory="25%", policy="opt").miss_bits()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"memory": "1X"}, ["--memory", "1X"]),
        ({"memory": "200%"}, ["--memory", "200%"]),
        ({"memory": 1}, ["--memory", "1"]),
        ({"policy": "belady"}, ["--policy", "belady"]),
        ({"recency": "4bit"}, ["--set", "recency=4bit"]),
        ({"swappiness": 201}, ["--swappiness", "201"]),
        ({"seed": -1}, ["--seed=-1"]),
        ({"threads": 0}, ["--threads", "0"]),
        ({"kernel": "5.0"}, ["--kernel", "5.0"]),
        ({"thp": "63k=always"}, ["--thp", "63k=always"]),
        ({"format": "tape"}, ["--format", "tape"]),
        ({"page_size": 1000}, ["--page-size", "1000"]),
    ],
)
def test_mistakes_have_the_words_of_the_command_and_the_keyword(run, sqlite, settings, words):
    status, _, err = run("replay", sqlite, *words)
    assert status == 2
    with pytest.raises(ValueError) as caught:
        refault.replay(sqlite, **settings)
    (key,) = settings
    assert str(caught.value) == in_python(err, key)
    assert "--help" not in str(caught.value)


def test_files_that_are_not_there_or_broken(run, tmp_path):
    missing, broken, empty = tmp_path / "no.txt", tmp_path / "broken.txt", tmp_path / "empty.txt"
    broken.write_text("1\n2\nx1\n")
    empty.write_text("")
    for path, kind in [(missing, FileNotFoundError), (broken, ValueError), (empty, ValueError), (tmp_path, OSError)]:
        status, _, err = run("replay", path)
        assert status == 2
        with pytest.raises(kind) as caught:
            refault.Trace.read(path)
        assert f"error: {caught.value}\n" == err


def test_how_a_file_is_read_is_not_said_twice(sqlite):
    trace = refault.Trace.read(sqlite)
    with pytest.raises(TypeError, match="Trace.read"):
        refault.replay(trace, via="map")
    with pytest.raises(TypeError, match="neither a text nor a number"):
        refault.replay(trace, memory=object())


def test_a_notebook_shows_the_curve(sqlite):
    html = refault.curve(sqlite, policy="opt")._repr_html_()
    assert html.count('id="line of ') == 1 and "hit_rate" in html
    assert "ReplayResult: 16 rows" in repr(refault.curve(sqlite, policy="opt"))


def test_settings_are_typed():
    from refault._settings import Settings
    from refault._words import FLAGS, LOADING, READING

    assert set(Settings.__annotations__) == {*refault.settings(), *FLAGS, *LOADING, *READING}
    assert refault.settings()["recency"]["values"] == "3bit|literal"
