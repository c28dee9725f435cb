"""Which project a call is about, and which files a memory is about."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from memlab.errors import InvalidValue
from memlab.server.app import MemoryServer
from memlab.server.files import Files
from memlab.server.projects import Projects, project_of
from tests.server.conftest import call

KNOWN = ["billing", "Search", "a/b"]


@pytest.mark.parametrize(
    ("given", "writing", "reading"),
    [
        ("", "here", None),
        ("billing", "billing", "billing"),
        ("Billing", "billing", "billing"),
        ("/home/me/src/billing/", "billing", "billing"),
        ("C:\\src\\SEARCH", "Search", "Search"),
        ("a/b", "a/b", "a/b"),
        ("new", "new", "new"),
        ("current", "here", "here"),
        ("none", None, "none"),
    ],
)
def test_a_project_is_one_however_it_is_spelled(given, writing, reading):
    projects = Projects("here")
    assert projects.for_writing(given, KNOWN).name == writing
    assert projects.for_reading(given, KNOWN).name == reading


def test_all_projects_are_a_place_to_look_in_and_none_to_write_to():
    assert Projects("here").for_reading("All", KNOWN).name is None
    with pytest.raises(InvalidValue, match="expected one project, found 'all'"):
        Projects("here").for_writing("All", KNOWN)


def test_what_was_understood_is_said():
    assert Projects().for_reading("Billing", KNOWN).note == "project: 'Billing' was taken as 'billing'"
    assert Projects().for_reading("billing", KNOWN).note == ""
    assert Projects().for_writing("", KNOWN).name is None
    with pytest.raises(InvalidValue, match="no current project"):
        Projects().for_reading("current", KNOWN)


def test_the_project_of_a_folder_is_its_repository(tmp_path):
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "src" / "x").mkdir(parents=True)
    assert project_of(tmp_path / "shop" / "src" / "x") == "shop"
    assert project_of(Path(tmp_path.anchor)) is None


def test_the_project_is_echoed(service, store):
    server = MemoryServer(replace(service, projects=Projects("billing")))
    assert call(server, "remember", content="retries").data["project"] == "billing"
    assert call(server, "remember", content="retries", project="none").data["project"] == ""
    got = call(server, "recall", query="retries", project="BILLING")
    assert got.data["project"] == "billing"
    assert len(got.data["hits"]) == 1
    assert "project: 'BILLING' was taken as 'billing'" in got.data["notes"]
    assert len(call(server, "recall", query="retries").data["hits"]) == 2


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_sync_finds_what_changed_and_what_vanished(server, store, files):
    one = call(server, "remember", content="about a", related_files="a.py", project="p").data
    two = call(server, "remember", content="about b", related_files=["b.py", str(files / "a.py")], category="fact").data
    other = call(server, "remember", content="about nothing there", related_files="nowhere.py").data
    assert one["related_files"] == [str(files / "a.py")]
    assert "no checksum, so sync cannot follow them: nowhere.py" in other["notes"]
    got = call(server, "sync")
    assert (got.data["memories"], got.data["files"], got.data["unknown"], got.data["stale"]) == (3, 4, 1, [])

    (files / "a.py").write_text("changed")
    (files / "b.py").unlink()
    got = call(server, "sync")
    stale = {each["id"]: each for each in got.data["stale"]}
    assert stale.keys() == {one["id"], two["id"]}
    assert stale[one["id"]]["changed"] == [str(files / "a.py")]
    assert stale[two["id"]]["vanished"] == [str(files / "b.py")]
    assert f"{files / 'b.py'} vanished" in got.text
    assert [each["id"] for each in call(server, "sync", project="p").data["stale"]] == [one["id"]]
    assert [each["id"] for each in call(server, "sync", categories="fact").data["stale"]] == [two["id"]]
    few = call(server, "sync", limit=1)
    assert len(few.data["stale"]) == len(few.data["dropped"]) == 1


def test_a_file_that_cannot_be_read_is_not_called_gone(server, files, monkeypatch):
    call(server, "remember", content="about a", related_files="a.py")
    call(server, "remember", content="about b", related_files="b.py")
    opened = os.open

    def refused(path, *rest, **more):
        if str(path).endswith("a.py"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *rest, **more)

    monkeypatch.setattr(os, "open", refused)
    got = call(server, "sync")
    assert (got.data["stale"], got.data["unknown"], got.data["files"]) == ([], 1, 2)
    assert f"cannot be read, so nobody can say whether they changed: {files / 'a.py'}" in got.text


def test_a_folder_in_the_place_of_a_file_is_not_the_file(server, files):
    call(server, "remember", content="about a", related_files="a.py")
    (files / "a.py").unlink()
    (files / "a.py").mkdir()
    assert call(server, "sync").data["stale"][0]["vanished"] == [str(files / "a.py")]


def test_sync_of_a_category_that_is_not_there_is_said(server, store):
    store.remember("x", category="fact")
    got = call(server, "sync", categories="facts, fact")
    assert "no memory has the category 'facts'; there are: fact" in got.text


def test_reflect_takes_the_checksums_anew(server, files):
    memory_id = call(server, "remember", content="about a", related_files="a.py").data["id"]
    (files / "a.py").write_text("changed")
    call(server, "reflect", memory_id=memory_id, importance=7)
    assert len(call(server, "sync").data["stale"]) == 1
    call(server, "reflect", memory_id=memory_id, content="about a as it is now")
    assert call(server, "sync").data["stale"] == []
    (files / "a.py").write_text("changed again")
    call(server, "reflect", memory_id=memory_id, related_files="a.py")
    assert call(server, "sync").data["stale"] == []


def test_checksums_of_other_programs_are_understood(server, store, files):
    import hashlib

    digest = hashlib.sha256(b"a.py").hexdigest().upper()
    store.remember("x", related_files=[str(files / "a.py")], file_checksums={str(files / "a.py"): digest})
    assert call(server, "sync").data["stale"] == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_no_regular_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    files = Files(tmp_path)
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero", tmp_path / "nobody", "nul\x00"):
        assert files.checksum(str(path)) is None


def test_the_home_of_nobody_is_a_missing_file(server, store):
    got = call(server, "remember", content="x", related_files=["~nobody-of-this-name/a.py"])
    assert not got.failed
    assert "~nobody-of-this-name/a.py" in got.data["notes"][0]
    store.remember("y", related_files=["~nobody-of-this-name/b"], file_checksums={"~nobody-of-this-name/b": "0" * 64})
    assert call(server, "sync").data["stale"][0]["vanished"] == ["~nobody-of-this-name/b"]
