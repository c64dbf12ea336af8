"""Results as a page of HTML."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from . import _refault, _words
from ._trace import Trace
from ._words import Path

FLAGS = (
    "limit",
    "at",
    "memory",
    "policy",
    "swap_max",
    "via",
    "seed",
    "max_accesses",
    "scale",
    "threads",
    *_words.READING,
)


def report(*inputs: Trace | Path, output: Path = "report.html", **settings: Any) -> str:
    """Writes a page of HTML on inputs: how much memory is enough, which policy, who, when.

    Inputs are traces, scenarios, JSON of the command, or older pages; several stand beside each
    other. Settings are ``limit``, ``at`` and ``memory`` (sizes), ``policy``, ``swap_max``, ``via``,
    ``seed``, ``max_accesses``, ``scale`` and ``threads``, as of ``refault report``. Gives the path.
    """
    unknown = [name for name in settings if name not in FLAGS]
    if unknown:
        raise TypeError(f"report() has no setting {unknown[0]!r}; it has {', '.join(FLAGS)}")
    if not inputs:
        raise ValueError("no input given; name at least one")
    path = _words.path(output)
    given = [name.replace("_", "-") for name in FLAGS if settings.get(name) not in (None, False)]
    asked = {**_words.texts(settings, FLAGS), "given": given}
    _refault.report([_input(one) for one in inputs], path, asked, _words.texts(settings, _words.READING))
    return path


def _input(given: Trace | Path) -> Any:
    """A trace with the name that its pages have, or a path."""
    if not isinstance(given, Trace):
        return _words.path(given)
    if given.path is not None:
        return given._inner, FilePath(given.path).name
    return given._inner, "".join(c if c.isalnum() or c in "-_" else "-" for c in given.name) or "trace"
