"""What Linux's page reclaim would do with a trace of page accesses.

``Trace`` holds a trace, ``replay`` replays it at memory sizes under policies, ``curve`` at many
sizes, ``size`` finds the smallest size that is enough. ``Scenario`` is a machine in virtual time,
``bench`` runs the published benchmarks, ``report`` writes results as a page of HTML, and ``sweep``
replays many traces on many machines. ``Policy`` is what a policy of one's own is derived from.
``docs/reference/python.md`` says more.

Sizes of memory are texts, ``"512M"`` (powers of 1024), ``"4096p"`` (pages), ``"25%"`` (of the
distinct pages of the trace), or a number of bytes.

A mistake is a ``ValueError`` with the text of the command's own line; what the system refuses is an
``OSError``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._refault import __version__

if TYPE_CHECKING:
    from ._bench import BenchResult, bench
    from ._policy import Policy
    from ._refault import Cache
    from ._replay import ReplayResult, curve, replay
    from ._report import report
    from ._scenario import Scenario, ScenarioResult
    from ._size import SizeResult, size
    from ._table import Table
    from ._trace import Trace
    from ._words import settings
    from .sweeps import Plan, Sweep, sweep

__all__ = [
    "BenchResult",
    "Cache",
    "ReplayResult",
    "Scenario",
    "ScenarioResult",
    "Plan",
    "Policy",
    "SizeResult",
    "Sweep",
    "Table",
    "Trace",
    "__version__",
    "bench",
    "curve",
    "replay",
    "report",
    "settings",
    "size",
    "sweep",
]

# Where names are from. Modules are imported when one of theirs is asked for: the command takes none, nor numpy.
_MODULES = {
    "_bench": ("BenchResult", "bench"),
    "_policy": ("Policy",),
    "_refault": ("Cache",),
    "_replay": ("ReplayResult", "curve", "replay"),
    "_report": ("report",),
    "_scenario": ("Scenario", "ScenarioResult"),
    "_size": ("SizeResult", "size"),
    "_table": ("Table",),
    "_trace": ("Trace",),
    "_words": ("settings",),
    "sweeps": ("Plan", "Sweep", "sweep"),
}

if not TYPE_CHECKING:

    def __getattr__(name):
        module = next((module for module, names in _MODULES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{module}", __name__), name)
        globals()[name] = value
        return value


def __dir__():
    return sorted({*globals(), *__all__})
