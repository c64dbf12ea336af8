"""The programs that make figures of the documentation run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import ROOT


@pytest.mark.parametrize(("name", "lines"), [("sweep", 5), ("policy", 13), ("replay", 6)])
def test_a_program_prints_its_table(name, lines):
    path = ROOT / "python" / "benches" / f"{name}.py"
    done = subprocess.run([sys.executable, path, "1", "200000"], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    assert len(rows) == lines
    assert all(float(row.split()[-1].removesuffix(" s")) > 0 for row in rows[1:] if name == "policy")
    if name == "sweep":
        assert [row.split()[3] for row in rows[1:]] == ["9"] * 4
