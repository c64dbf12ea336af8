"""Replays of traces."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _policy, _refault, _svg, _words
from ._policy import Policies
from ._table import Table
from ._trace import Trace
from ._words import Path, Sizes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Settings


class ReplayResult(Table):
    """The rows of a replay, one for each size and policy, with the columns of ``--json``.

    Counters and sizes at the end are columns under their kernel names; events are
    ``memory.events.*`` and ``memory.swap.events.*``; ``config`` and ``swap`` are JSON. ``opt`` has
    no counters: they are null. A notebook shows the hit rate against memory.
    """

    def __init__(self, rows: Sequence[str], bits: Sequence[Any]) -> None:
        super().__init__(rows)
        self._bits = bits

    def miss_bits(self, row: int = 0, *, packed: bool = False) -> np.ndarray:
        """Which accesses of a row missed, in the order of the trace: an array of bool.

        ``packed`` gives the bits as they are, 8 accesses a byte, the least significant first,
        without a copy. The replay must have been asked for them by ``miss_bits=True``.
        """
        bits = self._bits[row]
        if bits is None:
            raise ValueError("no miss bits were kept; replay with miss_bits=True")
        if packed:
            return bits
        return np.unpackbits(bits, count=self.rows[row]["trace_accesses"], bitorder="little").view(np.bool_)

    def _shown(self) -> list[str]:
        return ["trace", "policy", "memory_bytes", "memory_pages", "accesses", "hits", "misses", "hit_rate", "oom_at"]

    def curve_svg(self) -> str:
        """Hit rate against memory as a picture, a line for each trace and policy; wants matplotlib."""
        traces = {row["trace"] for row in self.rows}
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in self.rows:
            name = row["policy"] if len(traces) == 1 else f"{row['trace']} {row['policy']}"
            lines.setdefault(name, []).append((row["memory_bytes"] / (1 << 20), row["hit_rate"]))
        return _svg.lines({name: sorted(line) for name, line in lines.items()}, "memory, MiB", "hit rate")

    def _repr_html_(self) -> str:
        return _svg.shown(self.curve_svg) + super()._repr_html_()


def replay(
    trace: Trace | Path,
    memory: Sizes | None = None,
    policy: Policies | None = None,
    *,
    miss_bits: bool = False,
    **settings: Unpack[Settings],
) -> ReplayResult:
    """Replays a trace at memory sizes under policies: a row for each.

    ``memory`` is one size or several, the ``memory.max`` of the group that the trace runs in: by
    default 10 %, 25 % and 50 % of its distinct pages; ``0.1`` is the first of these. ``policy`` is one or several, by default
    ``lru``, ``mglru`` and ``opt``: names (``lru``, ``lru-2013``, ``lru-none``, ``lru-shadow``,
    ``mglru``, ``mglru-shadow``, ``opt``, or ``all`` of these; those that are plug-ins, such as
    ``sieve``), or classes derived from ``refault.Policy``, whose rows come behind the others of a
    size. Of a recording the recorded machine is replayed, with its readahead, and limit, policy, kernel
    and swappiness that it had, unless they are given; ``page_by_page`` takes it for a trace like others.
    ``miss_bits`` keeps a bit an access.

    Settings are ``kernel``, ``swap_max`` (a size, or ``"max"``), ``swap`` (such as ``"zram:2G"``),
    ``compression`` (such as ``"ratio=3"``), ``swappiness`` (0 to 200),
    ``seed``, ``beyond_footprint``, ``thp`` (such as ``"64k=always"``), ``threads`` (all cores by
    default) and ``windows`` (misses in so many windows); all others are keys of ``--set``, which
    ``refault.settings()`` lists. Of a path also those of ``Trace.read``.

    The interpreter's lock is released meanwhile, and Ctrl-C ends it.
    """
    return _replay(trace, False, memory, policy, miss_bits, settings)


def curve(
    trace: Trace | Path,
    policy: Policies | None = None,
    memory: Sizes | None = None,
    **settings: Unpack[Settings],
) -> ReplayResult:
    """Hit rate against memory: a replay at 16 sizes from 2 % to 100 % of the distinct pages."""
    return _replay(trace, True, memory, policy, False, settings)


def quiet(trace: Trace, memory: Sizes, policy: Policies, settings: dict[str, Any]) -> ReplayResult:
    """``replay`` without warnings, for sweeps."""
    return _replay(trace, False, memory, policy, False, settings, warn=False)


def _replay(
    trace: Trace | Path,
    is_curve: bool,
    memory: Sizes | None,
    policy: Policies | None,
    miss_bits: bool,
    settings: Any,
    warn: bool = True,
) -> ReplayResult:
    known = (*_words.FLAGS, *_words.READING, *_words.LOADING)
    _words.check("curve" if is_curve else "replay", (*known, "memory", "policy", "miss_bits"), settings)
    of_file = {name: settings[name] for name in (*_words.READING, *_words.LOADING) if name in settings}
    if isinstance(trace, Trace):
        if of_file:
            raise TypeError(f"{next(iter(of_file))}: says how a file is read; give it to Trace.read")
    else:
        trace = Trace.read(trace, **of_file)
    named, classes = _policy.split(policy)
    idle = [] if trace._inner.has_files else _policy.of_files(named, classes)
    if idle and warn:
        warnings.warn(f"{trace.name}: {_policy.nothing_for(idle)}", stacklevel=3)
    asked = {
        **_words.texts(settings, _words.FLAGS),
        "memory": _words.sizes(memory),
        "policy": named,
        "curve": is_curve,
        "miss_bits": miss_bits,
        # A recording refuses it, as the command does.
        "via": _words.given(of_file.get("via")),
        "set": _words.sets(settings, known),
    }
    return ReplayResult(*_refault.replay(trace._inner, asked, classes))
