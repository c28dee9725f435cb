"""The `memlab` command."""

from memlab.cli.app import cli, main

__all__ = ["cli", "main"]
