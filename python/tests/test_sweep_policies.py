"""Sweeps whose policies are classes: named by a plan, given as classes, changed between two sweeps."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import pyarrow.parquet as pq
import pytest

import refault
from refault.sweeps.plan import Plan

FIFO = '''
import refault


def order(queue):
    return list(queue)


class Fifo(refault.Policy):
    """What came first goes first."""

    def init(self, cache):
        self.queue = {}

    def folios_added(self, cache, folios):
        self.queue.update(dict.fromkeys(folios.tolist()))

    def folios_removed(self, cache, folios, evicted):
        for folio in folios.tolist():
            del self.queue[folio]

    def evict_folios(self, cache, n):
        return order(self.queue)[:n]
'''


@pytest.fixture
def folder(tmp_path):
    """Two traces, and a module that only those who look here can import."""
    for n in range(2):
        refault.Trace.generate(f"20000: files:zipf:{300 + n}", seed=n).write(tmp_path / f"t{n}.parquet")
    (tmp_path / "bring.py").write_text(FIFO)
    return tmp_path


@pytest.fixture
def bring(folder, monkeypatch):
    """The module, which workers do not find."""
    monkeypatch.syspath_prepend(folder)
    sys.modules.pop("bring", None)
    import bring

    yield bring
    sys.modules.pop("bring", None)


def plan(folder, policy='["lru", "fifo", "bring:Fifo"]'):
    (folder / "plan.toml").write_text(
        f'traces = ["t*.parquet"]\nmemory = ["20%", "50%"]\npolicy = {policy}\nout = "out"\n'
    )


def sweep(folder, *words):
    line = [sys.executable, "-m", "refault.sweep", "plan.toml", *words]
    return subprocess.run(line, capture_output=True, text=True, cwd=folder, timeout=300)


def rows(table):
    return [(row["trace"], row["asked_memory"], row["policy"], row["misses"], row["code"]) for row in table.to_pylist()]


def as_the_engine_has_it(found):
    """The hits of the class are those of the engine's own."""
    misses = {(trace, memory, policy): misses for trace, memory, policy, misses, _ in found}
    assert len(misses) == len(found) == 12
    for (trace, memory, policy), count in misses.items():
        if policy == "Fifo":
            assert count == misses[trace, memory, "fifo"] != misses[trace, memory, "lru"]


def test_a_plan_names_a_class(folder):
    plan(folder)
    done = sweep(folder, "--workers", "2")
    assert (done.returncode, "Fifo" in done.stdout) == (0, True), done.stderr
    as_the_engine_has_it(rows(refault.Sweep(folder / "out").table()))
    again = sweep(folder, "--workers", "1")
    assert "0 cells in" in again.stderr and "12 were there" in again.stderr


def test_commands_take_it_too(folder):
    plan(folder)
    done = sweep(folder, "--emit", "tasks.txt")
    assert done.returncode == 0, done.stderr
    subprocess.run(["sh", "-e", "tasks.txt"], check=True, cwd=folder, timeout=300)
    as_the_engine_has_it(rows(refault.Sweep(folder / "out").table()))


def test_a_class_goes_to_workers_with_its_module(folder, bring):
    traces = folder / "t*.parquet"
    # Workers begin where the module is not to be found.
    path, sys.path = sys.path, [place for place in sys.path if place != str(folder)]
    try:
        result = refault.sweep(traces, ["20%", "50%"], ["lru", "fifo", bring.Fifo], out=folder / "out", workers=2)
    finally:
        sys.path = path
    as_the_engine_has_it(rows(result.table()))
    # A plan that names it means the same cells.
    plan(folder)
    assert "12 were there" in sweep(folder).stderr


def test_one_typed_in_is_carried_whole(folder):
    typed = "import refault\nfrom bring import Fifo\nclass Mine(Fifo): pass\n"
    code = "refault.sweep('t*.parquet', '20%', ['lru', Mine], out='out', workers=1, progress=False)"
    (folder / "script.py").write_text(f"{typed}if __name__ == '__main__':\n    {code}\n")
    subprocess.run([sys.executable, "script.py"], check=True, cwd=folder, timeout=300)
    found = {(trace, policy): misses for trace, _, policy, misses, _ in rows(refault.Sweep(folder / "out").table())}
    for n in range(2):
        alone = refault.replay(folder / f"t{n}.parquet", "20%", "fifo").column("misses")
        assert [found[f"t{n}", "Mine"]] == alone


def test_a_changed_class_is_another_policy(folder):
    plan(folder, '["lru", "bring:Fifo"]')
    (folder / "bring.py").write_text(FIFO.replace("return list(queue)", "raise KeyError('broken')"))
    broken = sweep(folder)
    # The plan is tried before anything runs; there the list is not asked for.
    assert broken.returncode == 1 and "error: 4 cells have no figures" in broken.stderr, broken.stderr
    failed = [row["error"] for row in refault.Sweep(folder / "out").failed()]
    assert failed == ["KeyError: 'broken'"] * 4
    (folder / "bring.py").write_text(FIFO)
    mended = sweep(folder)
    # Rows of what it was are in the files still, and no errors of this sweep.
    assert mended.returncode == 0 and "4 cells in" in mended.stderr and "4 were there" in mended.stderr, mended.stderr
    (folder / "bring.py").write_text(FIFO.replace("list(queue)", "list(reversed(queue))"))
    changed = sweep(folder)
    assert changed.returncode == 0 and "4 cells in" in changed.stderr, changed.stderr
    policies = refault.Sweep(folder / "out").summary().column("policy")
    assert len(policies) == 4 and all(policy.startswith("Fifo@") for policy in policies)
    assert sweep(folder, "--summary").stdout.count("Fifo ") == 2
    one = next((folder / "out").glob("digest=*/*.parquet"))
    assert "code" in pq.read_table(one).column_names


def test_mistakes_are_known_before_anything_runs(folder, bring):
    for policy, says in [
        ("nowhere:Fifo", "policy nowhere:Fifo: cannot be imported: No module named 'nowhere'"),
        ("bring:Lifo", "policy bring:Lifo: cannot be imported: module 'bring' has no attribute 'Lifo'"),
        (":Fifo", "policy :Fifo: cannot be imported"),
        ("bring:order", "policy bring:order: is no class derived from refault.Policy"),
        ("bring:refault.Policy", "policy bring:refault.Policy: is no class derived from refault.Policy"),
    ]:
        plan(folder, f'["lru", "{policy}"]')
        done = sweep(folder)
        assert (done.returncode, done.stderr.startswith(f"error: plan.toml: {says}")) == (2, True), done.stderr
        assert not (folder / "out").exists()
    for wrong in [bring.Fifo(), int, refault.Policy]:
        with pytest.raises(TypeError, match="is neither a name nor a class derived from refault.Policy"):
            Plan.of("t0.parquet", "20%", ["lru", wrong])
    other = type("Fifo", (bring.Fifo,), {"__module__": "bring", "__qualname__": "Fifo.Other"})
    with pytest.raises(ValueError, match='"Fifo": is the name of two'):
        Plan.of("t0.parquet", "20%", [bring.Fifo, other])
    with pytest.raises(ValueError, match='policy Fifo: is a class; a file names it as "bring:Fifo"'):
        Plan.of("t0.parquet", "20%", bring.Fifo).dump()


def test_a_class_that_is_another_on_the_worker_is_an_error(folder, bring):
    asked = Plan.of(str(folder / "t0.parquet"), "20%", "bring:Fifo").own["Fifo"]
    (folder / "bring.py").write_text(FIFO + "\n# changed\n")
    check = "import pickle, sys; sys.path.append('.'); pickle.loads(bytes.fromhex(sys.argv[1])).resolve()"
    line = [sys.executable, "-c", check, pickle.dumps(asked).hex()]
    done = subprocess.run(line, capture_output=True, text=True, cwd=folder)
    assert "bring:Fifo: is not the same here as where the sweep was started" in done.stderr


def test_traces_without_files_are_named_once(folder):
    refault.Trace.generate("9000: heap:zipf:200:kind=anon").write(folder / "heap.parquet")
    refault.Trace.generate("9000: heap:zipf:210:kind=anon").write(folder / "later.parquet")
    asked = ([folder / "*.parquet"], "50%")
    says = "^heap and 1 more: has no pages of files for sieve to choose among; their rows are those of lru$"
    for _ in range(2):  # what is known of traces says so, too
        with pytest.warns(UserWarning, match=says) as seen:
            refault.sweep(*asked, ["lru", "sieve"], out=folder / "out", workers=1, progress=False)
        assert len([one for one in seen if one.category is UserWarning]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        refault.sweep(*asked, ["lru", "opt"], out=folder / "out", workers=1, progress=False)


def test_names_and_sizes_as_the_command_line_has_them(folder):
    """Several in one text, and ``all``."""
    plan = Plan.of("t0.parquet", "10%, 50%", "opt,lru")
    assert (plan.memory, plan.policy) == (["10%", "50%"], ["opt", "lru"])
    every = Plan.of("t0.parquet", ["10%", "10%,64p"], ["mglru", "all", "sieve"])
    assert every.memory == ["10%", "64p"]
    trace = refault.Trace.read(folder / "t0.parquet")
    assert set(every.policy) == {*refault.replay(trace, "50%", "all").column("policy"), "sieve"}
    assert every.policy[0] == "mglru" and every.policy[-1] == "sieve"
    for wrong, says in [("lru,,opt", 'unknown policy ""'), ("", "policy: there is none")]:
        with pytest.raises(ValueError, match=says):
            Plan.of("t0.parquet", "50%", wrong)
