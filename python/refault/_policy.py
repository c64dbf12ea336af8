"""Policies of one's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Union

import numpy as np

from . import _refault, _words
from ._refault import Cache

ADDED, ACCESSED, EVICTED, REMOVED = range(4)
"""What happened to a folio: the numbers in ``hooks`` of ``Policy.batch``."""


class Policy:
    """A policy for pages of files, as a class: override what it needs, at least ``evict_folios``.

    ``refault.replay(trace, policy=["lru", MyPolicy])`` makes an object of the class for each size,
    without arguments, and calls it as the engine calls its own policies that are plug-ins, which
    have the form of cache_ext. A *folio* is one page of a file. Its number is from 0 to
    ``cache.folios - 1``, and stays its name while it is not in memory.

    Hooks come in batches: all that happened since the last call, before ``evict_folios``, and at
    the latest after 65,536 of them. Each call gets ``cache``, with ``limit`` (folios that the group
    may have), ``resident`` (folios of files that it has in memory) and ``folios`` (numbers are
    below this).

    An exception ends the replay, and is raised by it.
    """

    name: ClassVar[str]
    """What rows call the policy: the name of the class, unless it says otherwise."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def init(self, cache: Cache) -> None:
        """The policy begins, with nothing in memory."""

    def batch(self, cache: Cache, hooks: np.ndarray, folios: np.ndarray) -> None:
        """What happened since the last call, in order.

        ``folios`` (uint32) are the folios, ``hooks`` (uint8) say of each what happened to it:
        ``ADDED`` (0), ``ACCESSED`` (1), ``EVICTED`` (2) or ``REMOVED`` (3). This one calls the
        methods below, for each run of the same hook once. A policy that is to be fast overrides it.
        """
        ends = [*(np.flatnonzero(hooks[1:] != hooks[:-1]) + 1).tolist(), len(hooks)]
        begin = 0
        for end, hook in zip(ends, hooks[[end - 1 for end in ends]].tolist()):
            run = folios[begin:end]
            if hook == ADDED:
                self.folios_added(cache, run)
            elif hook == ACCESSED:
                self.folios_accessed(cache, run)
            else:
                self.folios_removed(cache, run, hook == EVICTED)
            begin = end

    def folios_added(self, cache: Cache, folios: np.ndarray) -> None:
        """These have come into the page cache, in this order."""

    def folios_accessed(self, cache: Cache, folios: np.ndarray) -> None:
        """These were read again, in this order; one may be there several times."""

    def folios_removed(self, cache: Cache, folios: np.ndarray, evicted: bool) -> None:
        """These have left memory: reclaim took them (``evicted``), or they were truncated or dropped."""

    def evict_folios(self, cache: Cache, n: int) -> Iterable[int]:
        """Which ``n`` folios should go, the first one first: a list, an array, a generator.

        What is beyond ``n`` is not looked at. Those that are not in memory, or cannot go now, are
        passed over; if none is left, the kernel's own lists say what goes. The policy learns what
        became of them by ``folios_removed``.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no evict_folios; a policy needs one")


Policies = Union[str, type[Policy], Iterable[Union[str, type[Policy]]]]
"""Policies by name, or as classes."""


def split(given: Policies | None) -> tuple[str | None, list[tuple[str, type[Policy]]]]:
    """Those that are named, separated by commas, and the classes with their names."""
    if given is None:
        return None, []
    every: list[Any] = list(given) if isinstance(given, Iterable) and not isinstance(given, (str, type)) else [given]
    classes: list[Any] = [one for one in every if isinstance(one, type)]
    for one in classes:
        if not issubclass(one, Policy):
            raise TypeError(f"{one.__name__}: is no policy; derive it from refault.Policy")
        if one is Policy:
            raise TypeError("refault.Policy: has no evict_folios; derive a class from it")
    for one in every:
        if isinstance(one, Policy):
            raise TypeError(f"{type(one).__name__}: give the class, not an object of it; each size gets its own")
    named = [one for one in every if not isinstance(one, type)]
    names = _words.listed(named) if named or not classes else None
    return names, [(one.name, one) for one in classes]


def of_files(names: str | None, classes: Iterable[tuple[str, type[Policy]]]) -> list[str]:
    """Those of ``split`` that choose among pages of files alone: plug-ins of refault, and classes."""
    named = [name.strip() for name in (names or "").split(",")]
    plug_ins = set(_refault.plug_ins())
    return [*dict.fromkeys(name for name in named if name in plug_ins), *(name for name, _ in classes)]


def nothing_for(names: Iterable[str]) -> str:
    """What the command notes of a trace without files."""
    return f"has no pages of files for {', '.join(names)} to choose among; their rows are those of lru"
