"""A server whose encoder is still loading, or cannot be had."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from mcp import Client

from memlab.encoders import HashingEncoder
from memlab.errors import EncoderUnavailable
from memlab.server.app import MemoryServer
from memlab.server.service import service_for
from memlab.store.encoding import EncoderSlot
from tests.server.conftest import HeldEncoder, answer, ask, call


@pytest.fixture
def loading(monkeypatch):
    """An event that holds up the loading of a store's own encoder; set it to let it come."""
    come = threading.Event()
    resolve = EncoderSlot._resolve

    def held(self, choice):
        assert come.wait(60)
        return resolve(self, choice)

    monkeypatch.setattr(EncoderSlot, "_resolve", held)
    yield come
    come.set()


@pytest.fixture
def filled(make_store):
    """A store that holds a vector already."""
    with make_store() as store:
        store.remember("webhooks retry with jitter")
    return make_store()


def test_a_recall_meanwhile_goes_by_keywords_and_says_so(filled, loading, era):
    service: Any = service_for(filled)

    async def talk(client):
        early = answer(await client.call_tool("recall", {"query": "webhooks"}))
        loading.set()
        assert await anyio.to_thread.run_sync(service.warmup.wait, 60)
        return early, answer(await client.call_tool("recall", {"query": "webhooks"}))

    early, late = ask(MemoryServer(service), talk, era)
    assert early.data["mode"] == "keyword-only"
    assert "the encoder is still loading" in early.data["mode_reason"]
    assert "not hybrid: the encoder is still loading" in early.text
    assert len(early.data["hits"]) == 1
    assert (late.data["mode"], late.data["mode_reason"]) == ("hybrid", "")


def test_a_recall_may_wait(filled, loading):
    service = service_for(filled, wait=60)
    threading.Timer(0.05, loading.set).start()
    assert call(MemoryServer(service), "recall", query="webhooks").data["mode"] == "hybrid"


def test_what_is_remembered_meanwhile_gets_its_vector_afterwards(filled, loading):
    service: Any = service_for(filled)
    embedded = threading.Event()
    embed = service.warmup._embed

    def watched():
        embed()
        embedded.set()

    service.warmup._embed = watched
    got = call(MemoryServer(service), "remember", content="queues back off")
    assert got.data["pending"] is True
    assert "only keywords find it for now" in got.text
    assert filled.stats().pending == 1
    loading.set()
    assert embedded.wait(60)
    assert filled.stats().pending == 0
    service.warmup.close()


def test_without_weights_it_goes_by_keywords_and_says_why(make_store):
    class Missing(HashingEncoder):
        def encode_queries(self, texts):
            raise EncoderUnavailable("the weights are not on this machine; memlab doctor says where they belong")

    store = make_store(encoder=Missing(64))
    store.remember("webhooks retry")
    got = call(MemoryServer(service_for(store)), "recall", query="webhooks")
    assert got.data["mode"] == "keyword-only"
    assert "memlab doctor" in got.data["mode_reason"]
    assert len(got.data["hits"]) == 1


def test_a_store_without_an_encoder_waits_for_none(make_store):
    server = MemoryServer(service_for(make_store(encoder=None), wait=60))
    assert call(server, "remember", content="webhooks retry").data["pending"] is True
    assert call(server, "recall", query="webhooks").data["mode"] == "keyword-only"


def test_a_call_that_is_cancelled_half_way_stores_nothing(make_store, era):
    encoder = HeldEncoder()
    store = make_store(encoder=encoder)
    server = MemoryServer(service_for(store))

    async def talk():
        async with Client(server, mode=era) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "remember", {"content": "given up"})
                assert await anyio.to_thread.run_sync(encoder.asked.wait, 60)
                group.cancel_scope.cancel()
                if era != "legacy":
                    encoder.go.set()  # this client waits until the thread has noticed
            # Over a stream the cancellation is a message; the next answer says that it has been read.
            await client.list_tools()
            encoder.go.set()
            return answer(await client.call_tool("remember", {"content": "kept"}))

    async def limited():
        with anyio.fail_after(60):
            return await talk()

    assert not anyio.run(limited).failed
    assert [memory.content for memory in store.find()] == ["kept"]
    assert [(each.about, each.outcome) for each in server.activity.calls()] == [
        ("given up", "cancelled"),
        ("kept", "ok"),
    ]
