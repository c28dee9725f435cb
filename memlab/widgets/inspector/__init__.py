"""The inspector: one query, its hits and what made them so, with a knob for every setting."""

from memlab.widgets.inspector.inspector import Inspector, inspect
from memlab.widgets.inspector.settings import Settings

__all__ = ["Inspector", "Settings", "inspect"]
