"""The smallest limit that is enough."""

from __future__ import annotations

import html
import json
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
    "swap",
    "compression",
    "swappiness",
    "via",
    "warm_up",
    "as_page_cache",
    *_words.READING,
)


class SizeResult:
    """The answer of ``refault size``, or a summary, with every size that was tried.

    ``result`` is the object that ``--json`` prints (``docs/reference/size.md``).
    """

    def __init__(self, text: str) -> None:
        self.result: dict[str, Any] = json.loads(text)

    @property
    def answer_bytes(self) -> int | None:
        """The smallest size that meets the target, in bytes; none: not even the largest does.

        Of a recording for which the lab is not to be trusted it is none, too, and so of a summary.
        """
        return self.result.get("answer_bytes")

    @property
    def certain_bytes(self) -> int | None:
        """The smallest size that meets the target whatever a recording leaves open."""
        return self.result.get("certain_bytes")

    @property
    def knee_bytes(self) -> int | None:
        """Of a summary the size up to which memory is worth its price."""
        return self.result.get("knee_bytes")

    @property
    def cut_bytes(self) -> int | None:
        """Of a summary the smallest size with at most 2 % more misses; none: nothing can be cut."""
        return self.result.get("cut_bytes")

    @property
    def points(self) -> Table:
        """Every size that was tried, as a table; ``low`` and ``high`` are the bounds of its ``value``."""
        return Table([json.dumps(point) for point in self.result["points"]])

    def to_pandas(self) -> Any:
        """The sizes that were tried as a DataFrame of pandas."""
        return self.points.to_pandas()

    def to_polars(self) -> Any:
        """The sizes that were tried as a DataFrame of Polars."""
        return self.points.to_polars()

    def __str__(self) -> str:
        return f"{self._answer()}\n{self.points}"

    def __repr__(self) -> str:
        return f"<refault.SizeResult: {self._answer()}>"

    def _answer(self) -> str:
        size, what = self.answer_bytes, ""
        if "target" not in self.result:
            size, what = self.knee_bytes, "worth their price: "
        return what + ("no size" if size is None else f"{size:,} bytes")

    def _repr_html_(self) -> str:
        line = [(p["bytes"] / (1 << 20), p["value"]) for p in self.result["points"] if p["value"] is not None]
        metric = self.result.get("metric", "misses")
        picture = _svg.shown(lambda: _svg.lines({metric: sorted(line)}, "limit, MiB", metric, y_percent=False))
        target = f" for {html.escape(self.result['target'])}" if "target" in self.result else ""
        return f"<p><b>{self._answer()}</b>{target}</p>{picture}"


def size(
    subject: Trace | Path,
    target: str | None = None,
    *,
    group: str | None = None,
    limit: str | None = None,
    range: str | None = None,
    resolution: Size | None = None,
    **settings: Any,
) -> SizeResult:
    """Finds the smallest limit of a memory cgroup that meets a target.

    ``subject`` is a scenario file, a trace or recording, or the file of one; ``target`` such as
    ``"hit_rate>95%"`` or ``"p99<5ms"``, without which a trace has a summary of its sizes;
    ``group`` a path, needed for scenarios; ``limit`` is ``max`` (the default), ``high``, ``low`` or ``min``;
    ``range`` such as ``"64M..1G"`` and ``resolution`` a size. Settings are ``policy``,
    ``kernel``, ``seed``, ``scale``, ``threads``, ``memcg_limits``, of traces ``memory``,
    ``swap_max``, ``swap``, ``compression``, ``swappiness``, ``via`` and the keys of ``--set``, ``as_page_cache`` of traces that lack hits,
    as of block devices, and of recordings ``warm_up``.
    """
    _words.check("size", FLAGS, settings)
    own = {"group": group, "target": target, "limit": limit, "range": range, "resolution": resolution}
    flags = {name: value for name, value in {**settings, **own}.items() if name in FLAGS}
    flags.update({name: _words.size(flags[name]) for name in ("memory", "resolution") if name in flags})
    texts = _words.texts(flags, FLAGS)
    given = [
        (name.replace("_", "-"), None if name in _words.ON else texts[name])
        for name in FLAGS
        if texts[name] not in (None, False)
    ]
    sets = _words.sets(settings, FLAGS)
    asked = {**texts, "set": sets, "given": given + [("set", "")] * bool(sets)}
    what = subject._inner if isinstance(subject, Trace) else _words.path(subject)
    return SizeResult(_refault.size(what, asked, _words.texts(flags, _words.READING)))
