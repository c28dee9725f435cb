"""The map's Python side: what it answers, what can be set, what it keeps. The view itself is tested in a browser."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
import pytest

import memlab
from memlab.encoders import HashingEncoder
from memlab.errors import InvalidValue
from memlab.projection import COLUMNS
from memlab.projection import columns as told_apart
from memlab.widgets.map import MemoryMap
from memlab.widgets.map.picture import HEIGHT, WIDTH, draw

SUBJECTS = ("webhook retry jitter", "parquet column reader", "pilot tablet sync", "invoice tax rate")


@pytest.fixture
def store(make_store):
    found = make_store(encoder=HashingEncoder())
    found.remember_many(
        {
            "content": f"{SUBJECTS[at % 4]} number {at}",
            "memory_id": f"m-{at}",
            "project": ("billing", "engine", None)[at % 3],
            "category": "note" if at % 2 else "decision",
            "importance": at % 5 + 3,
            "created_at": f"2026-0{at % 6 + 1}-10T00:00:00Z",
        }
        for at in range(40)
    )
    return found


@pytest.fixture
def view(store):
    return memlab.map(memlab.HybridRetriever(store), method="pca")


def unpacked(buffer, count):
    return np.flatnonzero(np.unpackbits(np.frombuffer(buffer, np.uint8), count=count)).tolist()


def packed(rows, count):
    flags = np.zeros(count, bool)
    flags[rows] = True
    return base64.b64encode(np.packbits(flags).tobytes()).decode()


def pixels(png):
    """The image of a PNG of ours, uint8, shape (height, width, 3)."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, size = 8, b"", (0, 0)
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        if kind == b"IDAT":
            data += body
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(size[1], 1 + 3 * size[0])
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(size[1], size[0], 3)


# -- what a view begins with -------------------------------------------------------------------------------------------


def test_points_and_codes_are_sent_as_they_are(view):
    hello = view.on_hello({})
    points, codes, chosen = hello.buffers
    np.testing.assert_allclose(np.frombuffer(points, "<f4").reshape(-1, 2), view.projection.coordinates, atol=1e-5)
    names = [column["name"] for column in hello.body["columns"]]
    assert names == ["project", "category", "age", "importance", "source"]
    codes = np.frombuffer(codes, np.uint8).reshape(len(names), 40)
    project = hello.body["columns"][0]
    for memory, code in zip(view.store.get_many(view.projection.ids), codes[0].tolist(), strict=True):
        assert project["values"][code] == (memory.project or "no project")
    assert sum(project["counts"]) == 40
    assert unpacked(chosen, 40) == []
    assert hello.body["asks"]
    assert hello.body["landing"] is None


def test_an_empty_store_has_an_empty_map(make_store):
    view = memlab.map(make_store())
    assert view.on_hello({}).body["count"] == 0
    assert pixels(view.picture()["image/png"]).min() == 255
    assert len(view.selected) == len(view.outliers) == len(view.duplicates) == 0
    assert view.on_faith({})["k"] == 0
    assert view.on_faith({})["sentence"] == "There are too few memories to say how faithful the picture is."
    view.colour = "cluster"
    assert view.picture()["text/plain"] == "Map of a memory: no memory has a vector yet."


def test_columns_take_few_values_and_count_the_rest(make_store):
    store = make_store(encoder=None)
    store.remember_many([{"content": f"text {at}", "project": f"p{at // 2:02}"} for at in range(40)])
    ids = [memory.memory_id for memory in store.find()]
    column = told_apart(store, ids)["project"]
    assert len(column.values) == 8
    assert column.values[-1] == "13 others"
    assert column.counts == (2,) * 7 + (26,)
    assert column.codes.max() == 7


def test_ages_and_importance_have_an_order(view):
    found = told_apart(view.store, view.projection.ids)
    assert found["age"].ordered
    assert found["age"].values == tuple(f"2026-0{month}" for month in range(6, 0, -1))
    assert found["importance"].values == ("7", "6", "5", "4", "3")
    assert not found["project"].ordered


# -- questions ---------------------------------------------------------------------------------------------------------


def test_what_a_memory_says_is_fetched_when_it_is_asked_for(view):
    told = view.on_text({"row": 4})
    assert told["id"] == "m-4"
    assert told["text"] == "webhook retry jitter number 4"
    assert "engine · decision · 2026-05-10" in told["facts"]
    view.store.forget("m-4")
    assert view.on_text({"row": 4})["text"] == "(forgotten since)"
    for row in (-1, 40, True, "4", None):
        assert view.on_text({"row": row}) is None


def test_control_characters_are_not_obeyed(make_store):
    store = make_store(encoder=HashingEncoder())
    store.remember("\x1b[31mred\x1b[0m \u202eback", memory_id="m-\x1b")
    view: Any = memlab.map(store)
    told = view.on_text({"row": 0})
    assert "\x1b" not in told["text"] + told["id"]
    assert "\u202e" not in told["text"]


def test_search_looks_at_text_and_labels_in_upper_and_lower_case(view):
    answer = view.on_find({"text": " PARQUET "})
    assert unpacked(answer.buffers[0], 40) == list(range(1, 40, 4))
    assert answer.body == {"text": "PARQUET", "count": 10}
    assert view.on_find({"text": "billing"}).body["count"] == 14
    assert view.on_find({"text": ""}).body["count"] == 0
    assert view.on_find({"text": "%"}).body["count"] == 0


def test_a_choice_is_a_frame(view):
    told = view.on_select({"mask": packed([3, 8, 21], 40)})
    assert told["count"] == 3
    assert [row["id"] for row in told["rows"]] == ["m-3", "m-8", "m-21"]
    frame = view.selected
    assert frame["memory_id"].tolist() == ["m-3", "m-8", "m-21"]
    assert frame["content"].tolist() == [f"{SUBJECTS[at % 4]} number {at}" for at in (3, 8, 21)]
    np.testing.assert_allclose(frame[["x", "y"]], view.projection.coordinates[[3, 8, 21]])
    view.store.forget("m-8")
    assert view.selected["memory_id"].tolist() == ["m-3", "m-21"]


@pytest.mark.parametrize("mask", ["", "!!!", base64.b64encode(b"\xff").decode()])
def test_a_choice_that_is_none_changes_nothing(view, mask):
    view.selected = ["m-1"]
    with pytest.raises(InvalidValue, match="select"):
        view.on_select({"mask": mask})
    assert view.selected["memory_id"].tolist() == ["m-1"]


def test_a_choice_can_be_set(view):
    view.selected = view.store.memories(project="billing")
    assert len(view.selected) == 14
    view.selected = "m-2"
    assert view.selected["memory_id"].tolist() == ["m-2"]
    with pytest.raises(InvalidValue, match="'m-99' is not on the map"):
        view.selected = ["m-3", "m-99"]
    for wrong in (5, [1], view.selected[["content"]]):
        with pytest.raises(InvalidValue, match="memory_id"):
            view.selected = wrong
    assert view.selected["memory_id"].tolist() == ["m-2"]
    view.selected = None
    assert len(view.selected) == 0


def test_a_query_lands_with_the_lists_of_its_channels(view):
    told = view.on_query({"text": "webhook retry"})
    recall = view.recall
    assert recall.query == told["query"] == "webhook retry"
    assert [hit["id"] for hit in told["lists"]["hits"]] == list(recall.ids)
    assert [hit["rank"] for hit in told["lists"]["hits"]] == [1, 2, 3, 4, 5]
    keyword = [hit.memory_id for hit in recall.trace.channel("keyword").hits[:10]]
    assert [hit["id"] for hit in told["lists"]["keyword"]] == keyword
    rows = [hit["row"] for hit in told["lists"]["hits"]]
    assert [view.projection.ids[row] for row in rows] == list(recall.ids)
    expected = view.projection.place(view.store.encode_query("webhook retry"))[0]
    np.testing.assert_allclose(told["place"], expected)
    assert view.on_query({"text": "  "}) is None
    assert view.recall is None


def test_a_query_without_an_encoder_has_no_place(store):
    store.close()
    plain = memlab.MemoryStore(store.path, None)
    view = memlab.map(memlab.HybridRetriever(plain), "webhook retry", method="pca")
    told = view.on_hello({}).body["landing"]
    assert told["place"] is None
    assert "no place here" in told["note"]
    assert told["lists"]["hits"]
    assert pixels(view.picture()["image/png"]).shape == (HEIGHT, WIDTH, 3)
    plain.close()


def test_hits_without_a_vector_are_counted(store):
    store.without_encoder().remember("webhook webhook retry", memory_id="pending")
    recall = memlab.HybridRetriever(store).only("keyword").recall("webhook retry")
    view: Any = memlab.map(store, recall, method="pca")
    assert "pending" in view.recall.ids
    told = view.on_hello({}).body["landing"]
    assert told["note"].startswith("1 of the hits have no vector")
    assert "pending" not in [hit["id"] for hit in told["lists"]["hits"]]


def test_what_passages_add(make_store):
    store = make_store(encoder=HashingEncoder(64, 8))
    for at in range(5):
        store.remember(f"short {at}", memory_id=f"s-{at}")
    store.remember(" ".join(f"word{at}" for at in range(20)), memory_id="long")
    view = memlab.map(store, method="pca")
    rows = {memory_id: at for at, memory_id in enumerate(view.projection.ids)}
    told = view.on_passages({"row": rows["long"]})["passages"]
    found = store.passages("long")
    assert [one["text"] for one in told] == [passage.text.strip() for passage in found]
    vectors = store.encoder().encode_documents([passage.text for passage in found])
    np.testing.assert_allclose([(one["x"], one["y"]) for one in told], view.projection.place(vectors), atol=1e-5)
    (one,) = view.on_passages({"row": rows["s-1"]})["passages"]
    np.testing.assert_allclose((one["x"], one["y"]), view.projection.of(["s-1"])[0])


def test_groups_are_made_when_they_are_asked_for(view):
    assert "cluster" not in [column["name"] for column in view.on_hello({}).body["columns"]]
    answer = view.on_column({"name": "cluster"})
    assert sum(answer.body["counts"]) == 40
    assert len(np.frombuffer(answer.buffers[0], np.uint8)) == 40
    assert view.colour == "cluster"
    with pytest.raises(InvalidValue, match="project, category"):
        view.on_column({"name": "mood"})


@pytest.mark.parametrize("name", COLUMNS)
def test_every_colour_can_be_set(view, name):
    view.colour = name
    assert view.colour == name
    assert f"coloured by {name}" in view.picture()["text/plain"]
    with pytest.raises(InvalidValue, match="colour"):
        view.colour = "mood"


def test_lists_are_those_of_the_full_space(view):
    view.store.remember("webhook retry jitter number 0", memory_id="twin")
    view = memlab.map(view.store, method="pca")
    told = view.on_duplicates({})
    first = told["rows"][0]
    assert first["ids"] == ["m-0", "twin"]
    assert first["same"]
    assert first["cosine"] == pytest.approx(1)
    assert told["found"] == view.duplicates.attrs["found"]
    alone = view.on_outliers({})["rows"]
    assert [row["id"] for row in alone] == view.outliers["memory_id"].tolist()


def test_how_far_the_picture_can_be_believed(view):
    told = view.on_faith({})
    assert told["trust"] == view.faithfulness.trustworthiness == view.projection.faithfulness().trustworthiness
    assert f"{told['kept']:.0%}" in told["sentence"]


# -- the picture -------------------------------------------------------------------------------------------------------


def test_the_picture_shows_every_point():
    places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    image = pixels(draw(places, np.array([0, 1, 2, 3], np.uint8)))
    assert image.shape == (HEIGHT, WIDTH, 3)
    rows, columns = np.nonzero((image < 250).any(axis=2))
    assert {(int(row > HEIGHT / 2), int(column > WIDTH / 2)) for row, column in zip(rows, columns, strict=True)} == {
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    }
    # y grows upwards, and the second is a square of its colour.
    assert image[HEIGHT // 2 :, WIDTH // 2 :][(image[HEIGHT // 2 :, WIDTH // 2 :] < 250).any(axis=2)][:, 0].max() > 220


def test_the_picture_tells_groups_apart_by_shape_too():
    def alone(code):
        image = pixels(draw(np.zeros((1, 2)), np.array([code], np.uint8)))
        return (image < 200).any(axis=2)

    shapes = [alone(code) for code in range(8)]
    for a in range(8):
        for b in range(a):
            assert (shapes[a] != shapes[b]).sum() > 4


def test_a_query_is_drawn_with_its_hits():
    random = np.random.default_rng(0).normal(size=(50, 2))
    plain = draw(random, np.zeros(50, np.uint8))
    with_query = draw(random, np.zeros(50, np.uint8), query=(0.0, 0.0), hits=random[:3])
    dark = [int((pixels(png) < 100).all(axis=2).sum()) for png in (plain, with_query)]
    assert dark[0] == 0
    assert dark[1] > 100


def test_places_that_are_all_the_same_are_drawn():
    assert pixels(draw(np.ones((5, 2)), np.zeros(5, np.uint8))).min() < 200


def test_the_last_view_is_kept_if_it_is_a_picture(view):
    first = view.picture()["image/png"]
    drawn = draw(np.zeros((1, 2)), np.zeros(1, np.uint8))
    for wrong in ("", "!!", base64.b64encode(b"<svg onload=x>").decode(), "A" * (9 << 20)):
        view.on_drawn({"png": wrong})
        assert view.picture()["image/png"] == first
    view.on_drawn({"png": base64.b64encode(drawn).decode()})
    assert view.picture()["image/png"] == drawn
    view.colour = "category"  # from Python: what was drawn is no longer what is shown
    assert view.picture()["image/png"] != drawn


def test_the_words_beside_the_picture_say_what_it_shows(view):
    view.recall = view._retriever.recall("webhook retry")
    words = view.picture()["text/plain"]
    assert words.startswith("Map of 40 memories by PCA, coloured by project: billing 14, ")
    assert "'webhook retry' with its hits m-" in words


def test_outside_of_a_notebook_it_is_words(view, capsys):
    view.show()
    assert capsys.readouterr().out == view.picture()["text/plain"] + "\n"


# -- making one --------------------------------------------------------------------------------------------------------


def test_a_map_of_a_store_a_retriever_or_a_recall(store):
    retriever = memlab.HybridRetriever(store)
    recall = retriever.recall("parquet")
    for view in (
        memlab.map(store, recall, method="pca"),
        memlab.map(retriever, recall, method="pca"),
        memlab.map(recall, method="pca"),
        memlab.map(store, "parquet", method="pca"),
    ):
        assert isinstance(view, MemoryMap)
        assert view.recall is not None
        assert view.recall.ids == recall.ids
        assert view.store is store


def test_what_is_no_store_is_refused(store):
    with pytest.raises(InvalidValue, match="MemoryStore or a retriever, found str"):
        memlab.map("memory.db")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="Recall, found int"):
        memlab.map(store, 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="colour"):
        memlab.map(store, colour="mood")
    with pytest.raises(InvalidValue, match="method"):
        memlab.map(store, method="tsne")


def test_a_map_goes_through_a_real_kernel(kernel):
    kernel.run(
        "import tempfile, memlab\n"
        "store = memlab.MemoryStore(tempfile.mkdtemp() + '/m.db', memlab.HashingEncoder())\n"
        "for at in range(30): store.remember(f'text {at}')\n"
        "view = memlab.map(store, method='pca')"
    )
    out = kernel.run("view", "a")
    first, second = (got["content"] for got in out if got["msg_type"] == "display_data")
    assert base64.b64decode(first["data"]["image/png"]).startswith(b"\x89PNG")
    assert first["metadata"]["image/png"]["alt"].startswith("Map of 30 memories by PCA")
    model = second["data"]["application/vnd.jupyter.widget-view+json"]["model_id"]
    (answer,) = kernel.tell(model, {"ask": "hello", "body": {}, "from": "v", "seq": 1})
    assert answer["content"]["data"]["content"]["body"]["count"] == 30
    assert len(bytes(answer["buffers"][0])) == 8 * 30
    kernel.tell(model, {"ask": "select", "body": {"mask": packed([2, 5], 30)}, "from": "v", "seq": 2})
    assert kernel.value("view.selected['content'].tolist()") == ["text 2", "text 5"]
    png = base64.b64encode(draw(np.zeros((1, 2)), np.zeros(1, np.uint8))).decode()
    told = kernel.tell(model, {"ask": "drawn", "body": {"png": png}, "from": "v", "seq": 3})
    (update,) = (got for got in told if got["msg_type"] == "update_display_data")
    assert update["content"]["data"]["image/png"].replace("\n", "") == png
