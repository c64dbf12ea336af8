"""What a sweep asks for."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from .. import _refault, _words
from .._policy import Policy
from .._replay import quiet
from .._trace import Trace
from .own import Own, named, unique
from .own import given as own_class

TASK_CELLS = 64
"""Cells of a task at most: results are written, and a dead worker loses, so many at a time."""

KEYS = ("traces", "memory", "policy", "settings", "read", "storage", "out")


@dataclass(frozen=True)
class Cell:
    """One replay of a trace: a size, a policy, settings."""

    memory: str
    policy: str
    settings: str
    """JSON with sorted keys."""
    code: str | None = None
    """Of a policy that is a class: what it is made of."""


@dataclass
class Plan:
    """Traces by (memory, policy, settings): a table of cells that is not written out."""

    traces: list[str]
    """Paths, globs or URLs."""
    memory: list[str]
    policy: list[str]
    settings: dict[str, list[Any]] = field(default_factory=dict)
    """For each setting its values; all combinations are replayed."""
    read: dict[str, Any] = field(default_factory=dict)
    """How traces are read, as of ``Trace.read``."""
    storage: dict[str, Any] = field(default_factory=dict)
    """What ``fsspec`` is given for the traces, such as ``endpoint_url``."""
    out: str = "results/"
    own: dict[str, Own] = field(default_factory=dict)
    """The policies that are classes, by their names."""

    @staticmethod
    def of(
        traces: Any,
        memory: Any,
        policy: Any,
        settings: Mapping[str, Any] | None = None,
        read: Mapping[str, Any] | None = None,
        storage: Mapping[str, Any] | None = None,
        out: Any = "results/",
    ) -> Plan:
        """With single values where there may be several."""
        several = lambda given: [given] if isinstance(given, (str, int, float)) else list(given)
        policies, own = _policies(policy)
        plan = Plan(
            traces=[_words.path(trace) for trace in _paths(traces)],
            memory=_unique("memory", (size.strip() for size in (_words.sizes(memory) or "").split(","))),
            policy=policies,
            settings={name: several(values) for name, values in sorted((settings or {}).items())},
            read=dict(read or {}),
            storage=dict(storage or {}),
            out=_words.path(out),
            own=own,
        )
        plan.check()
        return plan

    @staticmethod
    def load(path: str) -> Plan:
        """From a file of TOML, or the JSON that ``--emit`` writes."""
        with open(path, "rb") as file:
            text = file.read().decode()
        try:
            given = json.loads(text) if path.endswith(".json") else _toml(text)
        except ValueError as e:
            raise ValueError(f"{path}: {e}") from None
        unknown = [key for key in given if key not in KEYS]
        if unknown:
            raise ValueError(f"{path}: unknown key {unknown[0]!r}; known are {', '.join(KEYS)}")
        missing = [key for key in ("traces", "memory", "policy") if key not in given]
        if missing:
            raise ValueError(f"{path}: {missing[0]} is missing")
        try:
            return Plan.of(**given)
        except (TypeError, ValueError) as e:
            raise ValueError(f"{path}: {e}") from None

    def dump(self) -> str:
        """As ``load`` reads it."""
        for one in self.own.values():
            if one.carried is not None:
                raise ValueError(f'policy {one.name}: is a class; a file names it as "{one.place}"')
        whole = {key: getattr(self, key) for key in KEYS}
        whole["policy"] = [self.own[name].place if name in self.own else name for name in self.policy]
        return json.dumps(whole)

    def check(self) -> None:
        """A mistake is known before anything runs: a plan is tried on a trace of two pages."""
        for name in self.read:
            if name not in (*_words.READING, *_words.LOADING):
                raise ValueError(f"read: {name!r} is not of Trace.read")
        if not self.traces:
            raise ValueError("traces: there are none")
        tiny = _tiny()
        policies = classes(self.policy, self.own)
        for variant in self.variants():
            quiet(tiny, "64p", policies, {**json.loads(variant), "beyond_footprint": True})
        for size in self.memory:
            if not size.endswith("%"):
                quiet(tiny, size, "opt", {"beyond_footprint": True})
            elif not 0 < float(size[:-1] or "nan") <= 100 and not self.settings.get("beyond_footprint"):
                raise ValueError(f"memory {size}: is not more than 0 and at most 100 %")

    def variants(self) -> Iterator[str]:
        """Every combination of settings, as JSON."""
        for values in itertools.product(*self.settings.values()):
            yield json.dumps(dict(zip(self.settings, values)), sort_keys=True)

    def cells(self) -> Iterator[Cell]:
        """The cells of a trace; those of a task share their settings, and then their sizes."""
        codes = {name: own.code for name, own in self.own.items()}
        for variant in self.variants():
            for memory in self.memory:
                for policy in self.policy:
                    yield Cell(memory, policy, variant, codes.get(policy))

    def cells_per_trace(self) -> int:
        """How many these are."""
        count = len(self.memory) * len(self.policy)
        for values in self.settings.values():
            count *= len(values)
        return count

    def named(self, digest: str) -> Iterator[tuple[str, Cell]]:
        """The cells of a trace with their names: a hash of what is asked, and of what answers."""
        asked = json.dumps([_refault.__version__, digest, self.read], sort_keys=True)
        of_trace = blake2b(asked.encode(), digest_size=16)
        for cell in self.cells():
            name = of_trace.copy()
            policy = cell.policy if cell.code is None else f"{cell.policy}@{cell.code}"
            name.update(f"\0{cell.memory}\0{policy}\0{cell.settings}".encode())
            yield name.hexdigest(), cell


def classes(policies: Iterable[str], own: Mapping[str, Own]) -> list[str | type[Policy]]:
    """Names, and classes where they stand for some."""
    return [own[name].resolve() if name in own else name for name in policies]


def _policies(given: Any) -> tuple[list[str], dict[str, Own]]:
    """Names; ``"module:Class"`` and classes by the names that rows have."""
    names: list[str] = []
    own: list[Own] = []
    for one in [given] if isinstance(given, (str, type)) else given:
        for part in one.split(",") if isinstance(one, str) else [one]:
            if isinstance(part, str) and ":" not in part:
                names += _as_rows(part)
            else:
                own.append(named(part.strip()) if isinstance(part, str) else own_class(part))
                names.append(own[-1].name)
    return _unique("policy", names), unique(own)


def _as_rows(name: str) -> list[str]:
    """What rows call it: ``all`` is several."""
    if name.strip() != "all":
        return [name.strip()]
    return quiet(_tiny(), "1p", "all", {"beyond_footprint": True}).column("policy")


def _tiny() -> Trace:
    """A trace of two pages, to try a plan on."""
    return Trace.from_numpy([0, 1], name="plan")


def _paths(given: Any) -> list[Any]:
    return [given] if isinstance(given, str) or hasattr(given, "__fspath__") else list(given)


def _unique(what: str, values: Iterable[str]) -> list[str]:
    every = list(dict.fromkeys(values))
    if not any(every):
        raise ValueError(f"{what}: there is none")
    return every


def _toml(text: str) -> dict[str, Any]:
    # Python 3.10 has it under the name of the package that it was before.
    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    return importlib.import_module(name).loads(text)


def local_path(url: str) -> str | None:
    """The path of a URL, or of a path, of this machine."""
    if "://" not in url and "::" not in url:
        return url
    return str(Path(url[len("file://") :])) if url.startswith("file://") else None
