"""Sizes, scenarios, benchmarks and reports say what the command says."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from conftest import ROOT, in_python

import refault


def timeless(value):
    if isinstance(value, dict):
        return {name: timeless(one) for name, one in value.items() if name != "real_seconds"}
    return [timeless(one) for one in value] if isinstance(value, list) else value


def test_size(run, sqlite):
    _, out, _ = run("size", sqlite, "--target", "hit_rate>95%", "--policy", "lru", "--set", "inactive_ratio=3", "--json")
    got = refault.size(sqlite, "hit_rate>95%", policy="lru", inactive_ratio=3)
    assert got.result == json.loads(out)
    assert got.answer_bytes == got.result["answer_bytes"] > 0
    assert pa.table(got.points).num_rows == len(got.result["points"])
    assert "<svg" in got._repr_html_()
    assert refault.size(sqlite, "hit_rate>99.99999%").answer_bytes is None


def test_size_without_a_target_is_a_summary(run, sqlite):
    _, out, _ = run("size", sqlite, "--json")
    got = refault.size(sqlite)
    assert got.result == json.loads(out)
    assert got.answer_bytes is None and got.certain_bytes is None
    assert got.knee_bytes == got.result["knee_bytes"] > 0
    assert got.cut_bytes == got.result["cut_bytes"]
    assert f"{got.knee_bytes:,} bytes" in repr(got)
    assert "<svg" in got._repr_html_()


def test_sizes_of_a_recording_have_bounds(run):
    recording = ROOT / "data" / "orders.parquet"
    _, out, _ = run("size", recording, "--target", "hit_rate>90%", "--warm-up", "10%", "--json")
    got = refault.size(recording, "hit_rate>90%", warm_up="10%")
    assert got.result == json.loads(out)
    assert got.certain_bytes >= got.answer_bytes > 0
    assert got.result["baseline"]["trust"] in ("whole", "widened")
    points = pa.table(got.points).to_pylist()
    assert all(p["low"] <= p["value"] <= p["high"] for p in points if p["value"] is not None)


def test_size_of_an_array():
    trace = refault.Trace.generate("20000: a:loop:300")
    of_array = refault.Trace.from_numpy([n % 300 for n in range(20000)], name="a")
    assert refault.size(of_array, "hit_rate>90%").answer_bytes == refault.size(trace, "hit_rate>90%").answer_bytes


def test_size_of_a_trace_in_memory_is_that_of_its_file(tmp_path, monkeypatch):
    pages = [n * 7919 % 400 for n in range(8000)] + list(range(400))
    trace = refault.Trace.from_numpy(pages, time_ns=[n * 1000 for n in range(8400)], name="a")
    trace.write(tmp_path / "a.parquet")
    monkeypatch.setattr("tempfile.TemporaryDirectory", None)
    for target in ["hit_rate>50%", "refaults_per_s<1k", None]:
        assert refault.size(trace, target).result == refault.size(tmp_path / "a.parquet", target).result
    mapped = refault.Trace.from_numpy(pages, via="map", name="a")
    said = refault.size(trace, via="map").result
    assert said.pop("settings") == {"via": "map"}
    assert {k: v for k, v in refault.size(mapped).result.items() if k != "settings"} == said
    groups = refault.Trace.generate("20000: a:zipf:900:memcg=/web; b:loop:300:memcg=/batch")
    assert refault.size(groups, "hit_rate>20%", group="/web").result["group"] == "/web"
    for setting in [{"scale": 2}, {"warm_up": "1s"}, {"format": "native"}]:
        with pytest.raises(ValueError, match=rf"\b{next(iter(setting))}\b"):
            refault.size(trace, "hit_rate>50%", **setting)


def test_size_tells_mistakes(run, sqlite):
    with pytest.raises(ValueError, match=r"^memory='64M': is of all groups together.*; leave memory out, or add group$"):
        refault.size(sqlite, "hit_rate>50%", memory="64M")
    for target in ["hit_rate>2x", "p99<5ms", "hit_rate"]:
        with pytest.raises(ValueError) as caught:
            refault.size(sqlite, target)
        assert str(caught.value) == in_python(run("size", sqlite, "--target", target)[2], "target")
    with pytest.raises(ValueError, match="^target: "):
        refault.size(ROOT / "data" / "tenants.toml", group="/web")


def test_scenario(run):
    path = ROOT / "data" / "tenants.toml"
    _, out, err = run("replay", path, "--scale", 2, "--seed", 3, "--json", "--swap-map")
    result = refault.Scenario.read(path).run(scale=2, seed=3)
    assert timeless(result.runs) == timeless(json.loads(out)["runs"]), err
    series = result.series()
    assert series.columns[0] == "seconds" and len(series) > 3 and series.rows[0]["seconds"] >= 0
    assert len(result.tasks) == sum(len(run["tasks"]) for run in result.runs)
    assert pa.table(result.groups).num_rows >= 2
    assert "<svg" in result._repr_html_() and "tenants" in repr(result)


def test_scenario_of_a_dictionary():
    tomllib = pytest.importorskip("tomllib")
    path = ROOT / "data" / "tenants.toml"
    of_file = refault.Scenario.read(path).run(scale=2, policy=["lru", "mglru"])
    of_dict = refault.Scenario.read(tomllib.loads(path.read_text())).run(scale=2, policy=["lru", "mglru"])
    assert timeless(of_file.runs) == timeless(of_dict.runs) and len(of_dict.runs) == 2
    with pytest.raises(ValueError, match="task: is missing"):
        refault.Scenario.read({"name": "x", "machine": {"memory": "1G"}})
    with pytest.raises(TypeError, match="cannot be in a scenario"):
        refault.Scenario.read({"name": object()})
    with pytest.raises(OSError):
        refault.Scenario.read("no.toml")
    with pytest.raises(ValueError, match="opt"):
        refault.Scenario.read(path).run(policy="opt")
    with pytest.raises(ValueError, match="is not a scale; write 1"):
        refault.Scenario.read(path).run(scale=0.5)
    with pytest.raises(ValueError, match="policy: unknown policy"):
        refault.Scenario.read(path).run(policy="no-such")


def test_bench(run):
    result = refault.bench("db-switch", seeds=1)
    _, out, _ = run("bench", "db-switch", "--seeds", "1", "--json")
    assert timeless(result.benchmarks) == timeless(json.loads(out)["benchmarks"])
    assert set(result.table.column("benchmark")) == {"db-switch"}
    with pytest.raises(ValueError, match="no-such"):
        refault.bench("no-such")
    with pytest.raises(ValueError, match="threads: 0 is not in 1..=1024"):
        refault.bench("db-switch", threads=0)
    with pytest.raises(ValueError, match="seeds: does not go with seed"):
        refault.bench("db-switch", seed=1, seeds=2)


def test_report(sqlite, tmp_path):
    page = tmp_path / "page.html"
    array = refault.Trace.from_numpy(list(range(100)) * 20, name="a b/c")
    trace = refault.Trace.read(sqlite, max_accesses=5000)
    assert refault.report(array, trace, output=page, memory=["25%", "50%"], max_accesses=5000) == str(page)
    text = page.read_text()
    assert text.startswith("<!") and "sqlite" in text and "a-b-c" in text
    with pytest.raises(TypeError, match="no setting 'memroy'"):
        refault.report(sqlite, memroy="1M")
    with pytest.raises(ValueError, match="no input"):
        refault.report()
    with pytest.raises(OSError):
        refault.report(sqlite, output=tmp_path / "no" / "page.html")
