"""Policies of a sweep that are classes: found here, and again on workers.

One that a plan names as ``"module:Class"`` is imported wherever it runs. One that was given as a
class goes to workers with its module, which they need not have. Cells are named by the text of the
module that it is in, so that a class that was changed is another policy.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from .._policy import Policy


@dataclass(frozen=True)
class Own:
    """A class as a policy of a plan."""

    name: str
    """What rows call it."""
    place: str
    """``module:Class``."""
    code: str
    """A hash of the text that it is made of."""
    carried: bytes | None = None
    """The class itself, for workers that cannot import it; none: they can."""

    def resolve(self) -> type[Policy]:
        """The class, on the machine that is to run it."""
        if self.carried is not None:
            import cloudpickle

            carried: type[Policy] = cloudpickle.loads(self.carried)
            return carried
        found = imported(self.place)
        if code(found) != self.code:
            raise ValueError(f"{self.place}: is not the same here as where the sweep was started")
        return found


def named(place: str) -> Own:
    """One that a plan names."""
    found = imported(place)
    return Own(found.name, place, code(found))


def given(one: type[Policy]) -> Own:
    """One that was given as a class."""
    if not (isinstance(one, type) and issubclass(one, Policy) and one is not Policy):
        called = one.__name__ if isinstance(one, type) else type(one).__name__
        raise TypeError(f"policy {called}: is neither a name nor a class derived from refault.Policy")
    return Own(one.name, f"{one.__module__}:{one.__qualname__}", code(one), carried(one))


def imported(place: str) -> type[Policy]:
    """The class that ``module:Class`` names."""
    module, _, path = place.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError, ValueError) as e:
        raise ValueError(f"policy {place}: cannot be imported: {e}") from None
    if not (isinstance(found, type) and issubclass(found, Policy) and found is not Policy):
        raise ValueError(f"policy {place}: is no class derived from refault.Policy")
    return found


def code(one: type[Policy]) -> str:
    """A hash of the files of the class and of those that it is derived from; of what was typed into
    a notebook, of their texts."""
    texts = []
    for each in one.__mro__:
        if each is Policy:
            break
        try:
            module = sys.modules.get(each.__module__)
            in_a_file = module is not None and getattr(module, "__file__", None) is not None
            texts.append(inspect.getsource(module) if module is not None and in_a_file else inspect.getsource(each))
        except (OSError, TypeError):
            raise ValueError(
                f"policy {each.__qualname__}: its text is not to be found; write the class into a file or a cell"
            ) from None
    return blake2b("\0".join([one.__qualname__, *texts]).encode(), digest_size=16).hexdigest()


def carried(one: type[Policy]) -> bytes:
    """The class with what it uses of its module."""
    import cloudpickle

    # Otherwise the bytes are the name of the module alone, which only this machine may have.
    modules = {
        each.__module__: sys.modules[each.__module__]
        for each in one.__mro__[: one.__mro__.index(Policy)]
        if each.__module__ in sys.modules
        and each.__module__ != "__main__"
        and each.__module__ not in cloudpickle.list_registry_pickle_by_value()
    }
    for module in modules.values():
        cloudpickle.register_pickle_by_value(module)
    try:
        whole: bytes = cloudpickle.dumps(one)
        return whole
    finally:
        for module in modules.values():
            cloudpickle.unregister_pickle_by_value(module)


def unique(every: Iterable[Own]) -> dict[str, Own]:
    """By the name that rows have; two of one name would be one row."""
    found: dict[str, Own] = {}
    for own in every:
        other = found.setdefault(own.name, own)
        if (other.place, other.code) != (own.place, own.code):
            raise ValueError(f'policy: "{own.name}": is the name of two')
    return found
