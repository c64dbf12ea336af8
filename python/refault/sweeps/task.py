"""What a worker does. Everything here is a function of its arguments, and can be done again."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path
from typing import Any

from .. import _refault
from .._replay import quiet
from .._trace import Trace
from . import fetch
from .own import Own
from .plan import Cell, Plan, classes
from .store import LEFT_OUT, UNREADABLE, Store

_lock = threading.Lock()
_kept: tuple[str, Trace] | None = None
"""The trace that was used last on this worker: its next task has it already."""

decoded: list[str] = []
"""The traces that this process has decoded, in order."""


def load(url: str, read: dict[str, Any], storage: dict[str, Any]) -> tuple[Trace, Path, str]:
    """The trace at a URL, its file here, and its stamp."""
    global _kept
    with _lock:
        for last in (False, False, True):
            name, _ = fetch.stamp(url, storage)
            key = json.dumps([name, read], sort_keys=True)
            try:
                path = fetch.fetch(url, storage, name)
                if _kept is None or _kept[0] != key:
                    # Two are never there at once.
                    _kept = None
                    _kept = (key, Trace.read(path, **read))
                    decoded.append(url)
                return _kept[1], path, name
            except FileNotFoundError:
                # Another worker took the copy away.
                if last:
                    raise
    raise AssertionError("the last turn returns or raises")


def survey(url: str, read: dict[str, Any], storage: dict[str, Any], out: str) -> dict[str, Any]:
    """What a trace holds, noted beside the results; or the error with which it cannot be read."""
    try:
        trace, path, name = load(url, read, storage)
        digest = fetch.digest(path)
    except Exception as e:
        # The rows of its cells say so.
        return unreadable(url, said(e))
    known = {
        "url": url,
        "digest": digest,
        "stamp": name,
        "name": name_of(url),
        "accesses": trace.accesses,
        "footprint_pages": trace.footprint_pages,
        "files": trace._inner.has_files,
        "error": None,
    }
    Store(out).put_survey(survey_name(name, read), known)
    return known


def unreadable(url: str, error: str) -> dict[str, Any]:
    """What is known of a trace that cannot be read: its place stands for its content."""
    digest = UNREADABLE + fetch.blake2b(url.encode(), digest_size=8).hexdigest()
    return {"url": url, "digest": digest, "error": error}


def survey_name(stamp: str, read: dict[str, Any]) -> str:
    """Where a survey is noted."""
    return fetch.blake2b(json.dumps([stamp, read], sort_keys=True).encode(), digest_size=16).hexdigest()


def name_of(url: str) -> str:
    """What tables call a trace: its file name, whatever a copy is called."""
    name = url.split("::")[0].rstrip("/").rsplit("/", 1)[-1]
    for end in (".zst", ".gz", ".xz", ".zip"):
        name = name.removesuffix(end)
    return name.rsplit(".", 1)[0] if "." in name[1:] else name


def said(e: BaseException) -> str:
    """An error in one line."""
    return f"{type(e).__name__}: {' '.join(str(e).split())}"


def run(
    known: dict[str, Any],
    cells: list[tuple[str, Cell]],
    read: dict[str, Any],
    storage: dict[str, Any],
    out: str,
    own: dict[str, Own],
    threads: int = 1,
) -> dict[str, int]:
    """Replays cells of a trace and writes their rows."""
    rows: list[dict[str, Any]] = []
    trace: Trace | None = None
    error = known["error"]
    if error is None:
        try:
            trace, _, stamp = load(known["url"], read, storage)
            if stamp != known["stamp"]:
                error = "ValueError: the trace has changed since the sweep looked at it; start it again"
        except Exception as e:
            error = said(e)
    for settings, group in itertools.groupby(cells, key=lambda named: named[1].settings):
        some = list(group)
        if error is not None or trace is None:
            rows += [failed(known, name, cell, error or "") for name, cell in some]
        else:
            rows += replay_cells(known, trace, some, json.loads(settings), own, threads)
    Store(out).write(known["digest"], rows)
    return {
        "cells": len(rows),
        "failed": sum(row["error"] is not None for row in rows),
        "accesses": sum(row.get("accesses") or 0 for row in rows),
    }


def begin(url: str, plan: Plan, cells: int) -> dict[str, Any]:
    """Surveys a trace and does the first of its cells that are missing, as it is here now."""
    known = survey(url, plan.read, plan.storage, plan.out)
    done = Store(plan.out).done(known["digest"])
    missing = ((name, cell) for name, cell in plan.named(known["digest"]) if name not in done)
    some = list(itertools.islice(missing, cells))
    counts = {"cells": 0, "failed": 0, "accesses": 0}
    if some:
        counts = run(known, some, plan.read, plan.storage, plan.out, plan.own)
    return {"known": known, "tried": [name for name, _ in some], "done": done, "counts": counts}


def replay_cells(
    known: dict[str, Any],
    trace: Trace,
    cells: list[tuple[str, Cell]],
    settings: dict[str, Any],
    own: dict[str, Own],
    threads: int,
) -> list[dict[str, Any]]:
    """The rows of cells that share their settings: together, and one by one if that fails."""
    by_size: dict[tuple[str, ...], list[str]] = {}
    for memory, group in itertools.groupby(cells, key=lambda named: named[1].memory):
        policies = tuple(cell.policy for _, cell in group)
        by_size.setdefault(policies, []).append(memory)
    names = {(cell.memory, cell.policy): (name, cell) for name, cell in cells}
    rows = []
    for policies, sizes in by_size.items():
        try:
            rows += together(known, trace, sizes, list(policies), settings, own, threads, names)
        except Exception:
            for memory, policy in itertools.product(sizes, policies):
                try:
                    rows += together(known, trace, [memory], [policy], settings, own, threads, names)
                except Exception as e:
                    rows.append(failed(known, *names[memory, policy], said(e)))
    return rows


def together(
    known: dict[str, Any],
    trace: Trace,
    sizes: list[str],
    policies: list[str],
    settings: dict[str, Any],
    own: dict[str, Own],
    threads: int,
    names: dict[tuple[str, str], tuple[str, Cell]],
) -> list[dict[str, Any]]:
    """The rows of sizes and policies in one pass over the trace."""
    # The sweep says it once if these have nothing to choose among.
    result = quiet(trace, sizes, classes(policies, own), {"threads": threads, **settings})
    columns = {name: result.column(name) for name in result.columns if name not in LEFT_OUT}
    rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
    found = {(row["memory_pages"], row["policy"]): row for row in rows}
    done = []
    # Two sizes may come to the same number of pages: they are one row of a replay, and two cells.
    for memory in sizes:
        pages = trace.pages(memory)
        for policy in policies:
            row = found[pages, policy]
            name, cell = names[memory, policy]
            done.append({**row, **beside(known, name, cell, None)})
    return done


def beside(known: dict[str, Any], name: str, cell: Cell, error: str | None) -> dict[str, Any]:
    """The columns beside those of a replay."""
    return {
        "cell": name,
        "url": known["url"],
        "trace": known.get("name", name_of(known["url"])),
        "digest": known["digest"],
        "asked_memory": cell.memory,
        "settings": cell.settings,
        "version": _refault.__version__,
        "code": cell.code,
        "error": error,
    }


def failed(known: dict[str, Any], name: str, cell: Cell, error: str) -> dict[str, Any]:
    """The row of a cell that ended with an error."""
    return {**beside(known, name, cell, error), "policy": cell.policy}
