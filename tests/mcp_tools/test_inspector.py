"""The MCP Inspector lists every tool and calls each, over both transports, in both eras."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import memlab
from memlab.encoders import HashingEncoder
from memlab.store import MemoryStore
from tests.mcp_tools.conftest import Inspector, stdio

pytestmark = pytest.mark.mcp_tools
TOOL_ERROR = 5
CALLS = {
    "recall": {"query": "webhooks", "recency_boost": True, "tags": []},
    "remember": {"content": "queues back off", "tags": ["queue"], "importance": 7},
    "reflect": {"memory_id": "m-retries", "content": "webhooks retry with full jitter"},
    "forget": {"memory_id": "m-wrong"},
    "restore": {"memory_id": "m-trash"},
    "memories": {"action": "stats"},
    "category": {"action": "list"},
    "sync": {},
}


@pytest.fixture(params=["stdio", "http"])
def inspector(request, programs, db, tmp_path, monkeypatch):
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "data"))
    if request.param == "stdio":
        yield Inspector(programs, tmp_path, stdio(db))
        return
    with MemoryStore(db, HashingEncoder(64)) as store, memlab.serve(store) as server:
        header = f"Authorization: Bearer {server.token.value}"
        yield Inspector(programs, tmp_path, [server.url, "--transport", "http", "--header", header])


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_every_tool_is_listed_without_a_complaint(inspector, era):
    code, found, said = inspector.run("--protocol-era", era, "--method", "tools/list", "--strict")
    assert code == 0, said
    assert [tool["name"] for tool in found["result"]["tools"]] == list(CALLS)
    assert "error" not in said.lower()


def test_every_tool_can_be_called(inspector):
    def call(name):
        arguments = json.dumps(CALLS[name])
        era = "modern" if len(name) % 2 else "legacy"
        return inspector.run(
            *("--protocol-era", era, "--method", "tools/call"), *("--tool-name", name, "--tool-args-json", arguments)
        )

    with ThreadPoolExecutor(2) as pool:  # each is a process of its own, or two
        for name, (code, found, said) in zip(CALLS, pool.map(call, CALLS), strict=True):
            assert code == 0, (name, found, said)
            assert found["result"]["structuredContent"], name


def test_a_tool_error_is_told_from_others(inspector):
    given = ["--method", "tools/call", "--tool-name", "forget", "--tool-args-json", '{"memory_id": "nobody"}']
    code, found, _ = inspector.run("--protocol-era", "modern", *given)
    assert code == TOOL_ERROR
    assert "gives exact ids" in found["result"]["content"][0]["text"]


def test_resources_and_prompts(inspector):
    code, found, said = inspector.run("--protocol-era", "modern", "--method", "resources/list")
    assert code == 0, said
    assert {each["uri"] for each in found["result"]["resources"]} == {"memlab://store", "memlab://categories"}
    code, found, said = inspector.run("--protocol-era", "modern", "--method", "prompts/list")
    assert code == 0, said
    assert [each["name"] for each in found["result"]["prompts"]] == ["memory_guide"]
