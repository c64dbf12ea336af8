"""What tests share: the data of the repository, and the command itself."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import refault
from sweep_cells import ASKED

ROOT = Path(__file__).resolve().parents[2]


# Code for a process of its own: `peak()` is the most bytes that it has had. `getrusage` may have
# those of the process that started it.
PEAK = "def peak(): return next(int(line.split()[1]) << 10 for line in open('/proc/self/status') if 'VmHWM' in line)\n"


def in_python(said: str, key: str) -> str:
    """The line of the command on a value of a flag, as Python says it of a keyword."""
    words = r"error: invalid value '(.*?)' for '--.*?': (.*?)(; list prints what each is)?; --help says more\n"
    found = re.fullmatch(words, said)
    if found:
        return f"{key}='{found[1].removeprefix(key + '=')}': {found[2]}"
    plain = said.removeprefix("error: ").rstrip()
    led = re.sub(r"^--([a-z-]+) (.*?): ", lambda of: f"{of[1].replace('-', '_')}='{of[2]}': ", plain)
    return re.sub(r"--([a-z][a-z-]*)", lambda of: of[1].replace("-", "_"), led)


@pytest.fixture(scope="session")
def sqlite() -> Path:
    """A small recording."""
    return ROOT / "data" / "sqlite.parquet"


@pytest.fixture(scope="session")
def command() -> Path:
    """The command, as ``REFAULT_COMMAND`` names it or as the workspace has built it."""
    given = os.environ.get("REFAULT_COMMAND")
    if given:
        return Path(given)
    built = [ROOT / "target" / profile / "refault" for profile in ("release", "debug")]
    found = [path for path in built if path.is_file()]
    if not found:
        pytest.skip("the command is not built: cargo build --bin refault")
    return max(found, key=lambda path: path.stat().st_mtime)


@pytest.fixture(scope="session")
def run(command):
    """Runs the command: status, standard output, standard error."""

    def run(*words: object) -> tuple[int, str, str]:
        done = subprocess.run([command, *map(str, words)], capture_output=True, text=True, cwd=ROOT)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture(scope="session")
def traces(tmp_path_factory):
    """Ten small traces of different sizes."""
    folder = tmp_path_factory.mktemp("traces")
    for n in range(10):
        phase = f"{20000 + 1000 * n}: a:zipf:{400 + 50 * n}:skew=0.{n + 1}; b:loop:{150 + n}:kind=anon,op=w"
        refault.Trace.generate(phase, seed=n).write(folder / f"t{n}.parquet")
    return folder


@pytest.fixture(scope="session")
def single(traces):
    """The same cells in this process, without any part of a sweep."""
    rows = {}
    for path in sorted(traces.glob("*.parquet")):
        trace = refault.Trace.read(path)
        for memory in ASKED["memory"]:
            for swappiness in ASKED["settings"]["swappiness"]:
                table = refault.replay(trace, memory, ASKED["policy"], swappiness=swappiness, threads=1)
                columns = {name: table.column(name) for name in table.columns}
                for n, policy in enumerate(columns["policy"]):
                    rows[path.stem, memory, swappiness, policy] = {name: columns[name][n] for name in columns}
    assert len(rows) == 300
    return rows
