"""A server in memory, and what tests say to it with the SDK's own client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from memlab.encoders import HashingEncoder
from memlab.server.activity import Activity
from memlab.server.app import MemoryServer
from memlab.server.service import Service, service_for
from memlab.store import MemoryStore

ERAS = ("auto", "legacy")  # `auto` finds the modern era


@pytest.fixture(params=ERAS, ids=["modern", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    """The two ways in which the protocol has been spoken."""
    return str(request.param)


@pytest.fixture
def service(store: MemoryStore, tmp_path: Path, clock: Callable[[], Any]) -> Service:
    """What the tools work on, with the clock of the store and no encoder to wait for."""
    from dataclasses import replace

    return replace(service_for(store, base=tmp_path), warmup=None, now=clock)


@pytest.fixture
def server(service: Service) -> MemoryServer:
    return MemoryServer(service, Activity())


@dataclass
class Answer:
    """A tool's answer, both forms of it."""

    text: str
    data: dict[str, Any]
    failed: bool


def answer(result: Any) -> Answer:
    (block,) = result.content
    return Answer(block.text, result.structured_content or {}, bool(result.is_error))


def call(target: Any, tool: str, era: str = "auto", **arguments: Any) -> Answer:
    """One call over a connection of its own."""

    async def talk() -> Any:
        async with Client(target, mode=era) as client:
            return await client.call_tool(tool, arguments)

    return answer(anyio.run(talk))


def ask(target: Any, what: Callable[[Client], Any], era: str = "auto") -> Any:
    """What ``what`` finds out with a client."""

    async def talk() -> Any:
        async with Client(target, mode=era) as client:
            return await what(client)

    return anyio.run(talk)


class HeldEncoder(HashingEncoder):
    """An encoder that is not done before it is told to be."""

    def __init__(self) -> None:
        super().__init__(64)
        self.go = threading.Event()
        self.asked = threading.Event()

    def encode_documents(self, texts: Any) -> Any:
        self.asked.set()
        assert self.go.wait(60)
        return super().encode_documents(texts)
