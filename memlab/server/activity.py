"""The calls that a server answered, the last ones with their recalls, for whoever watches."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memlab.server.text import line

if TYPE_CHECKING:
    import pandas as pd

    from memlab.retrieval import Recall
    from memlab.server.panel import ActivityPanel

_READ = 2000  # characters of an argument that are looked at for its beginning: this runs on the server's loop
COLUMNS = ("call", "at", "client", "tool", "about", "milliseconds", "hits", "mode", "outcome")


@dataclass
class Call:
    """One call of a tool.

    Attributes
    ----------
    number : int
        From 1.
    at : datetime
        When it began, UTC.
    client : str
        Name and version, as far as the client says them.
    tool : str
    about : str
        The query, the id or the beginning of the content.
    milliseconds : float
    hits : int or None
        Of a recall or a listing.
    mode : str
        Of a recall.
    outcome : str
        ``ok``, ``error`` or ``cancelled``.
    message : str
        The error.
    recall : Recall or None
        With its trace.
    """

    number: int
    at: datetime
    client: str
    tool: str
    about: str = ""
    milliseconds: float = 0.0
    hits: int | None = None
    mode: str = ""
    outcome: str = "ok"
    message: str = ""
    recall: Recall | None = field(default=None, repr=False)


class Activity:
    """Counts calls and keeps the last ones.

    Parameters
    ----------
    keep : int
        How many calls are kept; 0 for counting alone.
    """

    def __init__(self, keep: int = 200) -> None:
        self._calls: deque[Call] = deque(maxlen=keep)
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self.total = 0
        self.errors = 0

    def begin(self, at: datetime, client: str, tool: str, arguments: dict[str, Any]) -> Call:
        """A new call; it is kept when :meth:`end` is told of it."""
        with self._lock:
            self.total += 1
            number = self.total
        about = next(
            (str(arguments[key]) for key in ("query", "memory_id", "content", "action") if arguments.get(key)), ""
        )
        return Call(number, at, line(client, 80), line(tool, 40), line(about[:_READ], 120))

    def end(self, call: Call) -> None:
        """Keep a call that is over."""
        with self._lock:
            self._calls.append(call)
            self.errors += call.outcome == "error"
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Have ``listener`` called, on the thread of the server, after every call."""
        with self._lock:
            self._listeners.append(listener)

    @property
    def keeps_recalls(self) -> bool:
        """Whether a recall is worth handing over."""
        return self._calls.maxlen != 0

    def calls(self) -> list[Call]:
        """The calls that are kept, in the order in which they arrived, not in that of their ends."""
        with self._lock:
            return sorted(self._calls, key=lambda call: call.number)

    def call(self, number: int) -> Call | None:
        """One of them."""
        return next((call for call in self.calls() if call.number == number), None)

    def frame(self) -> pd.DataFrame:
        """The calls that are kept, oldest first.

        Returns
        -------
        DataFrame
            ``call, at, client, tool, about, milliseconds, hits, mode, outcome``; ``at`` is ``datetime64`` in UTC.
        """
        import pandas as pd

        rows = [
            (c.number, c.at, c.client, c.tool, c.about, c.milliseconds, c.hits, c.mode, c.outcome) for c in self.calls()
        ]
        frame = pd.DataFrame(rows, columns=list(COLUMNS))
        frame["at"] = pd.to_datetime(frame["at"], utc=True)
        return frame.astype({"call": "int64", "milliseconds": "float64", "hits": "Int64"})

    def live_frame(self, panel: ActivityPanel) -> pd.DataFrame:
        """The same frame, which displays itself as a panel that follows."""
        frame: pd.DataFrame = _live_frame()(self.frame())
        object.__setattr__(frame, "_live", panel)
        return frame


@functools.cache
def _live_frame() -> Any:
    """The class of :meth:`Activity.live_frame`; pandas is not imported before somebody asks."""
    import pandas as pd

    class ActivityFrame(pd.DataFrame):
        """Calls as a frame; displayed, a panel that follows them."""

        @property
        def _constructor(self) -> Any:
            return pd.DataFrame  # what is made of it is an ordinary frame

        def _ipython_display_(self) -> None:
            object.__getattribute__(self, "_live").show()

    return ActivityFrame
