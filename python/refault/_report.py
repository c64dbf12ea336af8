"""Results as a page of HTML."""

from __future__ import annotations

from typing import Any

from . import _refault, _words
from ._size import files
from ._trace import Trace
from ._words import Path

FLAGS = (
    "output",
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
    words = _words.flags({**settings, "output": path}, FLAGS)
    with files(list(inputs)) as names:
        _refault.report([*words, "--", *names])
    return path
