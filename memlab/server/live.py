"""Displays in a notebook that follow what they show, also while a cell runs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

_PAUSE = 0.3  # seconds between two updates; a burst of calls is one of them
_FOLLOWED = 3  # displays; older ones keep what they showed last


class Live:
    """Shows something now, and again whenever :meth:`changed` is called.

    Parameters
    ----------
    render : callable
        Gives a MIME bundle, ``text/html`` and ``text/plain``.
    """

    def __init__(self, render: Callable[[], dict[str, str]]) -> None:
        self._render = render
        self._handles: deque[Any] = deque(maxlen=_FOLLOWED)
        self._lock = threading.Lock()
        self._due = False

    def show(self) -> None:
        """Display it: followed in a notebook, as text elsewhere."""
        bundle = self._render()
        if not in_notebook():
            print(bundle["text/plain"])
            return
        from IPython.display import display

        handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        with self._lock:
            self._handles.append(handle)

    def changed(self) -> None:
        """Bring the displays up to date, soon."""
        with self._lock:
            if self._due or not self._handles:
                return
            self._due = True
        timer = threading.Timer(_PAUSE, self._update)
        timer.daemon = True
        timer.start()

    def _update(self) -> None:
        with self._lock:
            self._due = False
        self.update()

    def update(self) -> None:
        """Bring the displays up to date, now."""
        with self._lock:
            handles = list(self._handles)
        if not handles:
            return
        bundle = self._render()
        for handle in handles:
            handle.update(bundle, raw=True)


def in_notebook() -> bool:
    """Whether there is a kernel that displays go to."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")
