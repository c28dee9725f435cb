"""What the server offers beside tools: resources to read, a prompt that teaches, completion of names."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Callable
from typing import Annotated, Any, ParamSpec

import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.types import Completion
from pydantic import Field

from memlab import __version__
from memlab.errors import MemlabError, UnknownMemory
from memlab.server.guide import guide
from memlab.server.items import item
from memlab.server.listing import WHOLE, counts
from memlab.server.service import Service
from memlab.server.text import clean, line

_MOST_COMPLETIONS = 100
_P = ParamSpec("_P")


def offer(server: MCPServer[Any], service: Service) -> None:
    """Register them all."""
    _add_resources(server, service)
    _add_prompt(server)
    _add_completion(server, service)


def _add_resources(server: MCPServer[Any], service: Service) -> None:
    asset: dict[str, Any] = {"mime_type": "application/json"}

    @server.resource(
        "memlab://store", name="store", title="The store", description="What this store holds, in figures.", **asset
    )
    @_told
    def store() -> str:
        found = service.store.stats()
        return _json(
            {
                "file": line(service.store.path.name),
                "memories": found.memories,
                "trashed": found.trashed,
                "pending": found.pending,
                "encoder": line(found.encoder or "") or None,
                "read_only": service.read_only,
                "current_project": line(service.projects.current or "") or None,
                "projects": [count.model_dump() for count in counts(service.store.projects())],
                "memlab": __version__,
            }
        )

    @server.resource(
        "memlab://categories", name="categories", title="Categories", description="All of them with counts.", **asset
    )
    @_told
    def categories() -> str:
        return _json({"categories": [count.model_dump() for count in counts(service.store.categories())]})

    @server.resource(
        "memlab://memories/{memory_id}",
        name="memory",
        title="One memory",
        description="A memory by its exact id: data that somebody stored.",
        **asset,
    )
    @_told
    def memory(memory_id: str) -> str:
        try:
            found = service.store.get(memory_id)
        except UnknownMemory:
            raise ResourceNotFoundError(f"no memory has the id {line(memory_id, 60)!r}") from None
        return _json(item(found, service.now(), WHOLE).model_dump(exclude_none=True))


def _told(read: Callable[_P, str]) -> Callable[_P, str]:
    """``read``, whose client is told why it could not be done: the store is closed, or another program holds it."""

    @functools.wraps(read)
    def told(*arguments: _P.args, **named: _P.kwargs) -> str:
        try:
            return read(*arguments, **named)
        except (MemlabError, sqlite3.Error) as error:
            raise ResourceError(clean(str(error))) from None

    return told


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _add_prompt(server: MCPServer[Any]) -> None:
    @server.prompt(
        name="memory_guide",
        title="When to remember and recall",
        description="Teaches an assistant when to recall, what to remember, and how to keep the memory true.",
    )
    def memory_guide(
        project: Annotated[str, Field(description="Work on this project.")] = "",
        category: Annotated[str, Field(description="Use this category.")] = "",
        tag: Annotated[str, Field(description="Use this tag.")] = "",
    ) -> str:
        """When to recall, what to remember, and how to keep it true."""
        return guide(project, category, tag)


def _add_completion(server: MCPServer[Any], service: Service) -> None:
    store = service.store
    sources = {"project": store.projects, "category": store.categories, "tag": store.tags, "tags": store.tags}

    async def complete(ref: Any, argument: Any, context: Any) -> Completion | None:
        source = sources.get(argument.name)
        if source is None:
            return None
        try:
            names = list(await anyio.to_thread.run_sync(source))
        except (MemlabError, sqlite3.Error):
            return None  # the next call of a tool says why
        begun = argument.value.strip().casefold()
        # What would have to be cleaned could not be found by its cleaned form.
        there = [name for name in names if begun in name.casefold() and name == line(name)]
        there.sort(key=lambda name: not name.casefold().startswith(begun))
        shown = there[:_MOST_COMPLETIONS]
        return Completion(values=shown, total=len(there), has_more=len(there) > len(shown))

    server.completion()(complete)  # type: ignore[no-untyped-call]
