"""Making a picture, keeping it and adding to it. Coordinates of UMAP are never compared with fixed ones."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from memlab.encoders import HashingEncoder
from memlab.errors import InvalidValue, MissingDependency
from memlab.projection import project, umap_layout
from memlab.projection import projecting as module
from memlab.projection.placing import place
from memlab.store import MemoryStore
from tests.projection.conftest import fill, groups


@pytest.fixture
def fits(monkeypatch):
    """How often a picture was made from the start."""
    made = []
    fit = module._fitted

    def counted(*given):
        made.append(given[2])
        return fit(*given)

    monkeypatch.setattr(module, "_fitted", counted)
    return made


@pytest.fixture(params=["pca", "umap"])
def method(request):
    if request.param == "umap":
        pytest.importorskip("umap")
    return request.param


def test_a_picture_has_a_place_for_every_live_memory_with_a_vector(grouped, method):
    grouped.forget("m-7")
    grouped.without_encoder().remember("no vector yet")
    found = project(grouped, method)
    assert found.method == method
    assert found.ids == tuple(f"m-{at}" for at in range(120) if at != 7)
    assert found.coordinates.shape == (119, 2)
    assert np.isfinite(found.coordinates).all()
    assert not found.placed.any()
    assert found.frame.columns.tolist() == ["memory_id", "x", "y", "placed"]


def test_umap_keeps_neighbours_together(grouped):
    pytest.importorskip("umap")
    found, linear = project(grouped, "umap"), project(grouped, "pca")
    assert found.faithfulness().trustworthiness > 0.8
    assert found.faithfulness().kept > linear.faithfulness().kept


def test_the_same_seed_gives_the_same_picture_and_another_one_another(grouped):
    pytest.importorskip("umap")
    first = project(grouped, "umap", keep=False)
    np.testing.assert_array_equal(project(grouped, "umap", keep=False).coordinates, first.coordinates)
    assert not np.allclose(project(grouped, "umap", seed=7, keep=False).coordinates, first.coordinates)


def test_a_picture_is_made_once(grouped, method, fits):
    first = project(grouped, method)
    assert first.kept
    grouped.close()
    with MemoryStore(grouped.path) as store:
        second = project(store, method)
    assert fits == [method]
    assert second.ids == first.ids
    np.testing.assert_array_equal(second.coordinates, first.coordinates)


def test_pictures_are_told_apart_by_what_made_them(grouped, fits):
    pytest.importorskip("umap")
    for options in ({}, {"seed": 1}, {"n_neighbors": 5}, {"min_dist": 0.5}) * 2:
        project(grouped, "umap", **options)
    for seed in (1, 2):
        project(grouped, "pca", seed=seed)  # there is no chance in it
    assert fits == ["umap"] * 4 + ["pca"]


def test_ten_more_memories_move_nobody(grouped, method, fits):
    first = project(grouped, method)
    fill(grouped, groups(10, seed=3), "new")
    second = project(grouped, method)
    assert fits == [method]
    np.testing.assert_array_equal(second.coordinates[:120], first.coordinates)
    assert second.placed.tolist() == [False] * 120 + [True] * 10
    if method == "umap":
        expected = place(groups(10, seed=3), groups(120), first.coordinates)
        np.testing.assert_allclose(second.coordinates[120:], expected, atol=1e-4)
    assert "10 placed after it was made" in repr(second)
    third = project(grouped, method)  # kept too
    np.testing.assert_array_equal(third.coordinates, second.coordinates)
    assert third.placed.sum() == 10


def test_new_memories_lie_beside_what_was_fitted_not_beside_each_other(grouped, method):
    at_once = fill(grouped, groups(120), "m")
    project(at_once, method)
    fill(at_once, groups(4, seed=3), "a")
    project(at_once, method)
    fill(at_once, groups(4, seed=3), "b", text="again")
    found = project(at_once, method)
    np.testing.assert_allclose(found.coordinates[120:124], found.coordinates[124:], atol=1e-5)


def test_many_more_memories_suggest_a_new_fit(grouped, fits):
    project(grouped, "pca")
    fill(grouped, groups(40, seed=3), "new")
    found = project(grouped, "pca")
    assert "25% of the memories came after this picture was made" in found.note
    again = project(grouped, "pca", refit=True)
    assert fits == ["pca", "pca"]
    assert not again.placed.any()
    assert again.note == ""
    assert not project(grouped, "pca").placed.any()


def test_forgotten_memories_drop_out_and_restored_ones_come_back(grouped, method, fits):
    first = project(grouped, method)
    grouped.forget("m-5")
    assert "m-5" not in project(grouped, method).ids
    grouped.restore("m-5")
    np.testing.assert_array_equal(project(grouped, method).coordinates, first.coordinates)
    grouped.forget("m-5")
    grouped.purge("m-5")
    assert len(project(grouped, method)) == 119
    assert fits == [method]
    assert len(list(grouped.db.query("SELECT * FROM projected_memories"))) == 119


def test_a_changed_text_is_placed_anew(grouped, method):
    project(grouped, method)
    grouped.update("m-5", content="quite another matter")
    found = project(grouped, method)
    assert found.ids[np.flatnonzero(found.placed)[0]] == "m-5"
    assert found.placed.sum() == 1


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE memories SET vector = (SELECT vector FROM memories WHERE id = 'm-6') WHERE id = 'm-5'",
        "INSERT OR REPLACE INTO memories (id, content, vector, encoder_id) "
        "SELECT 'm-5', 'put over it', vector, encoder_id FROM memories WHERE id = 'm-6'",
        "UPDATE OR REPLACE memories SET id = 'm-5' WHERE id = 'm-6'",
    ],
)
def test_a_change_by_plain_sql_takes_the_place_along(grouped, sql):
    first = project(grouped, "pca")
    sixth = first.of(["m-6"])
    with grouped.db.conn:
        grouped.db.execute(sql)
    found = project(grouped, "pca")
    np.testing.assert_allclose(found.of(["m-5"]), sixth, atol=1e-5)
    assert grouped.check().ok


def test_other_vectors_are_another_picture(grouped, fits):
    project(grouped, "pca")
    grouped.reembed(HashingEncoder(32))
    found = project(grouped, "pca")
    assert fits == ["pca", "pca"]
    assert not found.placed.any()
    assert [row["n"] for row in grouped.db.query("SELECT count(*) AS n FROM projections")] == [1]


def test_a_store_that_can_only_be_read_keeps_nothing(grouped, method):
    first = project(grouped, method)
    fill(grouped, groups(3, seed=8), "new")
    grouped.close()
    with MemoryStore(grouped.path, read_only=True) as store:
        added = project(store, method)
        assert added.placed.sum() == 3
        assert not added.kept
        np.testing.assert_array_equal(added.coordinates[:120], first.coordinates)
        other = project(store, method, n_neighbors=7, refit=True)
        assert not other.placed.any()
        assert not other.kept


def test_a_file_of_an_older_schema_that_can_only_be_read(grouped):
    grouped.db.execute("DROP TABLE projected_memories")
    grouped.db.execute("DROP TABLE projections")
    for name in ("memories_projection_updated", "memories_projection_inserted", "memory_numbers_projection_deleted"):
        grouped.db.execute(f"DROP TRIGGER {name}")
    grouped.db.execute("PRAGMA user_version = 4")
    grouped.close()
    with MemoryStore(grouped.path, read_only=True) as store:
        assert len(project(store, "pca")) == 120


def test_a_kept_picture_needs_no_umap_learn(grouped, monkeypatch):
    pytest.importorskip("umap")
    first = project(grouped, "umap")
    monkeypatch.setitem(sys.modules, "umap", None)
    fill(grouped, groups(3, seed=8), "new")
    np.testing.assert_array_equal(project(grouped, "umap").coordinates[:120], first.coordinates)


@pytest.mark.parametrize("asked", ["umap", "auto"])
def test_without_umap_learn_it_is_pca_and_says_how_to_install(grouped, monkeypatch, asked):
    monkeypatch.setitem(sys.modules, "umap", None)
    found = project(grouped, asked)
    assert found.method == "pca"
    assert 'pip install "memlab[map]"' in found.note
    np.testing.assert_array_equal(found.coordinates, project(grouped, "pca").coordinates)


@pytest.mark.parametrize("count", [0, 1, 2, 15])
def test_few_memories_are_shown_by_pca(make_store, count):
    found = project(fill(make_store(), groups(count)))
    assert found.method == "pca"
    assert len(found) == count
    assert np.isfinite(found.coordinates).all()
    assert f"more than n_neighbors=15 memories, found {count}" in found.note
    assert 0 <= found.faithfulness().trustworthiness <= 1


def test_memories_that_are_all_alike_are_no_trouble(make_store):
    pytest.importorskip("umap")
    store = fill(make_store(), np.repeat(groups(1), 30, axis=0))
    found = project(store, "umap")
    assert found.method == "pca"
    assert "hardly differ" in found.note
    assert np.isfinite(found.coordinates).all()


def test_many_memories_are_shown_by_pca_unless_umap_was_waited_for(grouped, monkeypatch, fits):
    pytest.importorskip("umap")
    monkeypatch.setattr(module, "UMAP_UP_TO", 100)
    found = project(grouped)
    assert found.method == "pca"
    assert "120 memories: this is PCA" in found.note
    assert project(grouped, "umap").method == "umap"
    assert project(grouped).method == "umap"
    assert fits == ["pca", "umap"]


def test_stopping_keeps_nothing(grouped):
    pytest.importorskip("umap")

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        project(grouped, "umap", progress=stop)
    assert not list(grouped.db.query("SELECT * FROM projections"))


def test_progress_is_told(grouped):
    pytest.importorskip("umap")
    told = []
    project(grouped, "umap", progress=lambda done, total: told.append((done, total)))
    assert (120, 120) in told  # compared with all others
    assert told[-1] == (500, 500)  # steps of the layout


def test_loading_umap_learn_is_told_before_it_begins(monkeypatch):
    pytest.importorskip("umap")
    loaded = {name: part for name, part in sys.modules.items() if name.partition(".")[0] == "umap"}
    for name in loaded:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "umap.umap_", None)  # it fails half-way, as a broken installation does
    told = []
    with pytest.raises(MissingDependency, match=r"installed but fails when imported.*pip install"):
        umap_layout.load_umap(lambda done, total: told.append((done, total)))
    assert told == [(0, 1)]


def test_a_missing_umap_learn_shows_no_progress(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    told = []
    with pytest.raises(MissingDependency, match="not installed"):
        umap_layout.load_umap(lambda done, total: told.append((done, total)))
    assert told == []


def test_what_changed_while_it_was_made_is_not_kept(grouped, monkeypatch):
    fit = module._fitted

    def slowly(*given):
        made = fit(*given)
        grouped.update("m-5", content="changed meanwhile")
        return made

    monkeypatch.setattr(module, "_fitted", slowly)
    project(grouped, "pca")
    monkeypatch.undo()
    found = project(grouped, "pca")
    assert found.ids[np.flatnonzero(found.placed)[0]] == "m-5"


def test_queries_are_placed_among_their_neighbours(grouped, method):
    found = project(grouped, method)
    np.testing.assert_allclose(found.place(groups(120)[[4, 9]]), found.coordinates[[4, 9]], atol=1e-4)
    new = found.place(groups(6, seed=0, spread=0.05))  # the middles of the groups
    for at in range(6):
        own = found.coordinates[at::6].mean(axis=0)
        others = [found.coordinates[other::6].mean(axis=0) for other in range(6) if other != at]
        apart = np.linalg.norm(new[at] - own)
        if method == "umap":
            assert all(apart < np.linalg.norm(new[at] - other) for other in others)
    with pytest.raises(InvalidValue, match="shape"):
        found.place(np.ones(3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "tsne"}, "auto, umap, pca"),
        ({"n_neighbors": 1}, "n_neighbors"),
        ({"min_dist": 2}, "min_dist"),
        ({"min_dist": "x"}, "min_dist"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_is_asked_is_checked(grouped, options, words):
    with pytest.raises(InvalidValue, match=words):
        project(grouped, **options)


def test_how_a_picture_was_made_is_in_the_file(grouped):
    project(grouped, "pca")
    (row,) = grouped.db.query("SELECT settings, made_at FROM projections")
    assert json.loads(row["settings"])["method"] == "pca"
    assert row["made_at"].startswith("2026-03-04T09:12:41")


def test_a_copy_takes_the_picture_along(grouped, tmp_path, fits):
    project(grouped, "pca")
    grouped.backup(tmp_path / "copy.db")
    with MemoryStore(tmp_path / "copy.db") as copy:
        project(copy, "pca")
    assert fits == ["pca"]
