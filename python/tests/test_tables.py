"""Tables, sizes and traces as users of Python expect them."""

import json
import pickle

import pytest
import refault
from refault import _scenario, _svg, _words
from refault._table import Table


def trace():
    return refault.Trace.generate("20000: db:zipf:4096:skew=0.9; log:seq:2000")


def test_tables_go_to_pandas_and_polars_and_print():
    pandas = pytest.importorskip("pandas")
    result = refault.replay(trace(), [0.1, 0.5], ["lru", "mglru"])
    assert list(result.to_pandas()["policy"]) == ["lru", "mglru"] * 2
    plain = pandas.DataFrame(result)
    assert list(plain["misses"]) == result.column("misses")
    assert list(plain) == list(result.to_pandas()) == result.columns
    lines = str(result).splitlines()
    assert lines[0].split()[:3] == ["trace", "policy", "memory_bytes"]
    assert len(lines) == 6 and "more columns" in lines[-1]
    assert repr(result).startswith("<refault.ReplayResult: 4 rows")
    polars = pytest.importorskip("polars")
    assert isinstance(result.to_polars(), polars.DataFrame)


def test_a_size_with_a_point_is_a_share():
    whole = trace()
    shares = refault.replay(whole, [0.1, 1.0], "lru").column("memory_pages")
    assert shares == refault.replay(whole, ["10%", "100%"], "lru").column("memory_pages")
    assert whole.pages(0.25) == whole.pages("25%")
    for wrong in (0.0, -0.5, 1.5, float("nan")):
        with pytest.raises(ValueError, match="a share of all pages"):
            refault.replay(whole, wrong, "lru")


def test_a_keyword_that_there_is_not_has_the_nearest():
    for call, name, nearest in [
        (lambda: refault.replay(trace(), memroy=0.1), "memroy", "memory"),
        (lambda: refault.curve(trace(), swapiness=1), "swapiness", "swappiness"),
        (lambda: refault.size(trace(), as_page_cash=True), "as_page_cash", "as_page_cache"),
    ]:
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'; did you mean '{nearest}'"):
            call()
    with pytest.raises(TypeError, match="refault.settings"):
        refault.replay(trace(), zzzzzz=1)


def test_traces_pickle_with_their_accesses(tmp_path):
    first = trace()
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(first))))
    assert (again.name, again.path, again.accesses) == (first.name, None, first.accesses)
    misses = [refault.replay(one, 0.1, "lru").column("misses") for one in (first, again)]
    assert misses[0] == misses[1]
    # Records that are asked for again are found.
    assert again.info()["accesses"] == first.accesses
    first.write(tmp_path / "t.parquet")
    mapped = refault.Trace.read(tmp_path / "t.parquet", via="map")
    copy = pickle.loads(pickle.dumps(mapped))
    assert refault.replay(copy, 0.1, "lru").rows[0]["misses"] == refault.replay(mapped, 0.1, "lru").rows[0]["misses"]


def test_latency_of_tasks_is_columns():
    row = {"name": "a", "latency_ns": {"p50": 5, "p99": 7}}
    table = Table([json.dumps(_scenario._flat(row))])
    assert table.columns == ["name", "p50_ns", "p99_ns"] and table.column("p99_ns") == [7]


def test_pictures_have_the_colours_of_the_report():
    assert _svg.OF_POLICIES["lru"] == "#0072b2" and _svg.OF_POLICIES["mglru"] == "#d55e00"
    pytest.importorskip("matplotlib")
    text = refault.replay(trace(), [0.1, 0.5], ["lru", "mglru"]).curve_svg()
    assert "#0072b2" in text and "#d55e00" in text


def test_shares_are_written_without_noise():
    assert [_words.size(n) for n in (0.1, 0.07, 1.0, 0.333, 5, "5%")] == ["10%", "7%", "100%", "33.3%", 5, "5%"]
