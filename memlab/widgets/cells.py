"""The notebook cell that runs, and the views that it showed: a cell that runs again closes those of its last run."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Close = Callable[[], None]


@dataclass(frozen=True)
class Cell:
    """A cell in one of its runs.

    Attributes
    ----------
    key : str
        The cell's id where the front end names one, and otherwise a hash of its code.
    run : str
        The request that runs it.
    """

    key: str
    run: str


def shell() -> Any:
    """The IPython shell of a kernel; ``None`` in a terminal or a script."""
    if "ipykernel" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython

    found = get_ipython()
    return found if found is not None and getattr(found, "kernel", None) is not None else None


def current_cell() -> Cell | None:
    """The cell that runs now; ``None`` outside of one, as while a message of a widget is answered."""
    found = shell()
    if found is None:
        return None
    return cell_of(found.kernel.get_parent())


def cell_of(request: dict[str, Any]) -> Cell | None:
    """The cell that a kernel's request runs, if it runs one."""
    if request.get("header", {}).get("msg_type") != "execute_request":
        return None
    named = request.get("metadata", {}).get("cellId")
    code = str(request.get("content", {}).get("code", ""))
    key = f"id {named}" if named else f"code {hashlib.sha256(code.encode()).hexdigest()}"
    return Cell(key, str(request["header"].get("msg_id", "")))


class Shown:
    """Which cell showed what."""

    def __init__(self) -> None:
        self._views: dict[str, list[tuple[str, Close]]] = {}
        self._lock = threading.RLock()
        self._watched: Any = None

    def add(self, cell: Cell | None, close: Close) -> None:
        """Note that ``cell`` shows something that ``close`` ends."""
        if cell is None:
            return
        self.ran(cell)
        with self._lock:
            self._views.setdefault(cell.key, []).append((cell.run, close))
        self._watch()

    def forget(self, close: Close) -> None:
        """What ``close`` ends has ended."""
        with self._lock:
            for key, views in list(self._views.items()):
                views[:] = [view for view in views if view[1] != close]
                if not views:
                    del self._views[key]

    def ran(self, cell: Cell | None) -> None:
        """Close what earlier runs of ``cell`` showed."""
        if cell is None:
            return
        with self._lock:
            views = self._views.get(cell.key, [])
            old = [close for run, close in views if run != cell.run]
            views[:] = [view for view in views if view[0] == cell.run]
            if not views:
                self._views.pop(cell.key, None)
        for close in old:
            close()

    def _watch(self) -> None:
        """Look at every cell that starts, also those that no longer show anything."""
        found = shell()
        if found is not None and found is not self._watched:
            found.events.register("pre_run_cell", self._starting)
            self._watched = found

    def _starting(self, _info: object = None) -> None:
        self.ran(current_cell())


SHOWN = Shown()
