"""The applications that show notebooks in a browser, and the mark of a test that is run in both."""

from __future__ import annotations

import pytest

LAB = "JupyterLab"
NOTEBOOK = "Notebook 7"

in_both = pytest.mark.parametrize("lab", [LAB, NOTEBOOK], indirect=True)
