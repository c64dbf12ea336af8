"""Policies that are classes: equal to those of the engine, and harmless when they are wrong."""

from __future__ import annotations

import importlib.util
import threading
import warnings

import numpy as np
import pytest
from conftest import ROOT

import refault

ZIPF = "60000: files:zipf:3000:skew=0.8,weight=9; scan:seq:3000"


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "python" / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def zipf():
    return refault.Trace.generate(ZIPF)


class Fifo(refault.Policy):
    """First in, first out."""

    def init(self, cache):
        self.order = {}

    def folios_added(self, cache, folios):
        self.order.update(dict.fromkeys(folios.tolist()))

    def folios_removed(self, cache, folios, evicted):
        for folio in folios.tolist():
            del self.order[folio]

    def evict_folios(self, cache, n):
        return iter(self.order)


def test_the_how_to_page_shows_what_its_class_does(capsys):
    page = (ROOT / "docs" / "how-to" / "write-a-policy.md").read_text()
    code, shown = (page.split(f"```{kind}\n")[1].split("```")[0] for kind in ("python", "text"))
    exec(code, {"__name__": "page"})
    assert capsys.readouterr().out == shown


def figures(row):
    return {name: value for name, value in row.items() if name not in ("policy", "maccesses_per_s")}


@pytest.mark.parametrize(("name", "own"), [("sieve", "Sieve"), ("mru", "Mru")])
def test_examples_are_the_policies_of_the_engine(zipf, name, own):
    cls = getattr(example(name), own)
    search = refault.Trace.generate("12000: files:loop:1200")
    for trace in (zipf, search):
        result = refault.replay(trace, ["10%", "40%", "70%"], [name, cls], miss_bits=True)
        for n in range(0, 6, 2):
            theirs, ours = result.rows[n : n + 2]
            assert ours["policy"] == cls.name and theirs["policy"] == name
            assert figures(ours) == figures(theirs)
            assert (result.miss_bits(n) == result.miss_bits(n + 1)).all()
            assert ours["counters"]["pgsteal_file"] > 0


def test_fifo_is_fifo_under_other_conditions(zipf):
    conditions = [{"batch_folios": 0, "swap_cluster_max": 1}, {"kernel": "6.1"}, {"charge_kernel": False}]
    for settings in conditions:
        theirs, ours = refault.replay(zipf, "30%", ["fifo", Fifo], **settings).rows
        assert figures(ours) == figures(theirs), settings


def test_hooks_come_in_order_and_in_batches():
    class Watches(Fifo):
        """Notes what it is told."""

        told = []

        def batch(self, cache, hooks, folios):
            assert hooks.dtype == np.uint8 and folios.dtype == np.uint32
            assert 0 < len(hooks) == len(folios) <= 1 << 16
            assert folios.max() < cache.folios == 2000
            self.told.append((hooks, folios))
            super().batch(cache, hooks, folios)

        def evict_folios(self, cache, n):
            assert len(self.order) == cache.resident
            assert 1 <= n <= 32 and cache.resident <= cache.limit == 1000
            return super().evict_folios(cache, n)

    pages = np.concatenate([np.tile(np.arange(500), 400), np.arange(500, 2000)])
    row = refault.replay(refault.Trace.from_numpy(pages), "50%", Watches).rows[0]
    hooks, folios = (np.concatenate(parts) for parts in zip(*Watches.told))
    added, accessed, evicted = (np.count_nonzero(hooks == hook) for hook in (0, 1, 2))
    assert len(Watches.told[0][0]) == 1 << 16
    # Nobody asks about events behind the last eviction.
    assert 1900 < added <= row["misses"] == 2000
    assert accessed == row["hits"] == 500 * 399
    assert evicted <= row["counters"]["pgsteal_file"] < evicted + 64
    assert folios[:500].tolist() == list(range(500)) == folios[hooks == 2][:500].tolist()


def test_each_size_has_an_object_of_its_own(zipf):
    made = []

    class Counted(Fifo):
        """Counts its objects."""

        def __init__(self):
            made.append(threading.get_ident())

    rows = refault.replay(zipf, ["10%", "20%", "30%"], ["lru", Counted, "opt"], threads=2).rows
    assert [row["policy"] for row in rows] == ["lru", "opt", "Counted"] * 3
    assert len(made) == 3 and threading.get_ident() not in made
    assert rows[2]["hits"] < rows[5]["hits"] < rows[8]["hits"]
    assert len(refault.curve(zipf, Fifo)) == 16


@pytest.mark.parametrize("hook", ["__init__", "init", "batch", "folios_added", "folios_removed", "evict_folios"])
@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt, MemoryError])
def test_an_exception_ends_the_replay(zipf, hook, kind):
    def fails(self, *_):
        raise kind(hook)

    cls = type("Fails", (Fifo,), {hook: fails})
    with pytest.raises(kind) as caught:
        refault.replay(zipf, ["10%", "20%"], ["lru", cls])
    assert caught.value.args == (hook,)
    assert caught.traceback[-1].name == "fails"


def test_victims_that_are_none_are_passed_over(zipf):
    def hits(victims):
        cls = type("Wrong", (Fifo,), {"evict_folios": lambda self, cache, n: victims(self, n)})
        return figures(refault.replay(zipf, "20%", cls).rows[0])

    nothing = hits(lambda self, n: [])
    assert nothing["oom_at"] is None and nothing["counters"]["pgsteal_file"] > 0
    wrong = [-1, 1 << 40, 1 << 70, np.uint64(2**63), 5999 << 20]
    assert hits(lambda self, n: wrong) == nothing
    # Pages that are not in memory.
    absent = hits(lambda self, n: [f for f in range(6000) if f not in self.order][:n])
    assert absent == nothing
    few, fifo = hits(lambda self, n: list(self.order)[:1]), hits(lambda self, n: list(self.order)[:n])
    assert few["oom_at"] is None and few["hits"] != nothing["hits"]
    assert hits(lambda self, n: np.array(list(self.order)[: 4 * n], dtype=np.int64)) == fifo
    assert hits(lambda self, n: [f for f in list(self.order)[:n] for _ in range(2)])["oom_at"] is None


@pytest.mark.parametrize(
    ("gives", "what"), [(None, "NoneType"), (7, "int"), (["a"], "str"), ([1.5], "float"), ([None], "NoneType")]
)
def test_victims_are_numbers(zipf, gives, what):
    cls = type("Odd", (Fifo,), {"evict_folios": lambda self, cache, n: gives})
    with pytest.raises(TypeError, match=f"^Odd.evict_folios: gives {what}, not numbers of folios; give a list"):
        refault.replay(zipf, "20%", cls)


def test_what_is_no_policy(zipf):
    class Bare(refault.Policy):
        """Has no hooks."""

    with pytest.raises(NotImplementedError, match="Bare: has no evict_folios"):
        refault.replay(zipf, "20%", Bare)
    for wrong, says in [(int, "is no policy"), (Fifo(), "give the class"), (refault.Policy, "has no evict_folios")]:
        with pytest.raises(TypeError, match=says):
            refault.replay(zipf, "20%", ["lru", wrong])
    named = type("Named", (Fifo,), {"name": "sieve"})
    with pytest.raises(ValueError, match="one of refault's own"):
        refault.replay(zipf, "20%", named)
    with pytest.raises(ValueError, match='"Fifo": is the name of two'):
        refault.replay(zipf, "20%", [Fifo, Fifo])


def test_anonymous_memory_is_not_for_policies(sqlite):
    class Never(Fifo):
        """Sees nothing."""

        def batch(self, cache, hooks, folios):
            raise AssertionError("a page of a file")

    with pytest.warns(UserWarning, match="^sqlite: has no pages of files for Never to choose among; their rows"):
        lru, own = refault.replay(sqlite, "50%", ["lru", Never]).rows
    assert figures(lru) == figures(own)


def test_a_warning_says_what_the_command_notes(sqlite, run, zipf):
    policies = ["mru,lru", "sieve"]
    status, _, note = run("replay", sqlite, "--memory", "50%", "--policy", ",".join(policies))
    said = note.strip().removeprefix(f"note: {sqlite}: ")
    assert status == 0 and said.startswith("has no pages of files for mru, sieve to choose among")
    with pytest.warns(UserWarning) as seen:
        refault.replay(sqlite, "50%", policies)
        refault.curve(sqlite, "sieve", "50%")
    assert [str(one.message) for one in seen] == [f"sqlite: {said}", f"sqlite: {said.replace('mru, ', '')}"]
    assert {one.filename for one in seen} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refault.replay(sqlite, "50%", ["lru", "opt"])
        refault.replay(zipf, "50%", policies)
