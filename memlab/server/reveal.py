"""The bearer token on the page and nowhere else.

An output is saved with its notebook, so the token is in none: the view asks for it over the kernel's connection when
somebody presses its button, and forgets it after a while. A notebook that is saved meanwhile does not hold it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memlab.server.tokens import MASK, Secret
from memlab.widgets.base import Message, Widget


class TokenView(Widget):
    """A button that shows a token for a while.

    Parameters
    ----------
    token : Secret
    file : Path or None
        Where it is kept, for front ends that show no widgets.
    seconds : float
        How long it stays on the page.
    """

    scripts = ("token.js",)

    def __init__(self, token: Secret, file: Path | None, seconds: float) -> None:
        super().__init__()
        self._token = token
        self._file = file
        self._seconds = seconds

    def picture(self) -> dict[str, Any]:
        """The masked token, and where else it can be had."""
        kept = f"it is kept in {self._file}" if self._file is not None else "server.token.value is the token itself"
        return {"text/plain": f"Authorization: Bearer {MASK} ({kept})"}

    def on_hello(self, message: Message) -> Any:
        """What a view begins with: nothing that must not be saved."""
        return {"seconds": self._seconds, "mask": MASK}

    def on_token(self, message: Message) -> Any:
        """The token, for the page that asks."""
        return {"token": self._token.value}

    def on_settled(self, message: Message) -> None:
        """The picture stays as it is."""
