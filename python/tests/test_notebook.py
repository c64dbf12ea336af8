"""The notebook of the documentation runs, and shows what it says; ``benches/notebook.py`` writes it anew."""

from __future__ import annotations

import nbclient
import nbformat
from conftest import ROOT


def texts(notebook):
    """What its cells show, as text."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output["data"]["text/plain"] for cell in cells for output in cell.outputs if "data" in output]


def test_the_notebook_runs():
    notebook = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    written = texts(notebook)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT / "docs")}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in shown if "<svg" in output.get("data", {}).get("text/html", "")]
    assert len(pictures) == 2
    assert len(written) == 12 and texts(notebook) == written
    assert not any(output.output_type == "error" for output in shown)
