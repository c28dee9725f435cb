"""The calls of a server as a live panel: they arrive as they come, and a recall opens in the inspector below it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from memlab.retrieval.render import visible
from memlab.server import card
from memlab.server.activity import Activity, Call
from memlab.widgets.base import Message, Slots, Widget
from memlab.widgets.cells import shell

if TYPE_CHECKING:
    from memlab.widgets.inspector import Inspector

_PAUSE = 0.3  # seconds between two updates; a burst of calls is one of them
_ROWS = 50


class ActivityPanel(Widget):
    """The last calls, newest first, in a notebook.

    Parameters
    ----------
    activity : Activity
    open_call : callable
        From the number of a call to the inspector of its recall.

    Attributes
    ----------
    inspector : Inspector or None
        The one that was opened last.
    """

    scripts = ("activity.js",)
    styles = ("activity.css",)

    def __init__(self, activity: Activity, open_call: Callable[[int], Inspector]) -> None:
        super().__init__()
        self._activity = activity
        self._open_call = open_call
        self._slots: Slots | None = None
        self._lock = threading.Lock()
        self._due = False
        self.inspector: Inspector | None = None

    def picture(self) -> dict[str, Any]:
        """The calls as a card, the last recalls with their bars."""
        return {"text/plain": repr(self._activity.frame()), "text/html": card.activity_html(self._activity.calls())}

    def show(self, into: Slots | None = None) -> None:
        """See :class:`Widget`; below it a place is kept for what is opened."""
        super().show(into)
        self._slots = Slots.reserve() if shell() is not None else None

    def close(self) -> None:
        """See :class:`Widget`; what was opened closes too."""
        if self.inspector is not None:
            self.inspector.close()
        super().close()

    def changed(self) -> None:
        """A call has been answered: tell the view, soon; called on the server's thread."""
        with self._lock:
            if self._due or self._picture is None:
                return
            self._due = True
        timer = threading.Timer(_PAUSE, self.update)
        timer.daemon = True
        timer.start()

    def update(self) -> None:
        """Bring view and picture up to date, now."""
        with self._lock:
            self._due = False
        self.push("calls", self._rows())
        self.refresh_picture()

    def _rows(self) -> list[dict[str, Any]]:
        return [_row(call) for call in reversed(self._activity.calls()[-_ROWS:])]

    def on_hello(self, _message: Message) -> Any:
        """The calls so far."""
        return {"calls": self._rows(), "opened": None}

    def on_open(self, message: Message) -> Any:
        """Open the recall of a call in the inspector, in the place below the panel."""
        opened = self._open_call(int(message["call"]))
        if self.inspector is not None:
            self.inspector.close()
        self.inspector = opened
        if self._slots is not None:
            opened.show(self._slots)
        return {"opened": int(message["call"])}


def _row(call: Call) -> dict[str, Any]:
    return {
        "call": call.number,
        "at": f"{call.at:%H:%M:%S}",
        "client": visible(call.client),
        "tool": visible(call.tool),
        "about": visible(call.about),
        "milliseconds": call.milliseconds,
        "hits": call.hits,
        "mode": visible(call.mode),
        "outcome": call.outcome,
        "message": visible(call.message),
        "openable": call.recall is not None,
    }
