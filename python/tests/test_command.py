"""The command that the package brings, which runs in the process of Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

PROGRAM = Path(sysconfig.get_path("scripts"), "refault")
# It takes more than a minute: only a signal ends it before.
LONG = ["bench", "db-switch"]


@pytest.fixture(params=["program", "module"])
def words(request):
    """The words that both ways of calling it begin with."""
    if request.param == "program" and not PROGRAM.exists():
        pytest.skip("the package is not installed")
    return [str(PROGRAM)] if request.param == "program" else [sys.executable, "-m", "refault"]


def called(words, *more, **settings):
    return subprocess.run([*words, *map(str, more)], capture_output=True, text=True, **settings)


def counted(text):
    """Rows without the speed, which differs from run to run."""
    return [{key: value for key, value in row.items() if "per_s" not in key} for row in json.loads(text)["rows"]]


def test_says_what_the_command_says(words, run, sqlite):
    for more in (["--version"], ["--help"], ["size", "--help"], ["help", "replay"], [], ["replay", "-m"], ["demoo"]):
        done = called(words, *more)
        assert (done.returncode, done.stdout, done.stderr) == run(*more), more
    more = ["replay", sqlite, "-m", "50%", "-p", "lru,mglru", "--json"]
    done, (status, text, _) = called(words, *more), run(*more)
    assert (done.returncode, counted(done.stdout)) == (status, counted(text))


def test_statuses(words, tmp_path, sqlite):
    assert called(words, "replay", tmp_path / "none.parquet").returncode == 2
    assert called(words, "bench", "nothing").returncode == 2
    page = tmp_path / "page's.html"
    assert called(words, "report", sqlite, "-o", page).returncode == 0
    # The page says how it was made.
    assert f"refault report {sqlite} -o " in page.read_text()


def test_names_that_are_no_unicode(words, tmp_path, sqlite):
    name = os.fsencode(tmp_path) + b"/\xff.parquet"
    os.symlink(sqlite, name)
    done = subprocess.run([*words, "trace", "info", name], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_has_seen_enough_is_no_error(words, sqlite):
    first = subprocess.Popen([*words, "replay", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert first.stdout.read(10)
    first.stdout.close()
    assert (first.stderr.read(), first.wait()) == (b"", 0)


def test_a_full_output_is_an_error(words, sqlite):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*words, "trace", "info", sqlite], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.startswith("error: standard output: "), done.stderr


def test_closed_streams_are_no_file_of_results(words, tmp_path, sqlite):
    page = tmp_path / "page.html"
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words, "replay", sqlite, "-m", "50%", "--html", page]
    )
    assert done.returncode == 0
    assert page.read_text().startswith("<!") and "hit rate" in page.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(words, number):
    process = subprocess.Popen([*words, *LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    process.send_signal(number)
    assert process.wait(5) == -number
    assert b"Traceback" not in process.stderr.read()


def test_a_shell_that_ignores_ctrl_c_is_heard(words):
    """As programs that a script starts behind its back (`&`)."""
    process = subprocess.Popen(
        [*words, *LONG],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    process.kill()
    process.wait()


def test_refault_run_is_another_package(words, tmp_path):
    done = called(words, "run", "--", "true", env={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode == 2
    assert done.stderr.startswith("error: refault-run: not found in ") and "wheels do not have it" in done.stderr
    there = tmp_path / "refault-run"
    there.write_text('#!/bin/sh\necho "$@"; exit 7\n')
    there.chmod(0o755)
    done = called(words, "run", "--", "a b", env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert (done.returncode, done.stdout) == (7, "-- a b\n")


def test_the_command_imports_no_numpy():
    code = "import sys, refault.__main__; print([name for name in sys.modules if name.split('.')[0] == 'numpy'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
