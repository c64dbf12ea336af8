"""Tables are taken by pandas, Polars, DuckDB and pyarrow, without a copy."""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import refault


@pytest.fixture(scope="module")
def result(sqlite):
    return refault.replay(sqlite, memory=["10%", "50%"], max_accesses=50_000)


def test_every_library_takes_it(result):
    misses = [row["misses"] for row in result.rows]
    assert pa.table(result).column("misses").to_pylist() == misses
    assert pl.DataFrame(result)["misses"].to_list() == misses
    assert duckdb.sql("select misses from result order by memory_pages, policy").fetchall()
    assert pa.table(result).to_pandas()["misses"].tolist() == misses
    if hasattr(pd.DataFrame, "from_arrow"):
        assert pd.DataFrame.from_arrow(result)["misses"].tolist() == misses


def test_no_copy_is_made(result):
    place = lambda: pa.table(result).column("misses").chunk(0).buffers()[1].address
    assert place() == place()


def test_rows_and_columns(result):
    assert len(result) == 6 and result.columns[:2] == ["trace", "policy"]
    assert result.column("policy") == [row["policy"] for row in result]
    with pytest.raises(KeyError, match="no column 'mises'"):
        result.column("mises")
    assert pa.schema(result).names == result.columns


def test_a_requested_schema_is_given(result):
    wanted = pa.schema([(f.name, pa.float64() if f.name == "misses" else f.type) for f in pa.table(result).schema])
    taken = pa.RecordBatchReader.from_stream(result, schema=wanted).read_all()
    assert taken.schema.field("misses").type == pa.float64()


def test_an_empty_table():
    assert len(refault.Table([])) == 0 and refault.Table([]).columns == []
    assert refault.Table([])._repr_html_().startswith("<table>")
