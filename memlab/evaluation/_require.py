"""Import an optional package when it is needed, or say how to install it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from memlab.errors import MissingDependency


def require(module: str, package: str, purpose: str) -> Any:
    """Import ``module`` and return it.

    Parameters
    ----------
    module : str
        What is imported, for example ``ir_measures``.
    package : str
        What pip calls it, for example ``ir-measures``.
    purpose : str
        What needs it, for the message: ``"measuring a run"``.

    Raises
    ------
    MissingDependency
        If the package is not installed, or fails when it is imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError)
        state = "not installed" if missing else f"installed but fails when imported ({error})"
        raise MissingDependency(
            f'{purpose} needs the package {package}, which is {state}; install it with: pip install "memlab[eval]"',
            name=module,
        ) from error
