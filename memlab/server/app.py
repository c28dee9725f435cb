"""The MCP server itself: tools, resources, a prompt and completion over a :class:`~memlab.server.service.Service`."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from time import perf_counter
from typing import Annotated, Any, cast

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_PARAMS, CallToolResult, JSONRPCError, TextContent, ToolAnnotations
from pydantic import ValidationError

from memlab import __version__
from memlab.errors import ContentError, IdempotencyError, MemlabError, StoreLocked, StoreReadOnly, UnknownMemory
from memlab.server.activity import Activity, Call
from memlab.server.guide import INSTRUCTIONS
from memlab.server.http import GONE
from memlab.server.lines import Lines, claimed_stdin
from memlab.server.models import RecallResult, Result, flat_schema
from memlab.server.offers import offer
from memlab.server.service import Service
from memlab.server.specs import TOOLS, ToolSpec
from memlab.server.text import cut, line
from memlab.server.words import as_text
from memlab.store.connection import BEFORE_COMMIT
from memlab.timestamps import utc_now

_MOST_CLIENTS = 1000
_MOST_MESSAGE = 2000  # characters; what was given wrong may be large
_WARMUP_AFTER = 0.05  # seconds after the first answer, which loading would hold up

_CALL: ContextVar[Call | None] = ContextVar("_CALL", default=None)
_NOTES: ContextVar[list[str]] = ContextVar("_NOTES")


class MemoryServer(MCPServer[Any]):
    """An MCP server over one store.

    Parameters
    ----------
    service : Service
        Its ``client`` is set here.
    activity : Activity, optional
        What is told of every call.
    """

    def __init__(self, service: Service, activity: Activity | None = None) -> None:
        # A memory that does not say where it comes from comes from the program that is calling.
        self.service = service = replace(service, client=_caller)
        self.activity = Activity() if activity is None else activity
        self.specs = {spec.name: spec for spec in TOOLS if spec.reads or not (spec.writes and service.read_only)}
        with _quiet_root():
            super().__init__(
                "memlab",
                title="memlab: a long-term memory",
                description="Memories in one SQLite file, recalled by keywords and by meaning",
                instructions=INSTRUCTIONS,
                version=__version__,
                tools=[_tool(spec, service) for spec in self.specs.values()],
                # Nothing is announced: what other processes write is seen by the next call anyway.
                subscriptions=False,
                middleware=[self._observe],
                log_level="WARNING",
            )
        self._clients: dict[str, str] = {}  # by connection
        self._agents: dict[str, set[str]] = {}  # by what the program calls itself in HTTP
        offer(self, service)

    async def run_stdio_async(self) -> None:
        """Serve on stdin and stdout, as the SDK does, and answer what is no message."""
        lines = Lines(claimed_stdin())
        async with stdio_server(stdin=cast("Any", lines)) as (read, write):

            async def answer(error: JSONRPCError) -> None:
                with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # nobody is there
                    await write.send(SessionMessage(error))

            lines.answer = answer
            server = self._lowlevel_server
            await server.run(read, write, server.create_initialization_options())

    # -- calls -----------------------------------------------------------------------------------------------------

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> Any:
        """Run a tool; every failure that a caller can do something about is an answer that says what."""
        call = self.activity.begin(utc_now(), self._client(context), name, arguments)
        started = perf_counter()
        call.outcome = "cancelled"  # unless it comes to an end below
        # The worker thread of the tool sees these, and nobody else.
        tokens = _CALL.set(call), BEFORE_COMMIT.set(_still_there(context))
        try:
            result = await self._run(name, arguments, context)
            call.outcome = "error" if result.is_error else "ok"
            if result.is_error:
                call.message = result.content[0].text
            return result
        except Exception as error:
            call.outcome, call.message = "error", str(error)
            raise
        finally:
            _CALL.reset(tokens[0])
            BEFORE_COMMIT.reset(tokens[1])
            call.milliseconds = 1000 * (perf_counter() - started)
            self.activity.end(call)

    async def _run(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None) -> Any:
        spec = self.specs.get(name)
        if spec is None:
            return _failed(self._no_such(name))
        given, notes = spec.prepare(arguments)
        token = _NOTES.set(notes)
        try:
            return await super().call_tool(name, given, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            return _failed(_wrong_arguments(spec, error.__cause__))
        finally:
            _NOTES.reset(token)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> Any:
        """A prompt; one that is not there is the caller's fault, not ours."""
        there = [prompt.name for prompt in await self.list_prompts()]
        if name not in there:
            raise MCPError(
                code=INVALID_PARAMS, message=f"Unknown prompt: {line(name, 60)}; there is {', '.join(there)}"
            )
        return await super().get_prompt(name, arguments, context)

    def _no_such(self, name: str) -> str:
        there = ", ".join(self.specs)
        if name in {spec.name for spec in TOOLS}:
            return f"{name}: this server is read-only and has no such tool; there are: {there}"
        return f"Unknown tool: {line(name, 60)}; there are: {there}"

    def _client(self, context: Context[Any, Any] | None) -> str:
        """Who is calling. A request without a session says it itself, or its connection said it on initialize."""
        if context is None:
            return ""
        with contextlib.suppress(ValueError):
            params = context.session.client_params
            if params is not None:
                return f"{params.client_info.name} {params.client_info.version}".strip()
            agent = (context.headers or {}).get("user-agent", "")
            known = self._agents.get(agent, set())
            only = next(iter(known)) if len(known) == 1 else agent
            return self._clients.get(_peer(context.request_context.request), "") or only
        return ""

    async def _observe(self, ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        """Note who initializes; start to load the encoder when the first answer is out."""
        if ctx.method == "initialize" and isinstance(ctx.params, dict):
            info = ctx.params.get("clientInfo")
            if isinstance(info, dict) and (peer := _peer(ctx.request)):
                if len(self._clients) > _MOST_CLIENTS:
                    self._clients.clear()
                    self._agents.clear()
                name = self._clients[peer] = line(f"{info.get('name', '')} {info.get('version', '')}", 80)
                self._agents.setdefault(ctx.request.headers.get("user-agent", ""), set()).add(name)
        try:
            return await call_next(ctx)
        finally:
            if self.service.warmup is not None:
                asyncio.get_running_loop().call_later(_WARMUP_AFTER, self.service.warmup.start)


def _caller() -> str:
    call = _CALL.get()
    return call.client if call else ""


def _peer(request: Any) -> str:
    """The connection and the program behind it; two programs do not share a port at the same time."""
    if request is None:
        return ""
    client = request.scope.get("client") or ("", 0)
    return f"{client[0]}:{client[1]} {request.headers.get('user-agent', '')}"


def _still_there(context: Context[Any, Any] | None) -> Callable[[], None]:
    """A check that raises if the caller has cancelled or hung up."""
    gone = None
    if context is not None:
        with contextlib.suppress(ValueError):
            request = context.request_context.request
            gone = None if request is None else request.scope.get(GONE)

    def check() -> None:
        anyio.from_thread.check_cancelled()
        if gone is not None and gone.is_set():
            raise MemlabError("the caller hung up; nothing was stored")

    return check


# -- tools -----------------------------------------------------------------------------------------------------------


def _tool(spec: ToolSpec, service: Service) -> Tool:
    """The SDK's form of a tool."""

    def run(**given: Any) -> CallToolResult:
        try:
            result = spec.function(service, **given)
        except (MemlabError, sqlite3.Error) as error:
            return _failed(_what_next(spec, error))
        result.notes += _NOTES.get()
        _note(result)
        return CallToolResult(content=[TextContent(text=as_text(result))], structured_content=result.values())

    run.__name__ = spec.name
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        list(spec.parameters.values()), return_annotation=Annotated[CallToolResult, spec.result]
    )
    changes = spec.writes and not service.read_only  # one that could do both only reads there
    tool = Tool.from_function(
        run,
        title=spec.title,
        description=spec.description,
        annotations=ToolAnnotations(
            title=spec.title,
            read_only_hint=not changes,
            destructive_hint=changes and spec.destructive,
            idempotent_hint=spec.idempotent,
            open_world_hint=False,
        ),
    )
    tool.fn_metadata.output_schema = flat_schema(spec.result)
    tool.parameters = _plain(tool.parameters)
    return tool


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of parameters without the titles that repeat their names."""
    properties = {
        name: {key: value for key, value in each.items() if key != "title"}
        for name, each in schema["properties"].items()
    }
    return {**{key: value for key, value in schema.items() if key != "title"}, "properties": properties}


def _note(result: Result) -> None:
    """Tell the activity what came out."""
    call = _CALL.get()
    if call is None:
        return
    if isinstance(result, RecallResult):
        call.hits, call.mode, call.recall = len(result.hits), result.mode, result._recall
    else:
        items = getattr(result, "items", None) or getattr(result, "stale", None)
        call.hits = None if items is None else len(items)


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=cut(message, _MOST_MESSAGE)[0])], is_error=True)


def _what_next(spec: ToolSpec, error: Exception) -> str:
    """What went wrong, and what the caller can do."""
    # The library's name for a parameter, and its advice for a terminal, are not the caller's.
    text = str(error)
    if isinstance(error, IdempotencyError):
        text = f"{text.rpartition('; use a new key')[0]}; use a new key, or change that memory with reflect"
    elif isinstance(error, ContentError) and "surrogate" in text:
        text = f"{text.partition('; decode')[0]}; send the text again without it"
    elif isinstance(error, UnknownMemory) and "restore it first" not in text:
        text = f"{text.partition(';')[0]}; recall, or memories with action 'recent' or 'trash', gives exact ids"
    elif isinstance(error, (StoreLocked, sqlite3.OperationalError)):
        text = f"{text.partition('; try again')[0]}; nothing was stored, so call again in a moment"
    elif isinstance(error, StoreReadOnly):
        text += "; ask the user to start the server without --read-only"
    return text if text.startswith(f"{spec.name}:") else f"{spec.name}: {text}"


def _wrong_arguments(spec: ToolSpec, error: ValidationError) -> str:
    """Which arguments do not fit, without repeating them."""
    faults = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        name = str(fault["loc"][0]) if fault["loc"] else ""
        message = "is needed" if fault["type"] == "missing" else fault["msg"].replace("Input should", "should")
        faults.append(f"{name} {message}")
    required = [name for name, each in spec.parameters.items() if each.default is inspect.Parameter.empty]
    optional = [name for name in spec.parameters if name not in required]
    takes = f"{', '.join(required) or 'nothing'} (needed), {', '.join(optional)}" if optional else ", ".join(required)
    return f"{spec.name}: {'; '.join(dict.fromkeys(faults))}. It takes {takes}"


@contextlib.contextmanager
def _quiet_root() -> Iterator[None]:
    """Keep the SDK's constructor from setting up the root logger, which is the application's."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
