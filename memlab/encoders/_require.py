"""Import an optional package when it is needed, or say how to install it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from memlab.errors import EncoderUnavailable, MissingDependency

__all__ = ["EncoderPackageMissing", "require"]


class EncoderPackageMissing(EncoderUnavailable, MissingDependency):
    """A package that an encoder needs is not installed; caught as either of the two kinds it is."""


def require(module: str, package: str, purpose: str) -> Any:
    """Import ``module`` and return it.

    Parameters
    ----------
    module : str
        What is imported, for example ``sentence_transformers``.
    package : str
        What pip calls it, for example ``sentence-transformers``.
    purpose : str
        Who needs it, for the message.

    Returns
    -------
    module
        The imported module, untyped: the heavy packages are not read by the type checker.

    Raises
    ------
    EncoderPackageMissing
        If the package is not installed.
    EncoderUnavailable
        If it is installed and fails while it is imported.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if not missing.startswith(f"{module}."):
            name = package if missing in (module, module.split(".")[0]) else missing.split(".")[0]
            raise EncoderPackageMissing(
                f"{purpose} needs the package {name}, which is not installed; "
                f"install it with: python -m pip install {name}",
                name=missing,
            ) from error
        raise _broken(package, purpose, error) from error
    except Exception as error:  # torch, for one, raises OSError when a shared library is missing
        raise _broken(package, purpose, error) from error


def _broken(package: str, purpose: str, error: Exception) -> EncoderUnavailable:
    return EncoderUnavailable(
        f"{purpose} needs the package {package}, which is installed but fails when imported "
        f"({type(error).__name__}: {error}); "
        f"install it anew with: python -m pip install --force-reinstall {package}"
    )
