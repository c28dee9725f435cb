"""Progress of long work: one element that a saved notebook keeps in its finished state, or one line in a terminal."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

Report = Callable[[int, int | None], None]
Show = bool | Report | None

_FIRST_AFTER = 1.0  # seconds: quicker work stays silent
_EVERY = 0.1


class Progress:
    """Counts steps and shows them.

    Parameters
    ----------
    label : str
        What is being done.
    total : int or None
        How many steps there will be.
    show : bool, callable or None
        ``None`` shows after a second where a person is looking (a notebook or a terminal), ``False`` never,
        ``True`` from the start; a callable is given ``(done, total)``.
    at_once : bool, optional
        Whether a person sees it from the start too: for work that is known to take long and cannot say how far it is.
    """

    def __init__(self, label: str, total: int | None, show: Show = None, *, at_once: bool = False) -> None:
        self.label, self.total, self.done = label, total, 0
        self._report = show if callable(show) else None
        self._started = time.monotonic()
        self._next = self._started + (0.0 if show is True or at_once else _FIRST_AFTER)
        self._place: _Place | None = None if self._report or show is False else _place(forced=show is True)
        if at_once:
            self.advance(0)

    def advance(self, steps: int = 1) -> None:
        """Count ``steps`` more."""
        self.done += steps
        if self._report:
            self._report(self.done, self.total)
        elif self._place is not None and time.monotonic() >= self._next:
            self._place.show(self._line(), self._share())
            self._next = time.monotonic() + _EVERY

    def _share(self) -> float | None:
        return None if not self.total else min(1.0, self.done / self.total)

    def _line(self, ended: str = "") -> str:
        spent = time.monotonic() - self._started
        of_total = "" if self.total is None else f" of {self.total:,}"
        return f"{self.label}: {self.done:,}{of_total}, {spent:.1f} s{ended}"

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._place is not None and self._place.shown:
            self._place.show(self._line("" if kind is None else " (stopped)"), self._share())
            self._place.end()


class _Place:
    """Where progress is shown."""

    shown = False

    def show(self, line: str, share: float | None) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Leave the place as it is."""


class _Terminal(_Place):
    def show(self, line: str, share: float | None) -> None:
        self.shown = True
        sys.stderr.write(f"\r{line}\x1b[K")
        sys.stderr.flush()

    def end(self) -> None:
        sys.stderr.write("\n")
        sys.stderr.flush()


class _Notebook(_Place):
    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, line: str, share: float | None) -> None:
        from IPython.display import display

        self.shown = True
        width = 100 if share is None else round(100 * share)
        bar = (
            '<div style="display:inline-block;width:12em;height:0.7em;border:1px solid #8886;margin-right:0.6em">'
            f'<div style="width:{width}%;height:100%;background:#0072b2"></div></div>'
        )
        bundle = {"text/plain": line, "text/html": f"<div>{bar}<span>{html.escape(line)}</span></div>"}
        # One element with a display id: a saved notebook keeps its last state, which tqdm's widget does not.
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bundle, raw=True)


def _place(*, forced: bool) -> _Place | None:
    if "ipykernel" in sys.modules:
        from IPython.core.getipython import get_ipython

        shell = get_ipython()
        if shell is not None and getattr(shell, "kernel", None) is not None:
            return _Notebook()
    # A service or a windowed Python has no stderr at all.
    return _Terminal() if sys.stderr is not None and (forced or sys.stderr.isatty()) else None
