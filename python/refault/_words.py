"""Settings of functions as texts, so that the library reads them, and errors are the command's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from os import PathLike, fspath
from typing import Any, Union

from . import _refault

Size = Union[str, int, float]
"""A size of memory: ``"512M"``, ``"4096p"``, ``"25%"``, bytes, or a share as a number with a point, ``0.25``."""

Sizes = Union[Size, Iterable[Size]]
Names = Union[str, Iterable[str]]
Path = Union[str, "PathLike[str]"]

READING = ("format", "raw_ids", "block_bytes", "page_size", "instructions")
"""How files are read."""

LOADING = ("via", "max_accesses")
"""What is made of them when they are read."""

ON = ("beyond_footprint", "page_by_page", "raw_ids", "instructions", "as_page_cache")
"""Settings that are on or off."""

FLAGS = (
    "kernel",
    "swap_max",
    "swap",
    "compression",
    "swappiness",
    "seed",
    "beyond_footprint",
    "page_by_page",
    "thp",
    "threads",
    "windows",
)
"""Settings of a replay that are flags of the command; all others are keys of ``--set``."""


def text(value: Any) -> str:
    """A value as the command line has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return text(value.item())
    raise TypeError(f"{value!r} is neither a text nor a number")


def size(value: Any) -> Any:
    """A size as the command line has it; a number with a point is a share, as in other simulators."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, float):
        if not 0 < value <= 1:
            raise ValueError(f"{value!r}: a size with a point is a share of all pages, above 0 and up to 1.0")
        return f"{(Decimal(repr(value)) * 100).normalize():f}%"
    return value


def sizes(value: Any) -> str | None:
    """One size or several as a text; nothing for ``None``."""
    if value is None or isinstance(value, (str, int, float)) or not hasattr(value, "__iter__"):
        return given(size(value))
    return listed([size(one) for one in value])


def check(function: str, names: Iterable[str], settings: Mapping[str, Any]) -> None:
    """Fails as Python does on keywords that a function does not have, with the nearest that it has."""
    known = [*names, *globals()["settings"]()]
    for name in settings:
        if name not in known:
            near = get_close_matches(name, known, 1, 0.6)
            meant = f"; did you mean {near[0]!r}?" if near else "; refault.settings() has those of --set"
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")


def listed(value: Any) -> str:
    """One value or several, separated by commas."""
    if isinstance(value, (str, int, float)):
        return text(value)
    if not hasattr(value, "__iter__"):
        raise TypeError(f"{value!r} is neither a text nor a number, nor a list of them")
    return ",".join(text(one) for one in value)


def given(value: Any) -> str | None:
    """One value or several as a text; nothing for ``None``."""
    return None if value is None else listed(value)


def texts(settings: Mapping[str, Any], names: Iterable[str]) -> dict[str, str | bool | None]:
    """Those of the settings that have these names, as texts and flags."""
    return {
        name: bool(settings.get(name)) if name in ON else given(settings.get(name)) for name in names
    }


def sets(settings: Mapping[str, Any], names: Iterable[str]) -> list[tuple[str, str]]:
    """All others, as keys of ``--set`` and their values."""
    known = set(names)
    return [(name, text(value)) for name, value in settings.items() if name not in known and value is not None]


def path(given: Path) -> str:
    """A path as a text; one that begins with a dash is no flag."""
    name = fspath(given)
    if isinstance(name, bytes):
        raise TypeError("a path is a text, not bytes")
    return name


def settings() -> dict[str, dict[str, str]]:
    """The keys of ``--set``: for each the ``values`` that it takes, and ``what`` it is."""
    return {key: {"values": values, "what": what} for key, values, what in _refault.settings()}
