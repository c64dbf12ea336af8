"""Machines in virtual time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import tomli_w

from . import _refault, _svg, _words
from ._table import Table
from ._words import Names, Path


class Scenario:
    """A machine, its groups and tasks, as ``docs/reference/scenario-keys.md`` has them."""

    def __init__(self, path: str | None, text: str) -> None:
        self._path, self._text = path, text

    @staticmethod
    def read(source: Path | Mapping[str, Any]) -> Scenario:
        """Reads a file, or a dictionary with the same keys; a mistake names its key."""
        if isinstance(source, Mapping):
            scenario = Scenario(None, _text(source))
        else:
            scenario = Scenario(_words.path(source), "")
        _refault.check_scenario(scenario._path, scenario._text)
        return scenario

    def run(
        self,
        *,
        policy: Names | None = None,
        seed: int | None = None,
        scale: float = 1.0,
        check: bool = False,
        threads: int | None = None,
    ) -> ScenarioResult:
        """Runs it under its own policy, or under others.

        ``scale`` divides sizes, amounts of work and times; ``check`` looks at every sample whether
        memory, requests, bytes and pressure add up.
        """
        settings = {"seed": seed, "scale": scale, "check": check, "threads": threads}
        policies = None if policy is None else _words.listed(policy)
        return ScenarioResult(*_refault.scenario(self._path, self._text, policies, settings))

    def __repr__(self) -> str:
        return f"<refault.Scenario {self._path or 'of a dictionary'}>"


class ScenarioResult:
    """What came of a scenario: a run for each policy.

    ``runs`` is the list that ``--json`` prints (``docs/reference/replay-scenario.md``).
    """

    def __init__(self, runs: Sequence[str], series: Sequence[str]) -> None:
        self.runs: list[dict[str, Any]] = [json.loads(run) for run in runs]
        self._series = series

    def _each(self, part: str) -> Table:
        rows = [{"scenario": run["scenario"], "policy": run["policy"], **one} for run in self.runs for one in run[part]]
        return Table([json.dumps(row) for row in rows])

    @property
    def tasks(self) -> Table:
        """A row for each task of each run; times in seconds, latencies in nanoseconds.

        The latency is a column for each of its values: ``mean_ns``, ``p50_ns``, ``p90_ns``, ``p99_ns``,
        ``p999_ns`` and ``max_ns``.
        """
        return Table([json.dumps(_flat(row)) for row in self._each("tasks").rows])

    @property
    def groups(self) -> Table:
        """A row for each memory cgroup of each run; sizes in pages unless the name says otherwise."""
        return self._each("groups")

    def series(self, run: int = 0) -> Table:
        """The time series of a run: a row for each sample."""
        return Table(csv=self._series[run])

    def __str__(self) -> str:
        return str(self.tasks)

    def __repr__(self) -> str:
        names = ", ".join(f"{run['scenario']} {run['policy']}" for run in self.runs)
        return f"<refault.ScenarioResult: {names}>"

    def _repr_html_(self) -> str:
        lines: dict[str, list[tuple[float, float]]] = {}
        for n, run in enumerate(self.runs):
            series = self.series(n)
            lines[run["policy"]] = list(zip(series.column("seconds"), series.column("free_pages")))
        picture = _svg.shown(lambda: _svg.lines(lines, "virtual seconds", "free pages", y_percent=False))
        return picture + self.tasks._repr_html_()


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a task with the values of its latency as values of their own."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "latency_ns" and isinstance(value, Mapping):
            flat.update({f"{key}_ns": one for key, one in value.items()})
        else:
            flat[name] = value
    return flat


def _text(keys: Mapping[str, Any]) -> str:
    """The keys of a dictionary as TOML."""
    return tomli_w.dumps({str(key): _plain(value) for key, value in keys.items()})


def _plain(value: Any) -> Any:
    """A value of a key with nothing in it but what TOML has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{value!r} cannot be in a scenario; texts, numbers, lists and dictionaries can")
