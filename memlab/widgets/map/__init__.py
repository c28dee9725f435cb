"""The map: all memories of a store as points, with what a recall found among them."""

from memlab.widgets.map.widget import MemoryMap, map

__all__ = ["MemoryMap", "map"]
