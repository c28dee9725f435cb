"""The tools over the SDK's client in memory, in both eras of the protocol."""

from __future__ import annotations

import json
import math

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import PromptReference

from memlab.server.app import MemoryServer
from memlab.server.service import service_for
from memlab.store.connection import BEFORE_COMMIT
from tests.server.conftest import answer, ask, call

NAMES = ["recall", "remember", "reflect", "forget", "restore", "memories", "category", "sync"]


def walk(node):
    yield node
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from walk(value)


def test_the_tools_are_named_as_their_users_know_them(server, era):
    tools = ask(server, lambda client: client.list_tools(), era).tools
    assert [tool.name for tool in tools] == NAMES
    for tool in tools:
        hints = tool.annotations
        assert None not in (
            hints.title,
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint,
        )
        assert tool.title
        assert tool.description


def test_schemas_are_flat(server):
    for tool in ask(server, lambda client: client.list_tools()).tools:
        for name, each in tool.input_schema.get("properties", {}).items():
            assert each["type"] in ("string", "integer", "boolean", "array"), (tool.name, name)
            assert each["description"]
            if each["type"] == "array":
                assert each["items"] == {"type": "string"}
            assert "enum" not in each or each["type"] == "string"
        assert tool.output_schema["type"] == "object"
        for node in walk([tool.input_schema, tool.output_schema]):
            if isinstance(node, dict):
                assert not {"$defs", "$ref", "anyOf", "oneOf", "allOf"} & node.keys(), tool.name


def test_what_is_remembered_is_recalled(server, era):
    async def talk(client):
        made = answer(
            await client.call_tool(
                "remember",
                {
                    "content": "Webhooks retry with full jitter, capped at 5 min.",
                    "project": "billing",
                    "category": "decision",
                    "tags": "retry, http",
                    "importance": 7,
                },
            )
        )
        return made, answer(await client.call_tool("recall", {"query": "webhooks retry", "recency_boost": True}))

    made, found = ask(server, talk, era)
    assert made.data["tags"] == ["retry", "http"]
    assert made.data["project"] == "billing"
    assert made.data["created"] is True
    (hit,) = found.data["hits"]
    assert hit["id"] == made.data["id"]
    assert hit["content"] == "Webhooks retry with full jitter, capped at 5 min."
    assert (hit["project"], hit["category"], hit["importance"]) == ("billing", "decision", 7)
    assert (hit["created_at"], hit["age"]) == ("2026-03-04T09:12:41.123Z", "today")
    assert hit["score"] == math.fsum(part["contribution"] for part in hit["contributions"]) * hit["recency_factor"]
    assert hit["recency_factor"] > 1
    assert found.data["mode"] == "hybrid"
    assert found.data["mode_reason"] == ""
    assert "| Webhooks retry with full jitter, capped at 5 min." in found.text
    assert hit["id"] in found.text


def test_the_structure_and_the_text_name_the_same_memories(server, store):
    store.remember_many([f"note {i} about retries" for i in range(4)])
    for tool, arguments, key in (
        ("recall", {"query": "retries"}, "hits"),
        ("memories", {"action": "recent"}, "items"),
    ):
        got = call(server, tool, **arguments)
        assert len(got.data[key]) == 4
        assert all(item["id"] in got.text and item["content"] in got.text for item in got.data[key])


@pytest.mark.parametrize(
    "blank", [{"project": "", "category": "", "after": "", "tags": []}, {"project": None, "tags": [""], "limit": 0}]
)
def test_what_is_blank_is_not_given(server, store, blank):
    store.remember("a note about retries", project="billing", tags=["a"])
    got = call(server, "recall", query="retries", **blank)
    assert not got.failed
    assert len(got.data["hits"]) == 1
    assert got.data["project"] == ""


def test_a_nought_in_text_is_a_text(server, store):
    memory_id = call(server, "remember", content="x", category="0").data["id"]
    assert call(server, "reflect", memory_id=memory_id, content="0").data["revision"] == 2
    memory = store.get(memory_id)
    assert (memory.content, memory.category) == ("0", "0")


def test_a_tag_in_brackets_is_a_tag(server):
    assert call(server, "remember", content="x", tags="[draft], b").data["tags"] == ["[draft]", "b"]


@pytest.mark.parametrize("tags", ["a, b", ["a", "b"], '["a", "b"]', " a ,b, "])
def test_tags_come_as_a_list_or_with_commas(server, store, tags):
    assert call(server, "remember", content="x", tags=tags).data["tags"] == ["a", "b"]
    got = call(server, "recall", query="x", tags=tags, tag_match="all")
    assert len(got.data["hits"]) == 1


def test_filters_and_dates_are_those_of_the_library(server, store):
    store.remember("old note", created_at="2026-01-01T00:00:00Z", importance=3)
    store.remember("new note", created_at="2026-03-01T12:00:00+05:00", importance=8, category="fact")

    def found(**given):
        return [hit["content"] for hit in call(server, "recall", query="note", **given).data["hits"]]

    assert set(found()) == {"old note", "new note"}
    assert found(after="2026-03-01") == ["new note"]
    assert found(before="2026-03-01T08:00:00+01:00") == ["old note"]
    assert found(min_importance=4) == ["new note"]
    assert found(category="fact") == ["new note"]
    wrong = call(server, "recall", query="note", after="last week")
    assert wrong.failed
    assert wrong.text.startswith("recall: after: expected a day, for example 2026-03-04")


TIMES = [
    ("2026-07-01", True),
    (" 2026-07-01 ", True),
    ("2026-07-01T00:00:00Z", True),
    ("2026-07-01T10:00:00+02:00", True),
    ("2026-07-01 10:00:00 +0200", True),
    ("2026-07-01T00:00", False),
    ("20260701", False),
    ("2026-7-1", False),
    ("2026-13-45", False),
    ("2026-07", False),
    ("1751328000", False),
    ("yesterday", False),
    ("\x1b[31m2026", False),
    ("9999-12-31T23:59:59-14:00", False),
    ("\uff12\uff10\uff12\uff16-07-01", False),  # digits of another script
]


@pytest.mark.parametrize("name", ["after", "before"])
@pytest.mark.parametrize(("text", "fits"), TIMES)
def test_a_time_is_taken_or_refused_in_words_for_an_assistant(server, name, text, fits):
    got = call(server, "recall", query="note", **{name: text})
    assert got.failed is not fits
    if not fits:
        assert got.text.startswith(f"recall: {name}: expected a day, for example 2026-03-04")
        assert "datetime(" not in got.text
        assert "\x1b" not in got.text


def test_times_the_wrong_way_round_are_said(server, store):
    store.remember("note")
    got = call(server, "recall", query="note", after="2026-07-01", before="2026-06-01")
    assert "swap them" in got.text


def test_a_budget_drops_whole_hits_and_says_so(server, store):
    store.remember_many([f"retries {i} " + "word " * 200 for i in range(5)])
    got = call(server, "recall", query="retries", max_bytes=4000)
    kept, dropped = got.data["hits"], got.data["dropped"]
    assert 0 < len(kept) < 5
    assert len(kept) + len(dropped) == got.data["found"] == 5
    assert all(hit["content"].endswith("word ") or "characters" not in hit for hit in kept)
    assert any("max_bytes=4000" in note for note in got.data["notes"])
    assert all(each in got.text for each in dropped)
    assert sum(len(json.dumps(hit, ensure_ascii=False)) for hit in kept) < 4400


def test_one_huge_memory_does_not_keep_the_others_out(server, store):
    huge = store.remember("retries " * 400 + "\U0001f600" * 3000)
    store.remember_many([f"retries {i}" for i in range(3)])
    got = call(server, "recall", query="retries", max_bytes=3000)
    assert got.data["dropped"] == [huge.memory_id]
    assert len(got.data["hits"]) == 3
    assert f"left out for size: {huge.memory_id}" in got.text


@pytest.mark.parametrize("letter", ["x", "\u6f22", "\U0001f600"])
def test_what_no_answer_can_hold_is_shown_from_its_beginning(server, store, letter):
    memory = store.remember(letter * 150_000)
    got = call(server, "memories", action="get", memory_id=memory.memory_id)
    (item,) = got.data["items"]
    assert item["content"].startswith(letter * 30_000)
    assert item["characters"] == 150_000
    assert got.data["shortened"] == [memory.memory_id]
    assert len(json.dumps(item, ensure_ascii=False).encode()) < 201_000
    assert "this is the beginning of 150,000 characters" in got.text
    assert "action get shows all" not in got.text


def test_a_history_says_what_it_cuts(server, store):
    memory = store.remember("x" * 5000)
    store.update(memory.memory_id, content="short")
    got = call(server, "memories", action="history", memory_id=memory.memory_id)
    assert "revisions cut to 4,000 characters: 1;" in got.text


def test_long_content_is_cut_and_get_shows_all(server, store):
    memory = store.remember("retries " + "x" * 9000)
    (hit,) = call(server, "recall", query="retries").data["hits"]
    assert (len(hit["content"]), hit["characters"]) == (4001, 9008)
    whole = call(server, "memories", action="get", memory_id=memory.memory_id)
    assert whole.data["items"][0]["content"] == memory.content
    assert whole.data["shortened"] == []


def test_a_limit_beyond_the_most_is_lowered_with_a_note(server, store):
    store.remember_many([f"retries {i}" for i in range(60)])
    got = call(server, "recall", query="retries", limit=1000, max_bytes=200_000)
    assert len(got.data["hits"]) == 50
    assert "limit: 1000 was lowered to 50, the most there is" in got.data["notes"]


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("recall", {}, "recall: query is needed. It takes query"),
        ("recall", {"query": "  "}, "recall: query is blank"),
        ("recall", {"query": "x", "limit": "many"}, "limit should be a valid integer"),
        ("recall", {"query": "x", "tag_match": "some"}, "tag_match should be 'any' or 'all'"),
        ("recall", {"query": "x", "project": "current"}, "no current project"),
        ("remember", {"content": " "}, "content: expected some text"),
        ("remember", {"content": "x", "importance": 11}, "importance should be less than or equal to 10"),
        ("remember", {"content": "x" * 200_001}, "expected at most 200,000 characters"),
        ("reflect", {"memory_id": "m-1"}, "recall, or memories with action 'recent' or 'trash', gives exact ids"),
        ("forget", {}, "memory_id is needed"),
        ("memories", {"action": "get"}, "needs memory_id"),
        ("memories", {"action": "purge"}, "action should be 'recent', 'get'"),
        ("category", {"action": "update", "name": "nothing", "new_name": "x"}, "there is no 'nothing'"),
        ("category", {"action": "update", "name": "note"}, "needs new_name"),
        ("remeber", {"content": "x"}, "Unknown tool: remeber; there are: recall, remember"),
    ],
)
def test_an_error_says_what_to_do(server, era, tool, arguments, says):
    got = call(server, tool, era, **arguments)
    assert got.failed
    assert says in got.text
    assert "Error executing" not in got.text


def test_a_fault_of_the_protocol_is_an_error_of_the_protocol(server, era):
    async def talk(client):
        with pytest.raises(MCPError, match="no memory has the id 'm-nobody'"):
            await client.read_resource("memlab://memories/m-nobody")
        with pytest.raises(MCPError, match="Unknown resource"):
            await client.read_resource("memlab://nothing")
        with pytest.raises(MCPError, match="Unknown prompt: nothing; there is memory_guide"):
            await client.get_prompt("nothing")

    ask(server, talk, era)


def test_an_error_is_bounded_whatever_was_given(server, store):
    store.remember("x", memory_id="m-1")
    for tool, arguments in (
        ("forget", {"memory_id": "x" * 100_000}),
        ("memories", {"action": "get", "memory_id": "x" * 100_000}),
        ("recall", {"query": "x", "limit": 10**4000}),
        ("recall", {"query": "x", **{f"{'z' * 1000}{number}": 1 for number in range(500)}}),
    ):
        assert len(call(server, tool, **arguments).text) < 3000


def test_advice_is_for_an_assistant_and_not_for_python(server, store):
    call(server, "remember", content="one; two", idempotency_key="k")
    known = call(server, "remember", content="three", idempotency_key="k")
    assert known.text.endswith("; use a new key, or change that memory with reflect")
    half = call(server, "remember", content="half \ud83d")
    assert half.text.endswith("; send the text again without it")
    for said in (known, half):
        assert said.failed
        assert "(" not in said.text


def test_an_unknown_parameter_is_named(server):
    got = call(server, "remember", content="x", catagory="decision")
    assert not got.failed
    assert any("'catagory' is no parameter" in note for note in got.data["notes"])


def test_a_name_that_no_memory_has_is_answered_with_those_there_are(server, store):
    store.remember("retries", project="billing", tags=["http"])
    got = call(server, "recall", query="retries", project="shipping", tags=["htp"])
    assert got.data["hits"] == []
    assert "no memory has the project 'shipping'; there are: billing" in got.data["notes"]
    assert "no memory has the tag 'htp'; there are: http" in got.data["notes"]


def test_what_the_server_did_not_expect_stays_with_it(server, service, monkeypatch, caplog):
    monkeypatch.setattr(type(service.store), "find", lambda *_, **__: 1 / 0)
    got = call(server, "memories")
    assert got.failed
    assert "division" not in got.text
    assert not call(server, "memories", action="stats").failed


# -- forget, restore, reflect ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [lambda i: i[:-1], lambda i: i + "%", lambda i: "%", lambda i: f" {i}", str.upper])
def test_forget_takes_exact_ids_only(server, store, change):
    memory = store.remember("keep me", memory_id="m-abcdefghij")
    assert call(server, "forget", memory_id=change(memory.memory_id)).failed
    assert len(store) == 1


def test_forget_goes_to_the_trash_and_restore_brings_back(server, store):
    memory = store.remember("keep me")
    assert call(server, "forget", memory_id=memory.memory_id).data["changed"] is True
    assert call(server, "forget", memory_id=memory.memory_id).data["changed"] is False
    assert call(server, "recall", query="keep").data["hits"] == []
    (item,) = call(server, "memories", action="trash").data["items"]
    assert item["trashed_at"] == "2026-03-04T09:12:41.123Z"
    wrong = call(server, "reflect", memory_id=memory.memory_id, content="new")
    assert wrong.failed
    assert "restore it first" in wrong.text
    assert call(server, "restore", memory_id=memory.memory_id).data == {
        "id": memory.memory_id,
        "in_trash": False,
        "changed": True,
        "notes": [],
    }
    assert len(call(server, "recall", query="keep").data["hits"]) == 1


def test_reflect_changes_what_is_given_and_keeps_the_former_text(server, store):
    memory = store.remember("Retries: 3.", project="billing", tags=["a"], importance=4)
    got = call(server, "reflect", memory_id=memory.memory_id, content="Retries: 5.", add_tags="b", importance=0)
    assert (got.data["memory"]["content"], got.data["revision"]) == ("Retries: 5.", 2)
    now = store.get(memory.memory_id)
    assert (now.tags, now.importance, now.project) == (("a", "b"), 4, "billing")
    history = call(server, "memories", action="history", memory_id=memory.memory_id)
    assert [(each["revision"], each["content"]) for each in history.data["revisions"]] == [
        (2, "Retries: 5."),
        (1, "Retries: 3."),
    ]
    call(server, "reflect", memory_id=memory.memory_id, project="none")
    assert store.get(memory.memory_id).project is None


def test_tags_that_are_added_at_the_same_time_all_stay(server, store):
    memory_id = store.remember("x", tags=["first"]).memory_id
    names = [f"t{number}" for number in range(12)]

    async def talk():
        async with Client(server) as client, anyio.create_task_group() as group:
            for name in names:
                group.start_soon(client.call_tool, "reflect", {"memory_id": memory_id, "add_tags": name})

    anyio.run(talk)
    assert sorted(store.get(memory_id).tags) == sorted(["first", *names])
    call(server, "reflect", memory_id=memory_id, tags="only", add_tags=["this", "only"])
    assert store.get(memory_id).tags == ("only", "this")


def test_an_idempotency_key_stores_once(server, store):
    first = call(server, "remember", content="x", idempotency_key="k")
    second = call(server, "remember", content="x", idempotency_key="k")
    assert (second.data["id"], second.data["created"]) == (first.data["id"], False)
    assert call(server, "remember", content="y", idempotency_key="k").failed
    assert len(store) == 1


def test_a_memory_says_which_program_stored_it(server, store, era):
    async def talk():
        from mcp.types import Implementation

        who = Implementation(name="some-assistant", version="1.2")
        async with Client(server, mode=era, client_info=who) as client:
            await client.call_tool("remember", {"content": "x"})
            await client.call_tool("remember", {"content": "y", "source": "user-told"})

    anyio.run(talk)
    assert {memory.source for memory in store.find()} == {"some-assistant 1.2", "user-told"}
    assert "stored note; source: user-told" in call(server, "recall", query="y").text


# -- memories, category ----------------------------------------------------------------------------------------------


def test_memories_lists_and_counts(server, store):
    store.remember("one", project="billing", category="decision")
    store.remember("two", project="billing")
    store.remember("three", project="search")

    def counted(action):
        return {each["name"]: each["memories"] for each in call(server, "memories", action=action).data["counts"]}

    assert counted("by-project") == {"billing": 2, "search": 1}
    assert counted("by-category") == {"note": 2, "decision": 1}
    of_billing = call(server, "memories", action="by-category", project="billing")
    assert of_billing.data["counts"] == [{"name": "decision", "memories": 1}, {"name": "note", "memories": 1}]
    of_notes = call(server, "memories", action="by-project", category="decision")
    assert of_notes.data["counts"] == [{"name": "billing", "memories": 1}]
    whole = call(server, "memories", action="stats", project="search")
    assert (whole.data["stats"]["memories"], whole.data["project"]) == (3, "")
    assert "1 memories are of 'search'" in whole.text
    items = call(server, "memories", action="by-project", project="billing").data["items"]
    assert {item["content"] for item in items} == {"one", "two"}
    stats = call(server, "memories", action="stats").data["stats"]
    assert (stats["memories"], stats["projects"], stats["encoder"]) == (3, 2, "hashing-64")
    few = call(server, "memories", action="recent", limit=2)
    assert len(few.data["items"]) == 2
    assert "there are more than 2; raise limit to see them" in few.data["notes"]


def test_category_renames_merges_and_dissolves(server, store):
    store.remember("one", category="decison")
    store.remember("two", category="decision")
    got = call(server, "category", action="update", name="decison", new_name="decision")
    assert (got.data["moved"], got.data["categories"]) == (1, [{"name": "decision", "memories": 2}])
    assert call(server, "category", action="delete", name="decision").data["moved"] == 2
    assert store.categories() == {"note": 2}
    made = call(server, "category", action="create", name="idea")
    assert "nothing was stored" in made.data["notes"][0]


def test_a_category_moves_whole_or_not_at_all(store):
    for number in range(3):
        store.remember(f"note {number}", category="old")
    checks = iter((lambda: None, _fail))

    def check():
        next(checks)()

    token = BEFORE_COMMIT.set(check)
    try:
        assert store.change_category("old", "new") == 3
        with pytest.raises(RuntimeError):
            store.change_category("new", "newer")
    finally:
        BEFORE_COMMIT.reset(token)
    assert store.categories() == {"new": 3}
    assert store.check().ok


def _fail():
    raise RuntimeError("the caller has gone")


@pytest.mark.parametrize(
    "arguments",
    [
        {"category": "x" * 201},
        {"tags": ["x" * 201]},
        {"tags": [str(number) for number in range(51)]},
        {"source": "x" * 201},
        {"idempotency_key": "x" * 201},
    ],
    ids=lambda arguments: next(iter(arguments)),
)
def test_a_name_that_no_answer_could_show_is_not_stored(server, store, arguments):
    got = call(server, "remember", content="x", **arguments)
    assert got.failed
    assert next(iter(arguments)) in got.text
    assert len(store) == 0


@pytest.mark.parametrize("tool", ["memories", "sync", "recall"])
def test_a_project_that_is_not_there_is_said(server, store, tool):
    store.remember("x", project="billing")
    got = call(server, tool, project="biling", **({"query": "x"} if tool == "recall" else {}))
    assert got.data["project"] == "biling"
    assert "no memory has the project 'biling'; there are: billing" in got.data["notes"]


# -- read-only -------------------------------------------------------------------------------------------------------


def test_a_read_only_server_has_no_tool_that_writes(make_store, store):
    store.remember("retries")
    server = MemoryServer(service_for(make_store(read_only=True)))
    tools = ask(server, lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == ["recall", "memories", "category", "sync"]
    assert all(tool.annotations.read_only_hint and not tool.annotations.destructive_hint for tool in tools)
    assert len(call(server, "recall", query="retries").data["hits"]) == 1
    refused = call(server, "remember", content="x")
    assert refused.failed
    assert "read-only" in refused.text
    moved = call(server, "category", action="update", name="note", new_name="x")
    assert moved.failed
    assert "read-only" in moved.text
    assert len(store) == 1


# -- resources, prompt, completion -----------------------------------------------------------------------------------


def test_resources(server, store, era):
    memory = store.remember("retries", project="billing", category="decision")

    async def talk(client):
        listed = [str(each.uri) for each in (await client.list_resources()).resources]
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        read = []
        for uri in ("memlab://store", "memlab://categories", f"memlab://memories/{memory.memory_id}"):
            (content,) = (await client.read_resource(uri)).contents
            assert content.mime_type == "application/json"
            read.append(json.loads(content.text))
        return listed, templates, read

    listed, templates, (card, categories, one) = ask(server, talk, era)
    assert listed == ["memlab://store", "memlab://categories"]
    assert templates == ["memlab://memories/{memory_id}"]
    assert (card["memories"], card["projects"]) == (1, [{"name": "billing", "memories": 1}])
    assert categories == {"categories": [{"name": "decision", "memories": 1}]}
    assert (one["content"], one["origin"]) == ("retries", "stored note; source: unknown")


def test_the_prompt_teaches_when_to_remember(server, era):
    async def talk(client):
        (listed,) = (await client.list_prompts()).prompts
        return listed, await client.get_prompt("memory_guide", {"project": "billing"})

    listed, got = ask(server, talk, era)
    assert listed.description
    assert [(each.name, each.required) for each in listed.arguments] == [
        ("project", False),
        ("category", False),
        ("tag", False),
    ]
    (message,) = got.messages
    assert "Recall" in message.content.text
    assert "project 'billing'" in message.content.text


def test_completion_of_project_category_and_tag(server, store, era):
    store.remember("x", project="billing", category="decision", tags=["http", "retry"])
    store.remember("y", project="big-search", tags=["\x1b[31mred"])

    async def talk(client):
        found = {}
        for name, begun in (("project", "bi"), ("category", ""), ("tag", "r"), ("query", "x")):
            ref = PromptReference(type="ref/prompt", name="memory_guide")
            result = await client.complete(ref, {"name": name, "value": begun})
            found[name] = result.completion.values
        return found

    assert ask(server, talk, era) == {
        "project": ["big-search", "billing"],
        "category": ["decision", "note"],
        "tag": ["retry"],
        "query": [],
    }
