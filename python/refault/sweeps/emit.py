"""Tasks as plain commands, for a queue that is not Dask."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from . import fetch, task
from .plan import TASK_CELLS, Plan
from .run import estimate_unread
from .store import Store


def chunks(plan: Plan) -> int:
    """Tasks of each trace."""
    return -(-plan.cells_per_trace() // TASK_CELLS)


def tasks(plan: Plan, plan_file: str) -> Iterator[tuple[str, int]]:
    """The command of each task, and the bytes of memory that it takes."""
    begin = f"{shlex.quote(sys.executable)} -m refault.sweep {shlex.quote(os.path.abspath(plan_file))}"
    each = chunks(plan)
    for n, url in enumerate(plan.traces):
        try:
            size = fetch.stamp(url, plan.storage)[1]
        except Exception:
            # Its rows will say what is wrong with it.
            size = 0
        for chunk in range(each):
            yield f"{begin} --task {n * each + chunk}", estimate_unread(size)


def emit(plan: Plan, to: str) -> int:
    """Writes them, in the form that the name of the file asks for; gives how many."""
    whole = replace(plan, traces=fetch.expand(plan), out=plan.out if "://" in plan.out else os.path.abspath(plan.out))
    plan_file = f"{to}.plan.json"
    Path(plan_file).write_text(whole.dump())
    write = {".sh": slurm, ".toml": hyperqueue}.get(Path(to).suffix, plain)
    return write(tasks(whole, plan_file), to)


def plain(every: Iterator[tuple[str, int]], to: str) -> int:
    """A line each, with its memory in a comment: for GNU parallel, or a shell."""
    count = 0
    with open(to, "w") as file:
        for command, needed in every:
            file.write(f"{command}  # memory={-(-needed >> 20)}M\n")
            count += 1
    return count


def slurm(every: Iterator[tuple[str, int]], to: str) -> int:
    """An array for each size of memory, a power of two: the tasks of an array share what they ask for."""
    sizes: dict[int, list[str]] = defaultdict(list)
    for command, needed in every:
        sizes[1 << (-(-needed >> 20) - 1).bit_length()].append(command)
    lines = ["#!/bin/sh", "# Submits an array of Slurm for each size of memory: run it, or read it.", "set -e"]
    for megabytes, commands in sorted(sizes.items()):
        listed = f"{os.path.abspath(to)}.{megabytes}M.txt"
        Path(listed).write_text("".join(f"{command}\n" for command in commands))
        line = f'sh -c "$(sed -n "${{SLURM_ARRAY_TASK_ID}}p" {shlex.quote(listed)})"'
        lines.append(
            f"sbatch --array=1-{len(commands)} --mem={megabytes}M --cpus-per-task=1 --wrap={shlex.quote(line)}"
        )
    Path(to).write_text("\n".join(lines) + "\n")
    return sum(map(len, sizes.values()))


def hyperqueue(every: Iterator[tuple[str, int]], to: str) -> int:
    """A job file of HyperQueue: each task asks for its memory, in MiB."""
    count = 0
    with open(to, "w") as file:
        file.write('name = "refault-sweep"\n')
        for n, (command, needed) in enumerate(every):
            words = json.dumps(shlex.split(command))
            asked = f'{{ "cpus" = "1", "mem" = {-(-needed >> 20)} }}'
            file.write(f"[[task]]\nid = {n}\ncommand = {words}\n[[task.request]]\nresources = {asked}\n")
            count += 1
    return count


def run_task(plan: Plan, number: int, threads: int) -> dict[str, int]:
    """Does what is missing of a task."""
    each = chunks(plan)
    n, chunk = divmod(number, each)
    if not 0 <= n < len(plan.traces):
        raise ValueError(f"--task {number}: is not one of the plan, which has {len(plan.traces) * each}")
    store = Store(plan.out)
    known = task.survey(plan.traces[n], plan.read, plan.storage, plan.out)
    done = store.done(known["digest"])
    of_task = itertools.islice(plan.named(known["digest"]), chunk * TASK_CELLS, (chunk + 1) * TASK_CELLS)
    missing = [(name, cell) for name, cell in of_task if name not in done]
    if not missing:
        return {"cells": 0, "failed": 0, "accesses": 0}
    return task.run(known, missing, plan.read, plan.storage, plan.out, plan.own, threads)
