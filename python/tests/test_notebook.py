"""The notebook of the documentation runs."""

from __future__ import annotations

import nbclient
import nbformat
from conftest import ROOT


def test_the_notebook_runs():
    notebook = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT / "docs")}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in shown if "<svg" in output.get("data", {}).get("text/html", "")]
    assert len(pictures) == 2
    assert not any(output.output_type == "error" for output in shown)
