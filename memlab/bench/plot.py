"""How times and memory grow with the store, as a matplotlib figure. Importing this module needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memlab.bench.report import growth_rows
from memlab.errors import InvalidValue
from memlab.evaluation.plots import Picture, labelled_lines

if TYPE_CHECKING:
    from memlab.bench.measure import StoreFigures


def growth(stores: Sequence[StoreFigures]) -> Picture:
    """Medians over the number of memories, both on logarithmic axes; times above, memory below.

    Parameters
    ----------
    stores : sequence of StoreFigures
        Of at least two different sizes.

    Raises
    ------
    InvalidValue
        If there are fewer.
    """
    if len({store.memories for store in stores}) < 2:
        raise InvalidValue("stores: expected figures of two sizes or more; measure more with --sizes")
    rows = growth_rows(stores)
    panels = []
    for unit, title in (("ms", "milliseconds, median"), ("MB", "MB resident")):
        lines = {figure.label: points for figure, points in rows if figure.unit == unit}
        if lines:
            panels.append((title, lines))
    return labelled_lines(panels, along="memories")
