"""Rows as a table that pandas, Polars, DuckDB and pyarrow take without a copy."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from . import _refault

SHOWN = 60
"""Rows of a table that a notebook shows."""


class Table:
    """Rows with named columns, in the memory layout of Arrow.

    It has the Arrow PyCapsule interface: ``pyarrow.table(t)``, ``polars.DataFrame(t)``,
    ``duckdb.sql("from t")`` and ``pandas.DataFrame.from_arrow(t)`` (pandas 3; before that
    ``pyarrow.table(t).to_pandas()``) take it without a copy. ``rows`` are the same as Python's
    objects, nested as the command prints them with ``--json``.
    """

    def __init__(self, rows: Sequence[str] | None = None, *, csv: str | None = None) -> None:
        self._texts = rows
        self._csv = csv

    @cached_property
    def _both(self) -> tuple[Any, dict[str, str]]:
        """The table of Arrow, and its columns as JSON."""
        if self._texts is None:
            table, columns = _refault.table_of_csv(self._csv or "")
        else:
            table, columns = _refault.table_of_rows(list(self._texts))
        return table, dict(columns)

    @property
    def _table(self) -> Any:
        return self._both[0]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Each row as a dictionary."""
        if self._texts is not None:
            return [json.loads(row) for row in self._texts]
        return list(self)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._both[1])

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        if name not in self.columns:
            raise KeyError(f"there is no column {name!r}; there are {', '.join(self.columns)}")
        return json.loads(self._both[1][name])

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows with the columns of the table, so that ``pandas.DataFrame(t)`` has them, too."""
        columns = {name: self.column(name) for name in self.columns}
        return (dict(zip(columns, values)) for values in zip(*columns.values()))

    def to_pandas(self) -> Any:
        """The table as a DataFrame of pandas; what is nested is a column for each value in it."""
        import pandas

        if hasattr(pandas.DataFrame, "from_arrow"):
            return pandas.DataFrame.from_arrow(self)
        return pandas.DataFrame({name: self.column(name) for name in self.columns})

    def to_polars(self) -> Any:
        """The table as a DataFrame of Polars."""
        import polars

        return polars.DataFrame(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<refault.{type(self).__name__}: {len(self)} rows, {len(self.columns)} columns>"

    def __str__(self) -> str:
        names = self._shown()
        columns = [[name, *map(plain, self.column(name)[:SHOWN])] for name in names]
        widths = [max(map(len, column)) for column in columns]
        is_text = [any(isinstance(value, str) for value in self.column(name)) for name in names]
        lines = [
            "  ".join(c.ljust(w) if left else c.rjust(w) for c, w, left in zip(row, widths, is_text)).rstrip()
            for row in zip(*columns)
        ]
        more = [f"and {len(self) - SHOWN} more rows"] if len(self) > SHOWN else []
        hidden = len(self.columns) - len(names)
        rest = [f"and {hidden} more columns: .columns has their names"] if hidden else []
        return "\n".join([*lines, *more, *rest])

    def _shown(self) -> list[str]:
        """The columns that are printed, and that a notebook shows."""
        return self.columns[:12]

    def _repr_html_(self) -> str:
        names = self._shown()
        columns = [self.column(name)[:SHOWN] for name in names]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{cell(v)}</td>" for v in row) + "</tr>" for row in zip(*columns))
        more = f"<p>and {len(self) - SHOWN} more rows</p>" if len(self) > SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def cell(value: Any) -> str:
    """A value as a cell of HTML."""
    return html.escape(plain(value))


def plain(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return str(value)
