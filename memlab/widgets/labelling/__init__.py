"""Labelling: go through queries and mark what is relevant."""

from memlab.widgets.labelling.labeller import Labeller, label

__all__ = ["Labeller", "label"]
