"""The smallest limit that is enough."""

from __future__ import annotations

import html
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

from . import _refault, _svg, _words
from ._table import Table
from ._trace import Trace
from ._words import Path, Size

FLAGS = (
    "group",
    "target",
    "limit",
    "range",
    "resolution",
    "memcg_limits",
    "policy",
    "kernel",
    "seed",
    "scale",
    "threads",
    "memory",
    "swap_max",
    "swappiness",
    "via",
    *_words.READING,
)


class SizeResult:
    """The answer of ``refault size``, with every size that was tried.

    ``result`` is the object that ``--json`` prints (``docs/reference/size.md``).
    """

    def __init__(self, text: str) -> None:
        self.result: dict[str, Any] = json.loads(text)

    @property
    def answer_bytes(self) -> int | None:
        """The smallest size that meets the target, in bytes; none: not even the largest does."""
        return self.result["answer_bytes"]

    @property
    def points(self) -> Table:
        """Every size that was tried, as a table."""
        return Table([json.dumps(point) for point in self.result["points"]])

    def __repr__(self) -> str:
        return f"<refault.SizeResult: {self.answer_bytes} bytes>"

    def _repr_html_(self) -> str:
        line = [(p["bytes"] / (1 << 20), p["value"]) for p in self.result["points"] if p["value"] is not None]
        metric = self.result["metric"]
        picture = _svg.lines({metric: sorted(line)}, "limit, MiB", metric, y_percent=False)
        answer = "no size" if self.answer_bytes is None else f"{self.answer_bytes:,} bytes"
        return f"<p><b>{answer}</b> for {html.escape(self.result['target'])}</p>{picture}"


@contextmanager
def files(subjects: list[Trace | Path]) -> Iterator[list[str]]:
    """Every subject as a file; a trace that is none is written for as long."""
    with tempfile.TemporaryDirectory(prefix="refault-") as folder:
        names = []
        for n, subject in enumerate(subjects):
            if not isinstance(subject, Trace):
                names.append(_words.path(subject))
            elif subject.path is not None:
                names.append(subject.path)
            else:
                name = "".join(c if c.isalnum() or c in "-_" else "-" for c in subject.name) or "trace"
                (FilePath(folder) / str(n)).mkdir()
                file = FilePath(folder) / str(n) / f"{name}.parquet"
                subject.write(file)
                names.append(str(file))
        yield names


def size(
    subject: Trace | Path,
    target: str,
    *,
    group: str | None = None,
    limit: str = "max",
    range: str | None = None,
    resolution: Size | None = None,
    **settings: Any,
) -> SizeResult:
    """Finds the smallest limit of a memory cgroup that meets a target.

    ``subject`` is a scenario file, a trace or its file; ``target`` such as ``"hit_rate>95%"`` or
    ``"p99<5ms"``; ``group`` a path, needed for scenarios; ``limit`` is ``max``, ``high``, ``low`` or
    ``min``; ``range`` such as ``"64M..1G"`` and ``resolution`` a size. Settings are ``policy``,
    ``kernel``, ``seed``, ``scale``, ``threads``, ``memcg_limits``, and of traces ``memory``,
    ``swap_max``, ``swappiness``, ``via`` and the keys of ``--set``.
    """
    own = {"group": group, "target": target, "limit": limit, "range": range, "resolution": resolution}
    words = _words.flags({**settings, **own}, FLAGS) + _words.sets(settings, FLAGS)
    with files([subject]) as names:
        return SizeResult(_refault.size([*words, "--", *names]))
