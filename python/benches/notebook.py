"""Runs the notebook of the documentation and writes what its cells show into it."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat

PATH = Path(__file__).resolve().parents[2] / "docs" / "tutorial.ipynb"


def main() -> None:
    """In place, without what differs from run to run."""
    notebook = nbformat.read(PATH, as_version=4)
    nbclient.NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(PATH.parent)}}).execute()
    for cell in notebook.cells:
        cell.metadata = {}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nbformat.write(notebook, PATH)


if __name__ == "__main__":
    main()
