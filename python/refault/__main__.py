"""``python -m refault`` is the command ``refault``, which the package brings."""

import os
import sys
import sysconfig
from pathlib import Path


def find():
    """The file of the command: among the programs of this Python, or of its user, or beside the package."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))]
    # As `pip install --target` has it.
    folders.append(Path(__file__).parents[1] / "bin")
    found = [file for file in (Path(folder, "refault") for folder in folders) if os.access(file, os.X_OK)]
    if not found:
        sys.exit(f"error: refault: not found in {', '.join(map(str, folders))}; install the package anew")
    return found[0]


if __name__ == "__main__":
    command = find()
    os.execv(command, [command, *sys.argv[1:]])
