"""Traces of page accesses."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from . import _refault, _words
from ._words import Path, Size


class Trace:
    """A trace of page accesses in memory: 4 bytes an access, ready for any number of replays.

    Made by ``read``, ``from_numpy``, ``from_arrow`` and ``generate``.
    """

    def __init__(self, inner: _refault.Trace, loading: dict[str, Any] | None = None) -> None:
        self._inner = inner
        self._loading = loading or {}
        # The file of a trace that was unpickled, which goes with it.
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __reduce__(self) -> Any:
        """Pickles the accesses, so that another process or machine needs no file of this one."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.parquet")
            self.write(path)
            with open(path, "rb") as file:
                return _unpickled, (file.read(), self.name, self._loading)

    @staticmethod
    def read(
        path: Path,
        *,
        via: Literal["fd", "map"] = "fd",
        max_accesses: int | None = None,
        format: str | None = None,
        page_size: int | None = None,
        block_bytes: int | None = None,
        raw_ids: bool = False,
        instructions: bool = False,
    ) -> Trace:
        """Reads a file of any format that ``refault trace info`` knows.

        ``via`` says how pages of files are touched where the trace does not: by descriptor or by
        mapping. ``max_accesses`` ends it early. ``format`` is seen by content if not given;
        ``page_size`` is in bytes, for formats of addresses and sectors; ``block_bytes`` for formats
        of blocks; ``raw_ids`` and ``instructions`` are as for the command.
        """
        reading = _words.texts(
            {
                "format": format,
                "page_size": page_size,
                "block_bytes": block_bytes,
                "raw_ids": raw_ids,
                "instructions": instructions,
            },
            _words.READING,
        )
        loading = _words.texts({"via": via, "max_accesses": max_accesses}, _words.LOADING)
        return Trace(_refault.Trace.read_file(_words.path(path), reading, loading), {"via": via, "max_accesses": max_accesses})

    @staticmethod
    def from_numpy(
        pages: Any,
        writes: Any = None,
        *,
        objects: Any = None,
        object_names: Sequence[str | tuple[str, str]] | None = None,
        tasks: Any = None,
        time_ns: Any = None,
        kind: Literal["file", "anon"] = "file",
        via: Literal["fd", "map"] = "fd",
        page_size: int = 4096,
        name: str = "array",
        max_accesses: int | None = None,
    ) -> Trace:
        """Takes arrays of whole numbers, one entry an access.

        ``pages`` are page numbers from 0 to 2**64 - 2, in any order; ``writes`` is true for a
        write; ``objects`` is the number of the file or region that the page is of, an index into
        ``object_names``, each a name, or a name and ``"file"`` or ``"anon"``; without names all are
        of ``kind``. ``tasks`` are numbers, too, and ``time_ns`` nanoseconds since the start.
        ``page_size`` is in bytes. Arrays may have strides; they are read once, in pieces, and the
        trace is the only copy.
        """
        if pages is None:
            raise TypeError("pages: is None, not an array")
        pages = _array("pages", pages, None)
        writes = _array("writes", writes, len(pages))
        objects = _array("objects", objects, len(pages))
        tasks = _array("tasks", tasks, len(pages))
        time_ns = _array("time_ns", time_ns, len(pages))
        count = int(objects.max()) + 1 if objects is not None and len(objects) else 1
        names = _names(object_names, count, kind, name)
        given = _given(name, page_size, via, names, max_accesses)
        return Trace(_refault.Trace.of_arrays([pages, writes, objects, tasks, time_ns], given))

    @staticmethod
    def from_arrow(
        table: Any,
        *,
        object_names: Sequence[str | tuple[str, str]] | None = None,
        kind: Literal["file", "anon"] = "file",
        via: Literal["fd", "map"] = "fd",
        page_size: int = 4096,
        name: str = "table",
        max_accesses: int | None = None,
    ) -> Trace:
        """Takes a table, or a stream of batches, of anything with the Arrow PyCapsule interface.

        Its columns are those of the native format, of whole numbers without nulls: ``page``, and if
        there are ``pages`` (how many in a row), ``write`` or ``op`` (as in the native format, 0 to
        5), ``object``, ``task``, ``time_ns``. The other arguments are as of ``from_numpy``.
        """
        names = _names(object_names, 1, kind, name)
        return Trace(_refault.Trace.of_arrow(table, _given(name, page_size, via, names, max_accesses)))

    @staticmethod
    def generate(
        phases: str | Iterable[str], *, seed: int = 1, via: Literal["fd", "map"] = "fd", max_accesses: int | None = None
    ) -> Trace:
        """Generates a workload, as ``refault trace generate`` does.

        A phase is ``"ACCESSES: STREAM; STREAM"``, a stream ``OBJECT:PATTERN:PAGES[:KEY=VALUE,...]``,
        such as ``"100000: db:zipf:4096:skew=0.9; log:seq:20000"``. The same seed gives the same
        trace on every machine.
        """
        every = [phases] if isinstance(phases, str) else list(phases)
        if not every:
            raise ValueError("no phase given; a workload has one at least")
        loading = _words.texts({"via": via, "max_accesses": max_accesses}, _words.LOADING)
        return Trace(_refault.Trace.of_workload(every, seed, loading), {"via": via, "max_accesses": max_accesses})

    def info(self) -> dict[str, Any]:
        """What it holds, as ``refault trace info --json``: accesses, distinct pages, objects, ..."""
        return json.loads(self._inner.summary())

    def write(self, path: Path) -> None:
        """Writes it in the native format (Parquet with zstd), whole or not at all."""
        self._inner.write_file(_words.path(path))

    def pages(self, size: Size) -> int:
        """A size of memory in pages, as a replay takes it: shares to the nearest, bytes rounded down."""
        return self._inner.pages(_words.text(_words.size(size)))

    @property
    def name(self) -> str:
        """What tables call it."""
        return self._inner.name

    @property
    def path(self) -> str | None:
        """The file that it was read from."""
        path = None if self._folder else self._inner.path
        return None if path is None else str(path)

    @property
    def page_size(self) -> int:
        """Bytes a page."""
        return self._inner.page_size

    @property
    def accesses(self) -> int:
        """The number of accesses."""
        return self._inner.accesses

    @property
    def footprint_pages(self) -> int:
        """Pages that are touched at all: 100 % of memory sizes."""
        return self._inner.footprint_pages

    @property
    def footprint_bytes(self) -> int:
        """The same in bytes."""
        return self.footprint_pages * self.page_size

    def __len__(self) -> int:
        return self.accesses

    def __repr__(self) -> str:
        return f"<refault.Trace {self.name!r}: {self.accesses:,} accesses to {self.footprint_pages:,} pages>"


def _unpickled(data: bytes, name: str, loading: dict[str, Any]) -> Trace:
    """A trace of the bytes of its file, which is kept as long as it is."""
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, name.replace("/", "_") + ".parquet")
    with open(path, "wb") as file:
        file.write(data)
    trace = Trace.read(path, **loading)
    trace._folder = folder
    return trace


def _array(name: str, given: Any, length: int | None) -> Any:
    """An array as it can be read where it is; without a copy unless it must be one."""
    if given is None:
        return None
    array = np.asarray(given)
    if array.size == 0 and array.dtype.kind == "f":
        # An empty list has no numbers that could say what they are.
        array = array.astype(np.uint64)
    if array.dtype.kind not in "iub":
        raise TypeError(f"{name}: is of type {array.dtype}, not of whole numbers")
    if array.ndim != 1:
        raise ValueError(f"{name}: has {array.ndim} dimensions, not one")
    if length is not None and len(array) != length:
        raise ValueError(f"{name}: has {len(array)} entries, and pages has {length}")
    if not array.dtype.isnative or not array.flags.aligned:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def _names(given: Sequence[str | tuple[str, str]] | None, count: int, kind: str, name: str) -> list[tuple[str, str]]:
    """Objects with their names and kinds."""
    if given is None:
        if count > 1 << 22:
            raise ValueError(f"objects: {count} are too many; at most {1 << 22} are possible")
        return [(name, kind)] if count == 1 else [(f"{name}.{n}", kind) for n in range(count)]
    named = [(one, kind) if isinstance(one, str) else (one[0], one[1]) for one in given]
    if not named:
        raise ValueError("object_names: is empty; a trace has one object at least")
    return named


def _given(
    name: str, page_size: int, via: str, objects: list[tuple[str, str]], max_accesses: int | None
) -> dict[str, Any]:
    if via not in ("fd", "map"):
        raise ValueError(f"via: {via!r} is neither fd nor map")
    if page_size < 512 or page_size > 2 << 20 or page_size & (page_size - 1):
        raise ValueError(f"page size {page_size}: is not a power of two from 512 to 2097152")
    if max_accesses is not None and max_accesses < 1:
        raise ValueError(f"max_accesses: {max_accesses} is not 1 or more")
    return {"name": name, "page_size": page_size, "via": via, "objects": objects, "max_accesses": max_accesses}
