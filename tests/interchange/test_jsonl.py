"""JSON Lines: what goes out comes in again, and what is wrong is refused by file and line."""

import base64
import io
import json
import stat
import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab import HashingEncoder, MemoryStore, PassagePolicy
from memlab.errors import DuplicateIdError, FormatError, IdempotencyError, InvalidValue, StoreError
from memlab.interchange import export_jsonl, import_jsonl
from memlab.interchange.json_text import json_text

NOW = "2026-09-01T12:00:00Z"


class Clock:
    def __init__(self):
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(seconds=1)
        return self.now


def new_store(path, encoder="small", **options):
    chosen = HashingEncoder(16, token_limit=8) if encoder == "small" else encoder
    return MemoryStore(path, chosen, clock=Clock(), **options)


@pytest.fixture
def store(tmp_path):
    with new_store(tmp_path / "a.db") as made:
        yield made


def full(store):
    """A store with everything that can hang on a memory."""
    store.remember("short", memory_id="m-1", idempotency_key="k-1", tags=["x", "é"], importance=9)
    store.remember("one two three four. " * 6, memory_id="m-2", project="p", related_files=["a/b.py"])
    store.remember("before", memory_id="m-3", idempotency_key="k-3", file_checksums={"f": "abc"}, source="chat")
    store.update("m-3", content="in between")
    store.update("m-3", content="after", subcategory="sub")
    store.touch("m-1")
    store.remember("thrown away", memory_id="m-4")
    store.forget("m-4")
    return store


def exported(store, **options):
    out = io.BytesIO()
    count = export_jsonl(store, out, **options)
    assert count == out.getvalue().count(b"\n")
    return out.getvalue()


def lines(*values):
    return io.BytesIO("".join(json.dumps(value) + "\n" for value in values).encode())


@pytest.mark.parametrize("vectors", [False, True])
def test_out_and_in_and_out_is_the_same(tmp_path, store, vectors):
    first = exported(full(store), vectors=vectors)
    with new_store(tmp_path / "b.db") as other:
        result = import_jsonl(other, io.BytesIO(first))
        assert (result.created, result.existing, result.pending) == (4, 0, 0)
        assert result.vectors == (4 if vectors else 0)
        assert exported(other, vectors=vectors) == first
        assert [r.content for r in other.history("m-3")] == ["before", "in between", "after"]
        assert other.passages("m-2") == store.passages("m-2")
        assert other.check().ok
        with pytest.raises(IdempotencyError):
            other.remember("other", idempotency_key="k-3")
        assert other.remember("before", idempotency_key="k-3").memory_id == "m-3"


def test_a_line_has_the_names_of_the_api(store):
    line = json.loads(exported(full(store), vectors=True).splitlines()[2])
    assert list(line)[:3] == ["memory_id", "content", "category"]
    assert line["revisions"][0] == {"content": "before", "replaced_at": "2026-03-01T00:00:04.000Z"}
    assert line["idempotency_keys"][0]["key"] == "k-3"
    assert line["encoder"]["name"] == "hashing-16"
    assert len(base64.b64decode(line["vector"])) == 64


def test_filters_and_trash(store):
    full(store)
    assert [json.loads(line)["memory_id"] for line in exported(store, filters={"project": "p"}).splitlines()] == ["m-2"]
    assert b"m-4" not in exported(store, trashed=False)
    assert b"m-4" in exported(store)


ODD = st.text(
    alphabet=st.one_of(
        st.characters(exclude_categories=["Cs"]), st.sampled_from('\n\r\t\x00\x1b\x85\u2028\u2029\ufeff"\\😀漢é')
    ),
    min_size=1,
    max_size=60,
).filter(lambda text: text.strip())
NAME = ODD.map(lambda text: text.replace("\x00", "")).filter(lambda text: text.strip())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=st.lists(
        st.fixed_dictionaries(
            {"content": ODD, "tags": st.lists(NAME, max_size=3), "project": st.none() | NAME},
            optional={"idempotency_key": NAME, "related_files": st.lists(NAME, max_size=2)},
        ),
        max_size=5,
        unique_by=lambda record: str(record.get("idempotency_key", "")).strip() or id(record),
    ),
    updates=st.lists(ODD, max_size=3),
)
def test_no_content_is_lost_whatever_it_is(tmp_path_factory, records, updates):
    folder = tmp_path_factory.mktemp("odd")
    with new_store(folder / "a.db") as one, new_store(folder / "b.db") as two:
        ids = one.remember_many(records).memory_ids
        for content in updates[: len(ids)]:
            one.update(ids[0], content=content)
        first = exported(one, vectors=True)
        assert len(first.decode().splitlines()) == first.count(b"\n")  # no reader sees more lines than there are
        import_jsonl(two, io.BytesIO(first))
        assert exported(two, vectors=True) == first
        assert [m.content for m in two.find()] == [m.content for m in one.find()]
        assert two.check().ok


def test_a_path_appears_whole_private_or_not_at_all(tmp_path, store):
    path = tmp_path / "out.jsonl"
    path.write_text("old")
    path.chmod(0o644)
    assert export_jsonl(full(store), path) == 4
    assert path.read_bytes() == exported(store)
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = set(tmp_path.iterdir())
    with pytest.raises(InvalidValue, match="directory"):
        export_jsonl(store, tmp_path)
    with pytest.raises(InvalidValue, match="does not exist"):
        export_jsonl(store, tmp_path / "no" / "x.jsonl")
    with pytest.raises(InvalidValue, match="store itself"):
        export_jsonl(store, store.path)
    assert set(tmp_path.iterdir()) == before
    assert store.check().ok


def test_a_failing_disk_leaves_the_old_file(tmp_path, store, monkeypatch):
    path = tmp_path / "out.jsonl"
    path.write_text("old")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    before = set(tmp_path.iterdir())
    with pytest.raises(StoreError, match="No space left"):
        export_jsonl(full(store), path)
    assert path.read_text() == "old"
    assert {p for p in tmp_path.iterdir() if p.suffix == ".jsonl"} == {p for p in before if p.suffix == ".jsonl"}
    assert not list(tmp_path.glob(".out*"))


def test_text_files_work_too(tmp_path, store):
    out = io.StringIO()
    export_jsonl(full(store), out)
    with new_store(tmp_path / "b.db") as other:
        assert import_jsonl(other, io.StringIO(out.getvalue())).created == 4
        assert exported(other).decode() == out.getvalue()


def test_again_adds_nothing_and_overwrites_nothing(store):
    text = exported(full(store))
    result = import_jsonl(store, io.BytesIO(text))
    assert (result.created, result.existing) == (0, 4)
    assert exported(store) == text
    with pytest.raises(DuplicateIdError, match="input, line 2: memory m-1 exists with other content"):
        import_jsonl(store, lines({"content": "new"}, {"memory_id": "m-1", "content": "other"}))
    assert exported(store) == text


def test_vectors_of_another_encoder_or_policy_are_made_anew(tmp_path, store):
    text = exported(full(store), vectors=True)
    for number, (encoder, options) in enumerate(
        [
            (HashingEncoder(24), {}),
            (HashingEncoder(16, token_limit=8), {"passages": PassagePolicy(aggregate="first")}),
        ]
    ):
        with new_store(tmp_path / f"{number}.db", encoder, **options) as other:
            result = import_jsonl(other, io.BytesIO(text))
            assert (result.vectors, result.pending) == (0, 0)
            assert other.check().ok
    with new_store(tmp_path / "none.db", None) as other:
        result = import_jsonl(other, io.BytesIO(text))
        assert (result.vectors, result.pending) == (0, 4)
        assert "encoder=None" in result.note
        assert exported(other) == exported(store)


def test_an_own_vector_is_taken_over_to_the_last_bit(tmp_path, store):
    own = np.linspace(1, 2, 16)
    store.remember("of my own", memory_id="m-v", vector=own)
    with new_store(tmp_path / "b.db") as other:
        import_jsonl(other, io.BytesIO(exported(store, vectors=True)))
        assert (other.vectors()[1] == store.vectors()[1]).all()


# -- other layouts ---------------------------------------------------------------------------------------------------


def test_minimal_lines_and_a_second_run(store):
    source = [{"content": "a"}, {"text": "b"}, {"content": "a"}]
    result = import_jsonl(store, lines(*source), now=NOW)
    assert (result.created, result.existing) == (3, 0)
    assert len(result.duplicates) == 1
    assert {memory.created_at for memory in store.find()} == {datetime(2026, 9, 1, 12, tzinfo=UTC)}
    assert import_jsonl(store, lines(*source)).existing == 3
    assert len(store) == 3


def test_beir(store):
    result = import_jsonl(
        store,
        lines(
            {"_id": "d1", "title": "Title", "text": "Text", "metadata": {"project": "p", "tags": ["t"], "url": "x"}},
            {"_id": "d2", "title": "", "text": "Only text", "metadata": {"importance": 8, "url": "y"}},
            {"_id": "d3", "text": "No more"},
        ),
    )
    assert store.get("d1").content == "Title\n\nText"
    assert (store.get("d1").project, store.get("d1").tags) == ("p", ("t",))
    assert store.get("d2").content == "Only text"
    assert store.get("d2").importance == 8
    assert result.left_out == {"url": 2}


def test_bom_blank_lines_and_crlf(store):
    text = b'\xef\xbb\xbf{"content":"a"}\r\n\r\n\n{"content":"b"}'
    assert import_jsonl(store, io.BytesIO(text)).created == 2


GOOD = {"memory_id": "m-g", "content": "good"}
VECTOR = base64.b64encode(np.full(16, 0.25, "<f4").tobytes()).decode()
FACTS = {"name": "n", "fingerprint": "f", "dimension": 16}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "expected JSON"),
        (b"[]", "expected an object, found list"),
        (b'{"content": NaN}', "NaN is no JSON"),
        (b'{"content": "a", "content": "b"}', "'content' is given twice"),
        (b'{"content": "\xff"}', "expected UTF-8"),
        (b'{"content": "\\ud800"}', "surrogate"),
        (b"[" * 200_000, "expected JSON"),
        ({}, "expected content"),
        ({"content": " "}, "white space"),
        ({"content": 7}, "expected text, found int"),
        ({"content": "a", "text": "b"}, "found both"),
        ({"content": "a", "title": "b"}, "title"),
        ({"content": "a", "colour": "red"}, "'colour' is unknown; the keys are content"),
        ({"content": "a", "importance": 11}, "from 1 to 10"),
        ({"content": "a", "importance": "7"}, "from 1 to 10"),
        ({"content": "a", "tags": "x"}, "tags: expected a list"),
        ({"content": "a", "tags": [1]}, "tags"),
        ({"content": "a", "project": []}, "project: expected text"),
        ({"content": "a", "created_at": "2026-01-01"}, "time zone"),
        ({"content": "a", "access_count": -1}, "access_count"),
        ({"content": "a", "access_count": 2**63}, "too large"),
        ({"content": "a", "file_checksums": ["x"]}, "file_checksums"),
        ({"content": "a", "memory_id": ""}, "memory_id"),
        ({"content": "a", "metadata": []}, "metadata"),
        ({"content": "a", "project": "p", "metadata": {"project": "q"}}, "given twice"),
        ({"content": "a", "revisions": ["x"]}, "revisions"),
        ({"content": "a", "revisions": [{"content": "x"}]}, "replaced_at"),
        ({"content": "a", "idempotency_keys": [{"key": "k", "content_hash": "z"}]}, "64 hexadecimal"),
        ({"content": "a", "vector": VECTOR}, "encoder"),
        ({"content": "a", "encoder": FACTS, "vector": "AAAA"}, "16 little-endian float32"),
        ({"content": "a", "encoder": FACTS, "vector": base64.b64encode(bytes(64)).decode()}, "length 1"),
        (
            {
                "content": "abcd",
                "encoder": FACTS,
                "vector": VECTOR,
                "passages": [{"start": 0, "end": 9, "vector": VECTOR}],
            },
            "passages",
        ),
        (
            {
                "content": "abcd",
                "encoder": FACTS,
                "vector": VECTOR,
                "passages": [{"start": 0, "end": 3, "vector": VECTOR}],
            },
            "cover the content",
        ),
    ],
)
def test_a_faulty_line_is_named_and_its_batch_is_not_stored(tmp_path, store, line, says):
    path = tmp_path / "in.jsonl"
    faulty = line if isinstance(line, bytes) else json.dumps(line).encode()
    good = [json.dumps({"memory_id": f"m-{i}", "content": f"good {i}"}).encode() for i in range(4)]
    path.write_bytes(b"\n".join([*good[:3], faulty, good[3], b""]))
    with pytest.raises(FormatError) as caught:
        import_jsonl(store, path, batch_size=2)
    assert str(caught.value).startswith(f"{path}, line 4: ")
    assert says in str(caught.value)
    assert {memory.memory_id for memory in store.find()} == {"m-0", "m-1"}
    path.write_bytes(b"\n".join(good))
    result = import_jsonl(store, path, batch_size=2)
    assert (result.created, result.existing) == (2, 2)


def test_keys_that_stand_for_other_content(store):
    full(store)
    key = json.loads(exported(store).splitlines()[0])["idempotency_keys"][0]
    same = import_jsonl(store, lines({"memory_id": "m-9", "content": "short", "idempotency_keys": [key]}))
    assert (same.created, same.existing) == (0, 1)
    with pytest.raises(IdempotencyError, match="line 1"):
        import_jsonl(
            store, lines({"memory_id": "m-9", "content": "x", "idempotency_keys": [{**key, "content_hash": "0" * 64}]})
        )
    assert "m-9" not in store


def test_the_same_id_twice_in_one_file(store):
    assert import_jsonl(store, lines(GOOD, GOOD)).existing == 1
    with pytest.raises(DuplicateIdError, match="line 2"):
        import_jsonl(store, lines({"memory_id": "n", "content": "1"}, {"memory_id": "n", "content": "2"}))
    assert "n" not in store


def test_a_file_that_is_not_there(tmp_path, store):
    with pytest.raises(FormatError, match="cannot be read"):
        import_jsonl(store, tmp_path / "no.jsonl")


def test_json_text_steers_no_terminal():
    text = "\x1b\x9b\x7f\u202e\u2028\ud800é漢"
    written = json_text({"t": text})
    assert json.loads(written)["t"] == text
    assert written.isprintable()
    assert "é漢" in written
