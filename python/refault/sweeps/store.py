"""Results: a data set of Parquet, a folder for each trace, a file for each task.

A file is named by the cells that are in it, and is there whole or not at all, so two writers of the
same cells write the same file. Cells that two tasks had in common are told apart when they are read.
"""

from __future__ import annotations

import io
import json
import os
import uuid
from functools import cache
from hashlib import blake2b
from typing import Any

OWN = ("cell", "url", "asked_memory", "settings", "version", "code", "error")
"""Columns beside those of a replay."""

UNREADABLE = "unreadable-"
"""What the digest of a trace begins with whose content is not known."""

LEFT_OUT = ("config", "swap", "window_misses")
"""Columns of a replay that are not kept: ``settings`` says what was asked."""


class CannotWrite(OSError):
    """Results cannot be written: not the fault of a cell, so that it ends the sweep."""


@cache
def schema() -> Any:
    """The columns that every file has, of the same types."""
    import pyarrow as pa

    from .._replay import replay
    from .._trace import Trace

    row = pa.table(replay(Trace.from_numpy([0, 1]), "1p", "lru", beyond_footprint=True)).schema
    columns = [pa.field(name, pa.string()) for name in OWN]
    return pa.schema(columns + [field for field in row if field.name not in LEFT_OUT])


def read_file(file: Any, columns: list[str] | None = None) -> Any:
    """A file of it, read by this thread alone.

    Threads of Arrow that still hold a file of Python when a process ends abort it, and tasks are
    short: ``pq.read_table`` ended one process in ten so.
    """
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, pre_buffer=False).read(columns, use_threads=False)


class Store:
    """The data set at a path or URL."""

    def __init__(self, out: str, storage: dict[str, Any] | None = None) -> None:
        import fsspec

        self.out = out
        self._fs, self._root = fsspec.core.url_to_fs(out, **(storage or {}))
        self._root = self._root.rstrip("/")
        self._local = "file" in (self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,))

    def write(self, digest: str, rows: list[dict[str, Any]]) -> None:
        """Writes rows of one trace."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in schema()}
        more = sorted({name for row in rows for name in row} - set(columns) - {"digest"})
        columns.update((name, pa.array([row.get(name) for row in rows], pa.uint64())) for name in more)
        buffer = io.BytesIO()
        pq.write_table(pa.table(columns), buffer, compression="zstd")
        names = blake2b("\n".join(sorted(row["cell"] for row in rows)).encode(), digest_size=16).hexdigest()
        self._put(f"digest={digest}/{names}.parquet", buffer.getvalue())

    def _put(self, name: str, content: bytes) -> None:
        path = f"{self._root}/{name}"
        try:
            if not self._local:
                # An object store has an object whole or not at all.
                self._fs.pipe_file(path, content)
                return
            os.makedirs(os.path.dirname(path), exist_ok=True)
            part = f"{path}.{uuid.uuid4().hex}.part"
            try:
                with open(part, "wb") as file:
                    file.write(content)
                os.replace(part, path)
            finally:
                if os.path.exists(part):
                    os.unlink(part)
        except OSError as e:
            raise CannotWrite(f"{path}: cannot be written: {e.strerror or e}") from None

    def _files(self, folder: str) -> list[str]:
        try:
            # A listing may be older than the files.
            self._fs.invalidate_cache()
            return sorted(self._fs.glob(f"{self._root}/{folder}/*.parquet"))
        except FileNotFoundError:
            return []

    def done(self, digest: str) -> set[str]:
        """The cells of a trace that are there, without those that ended with an error."""
        cells: set[str] = set()
        for path in self._files(f"digest={digest}"):
            with self._fs.open(path, "rb") as file:
                table = read_file(file, ["cell", "error"])
            both = zip(table.column("cell").to_pylist(), table.column("error").to_pylist())
            cells.update(cell for cell, error in both if error is None)
        return cells

    def survey(self, name: str) -> dict[str, Any] | None:
        """What is known of the trace with that stamp."""
        try:
            return json.loads(self._fs.cat_file(f"{self._root}/_traces/{name}.json"))
        except FileNotFoundError:
            return None

    def put_survey(self, name: str, survey: dict[str, Any]) -> None:
        """Notes it."""
        self._put(f"_traces/{name}.json", json.dumps(survey).encode())

    def try_it(self) -> None:
        """An error now if nothing can be written later."""
        self._put("_traces/.tried", b"")

    def table(self, codes: dict[str, str] | None = None) -> Any:
        """All rows, each cell once, without errors that were mended: a table of pyarrow in the order
        of trace, settings, size, policy. Of policies that are classes, those with these codes."""
        import pyarrow as pa

        tables = []
        for path in self._files("digest=*"):
            with self._fs.open(path, "rb") as file:
                table = read_file(file)
            digest = path.rsplit("/", 2)[-2].removeprefix("digest=")
            tables.append(table.append_column("digest", pa.array([digest] * len(table), pa.string())))
        if not tables:
            return schema().append(pa.field("digest", pa.string())).empty_table()
        whole = pa.concat_tables(tables, promote_options="default")
        cells, errors = whole.column("cell").to_pylist(), whole.column("error").to_pylist()
        chosen: dict[str, int] = {}
        for at, (cell, error) in enumerate(zip(cells, errors)):
            if cell not in chosen or (errors[chosen[cell]] is not None and error is None):
                chosen[cell] = at
        asked = list(zip(*(whole.column(name).to_pylist() for name in ("url", "asked_memory", "policy", "settings"))))
        unreadable = [digest.startswith(UNREADABLE) for digest in whole.column("digest").to_pylist()]
        read = {asked[at] for at in chosen.values() if not unreadable[at]}
        # A trace that could not be read had no content to name its cells by: now they have other names.
        left = sorted(at for at in chosen.values() if not unreadable[at] or asked[at] not in read)
        if codes:
            of = list(zip(whole.column("policy").to_pylist(), whole.column("code").to_pylist()))
            left = [at for at in left if codes.get(of[at][0], of[at][1]) == of[at][1]]
        once = whole.take(pa.array(left, pa.int64()))
        keys = ["trace", "digest", "settings", "memory_pages", "asked_memory", "policy"]
        return once.sort_by([(key, "ascending") for key in keys])
