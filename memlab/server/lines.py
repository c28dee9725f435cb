"""What comes in on stdin, line by line. A line that is no message is answered: the SDK drops it in silence.

A client that has sent such a line waits for its answer, some of them for ever. It happens to honest ones: a text that
was cut between the halves of a surrogate pair is no JSON that can be read.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TextIO

import anyio
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError


class Lines:
    """The lines of a stream that are messages.

    Parameters
    ----------
    stream : text stream

    Attributes
    ----------
    answer : callable
        Is given what to say to a line that is none.
    """

    def __init__(self, stream: TextIO) -> None:
        self._lines = anyio.wrap_file(stream)
        self.answer: Callable[[JSONRPCError], Awaitable[Any]] | None = None

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            if line.isspace():
                continue
            try:
                jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError as error:
                refused = refusal(line, error)
                if refused is not None and self.answer is not None:
                    await self.answer(refused)
                continue
            yield line


def refusal(line: str, error: ValidationError) -> JSONRPCError | None:
    """The answer to a line that is no message; ``None`` for what would have been an answer itself."""
    why = error.errors(include_url=False, include_context=False, include_input=False)[0]
    unreadable = why["type"] == "json_invalid"
    try:
        # This reader takes more than the protocol's does: it may still tell whose line it was.
        found = json.loads(line, strict=False)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and "method" not in found and ("result" in found or "error" in found):
        return None
    said = why["msg"].replace("Invalid JSON: ", "") if unreadable else "no request, notification or response"
    return JSONRPCError(
        jsonrpc="2.0",
        id=_id_of(found),
        error=ErrorData(
            code=PARSE_ERROR if unreadable else INVALID_REQUEST,
            message=f"{'Parse error' if unreadable else 'Invalid request'}: {said}",
        ),
    )


def _id_of(message: Any) -> int | str | None:
    """The id of a request, if it is one that can be sent back."""
    given = message.get("id") if isinstance(message, dict) else None
    if isinstance(given, str) and given.isprintable():  # half a surrogate pair is not
        return given
    return given if type(given) is int and abs(given) < 2**63 else None


def claimed_stdin() -> TextIO:
    """Stdin for the protocol alone: whoever else reads from it, a child process too, finds it at its end."""
    kept = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Never closed: at the end a thread may still wait in it.
    return os.fdopen(kept, encoding="utf-8", errors="replace", newline="\n", closefd=False)
