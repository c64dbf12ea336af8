"""What tests share: the data of the repository, and the command itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


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
