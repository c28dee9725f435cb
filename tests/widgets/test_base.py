"""What all widgets have in common, in a real kernel."""

from __future__ import annotations

import pytest

from memlab.widgets.cells import Cell, Shown, cell_of

WIDGET = """
import threading
import ipywidgets
from memlab.errors import InvalidValue
from memlab.widgets.base import Answer, Widget

class Clock(Widget):
    ticks = 0

    def picture(self):
        return {"text/plain": f"{self.ticks} ticks", "text/html": f"<b>{self.ticks} ticks</b>"}

    def on_hello(self, message):
        return {"ticks": self.ticks}

    def on_tick(self, message):
        self.ticks += message["by"]
        return Answer(self.ticks, [b"raw"])

    def on_fail(self, message):
        raise InvalidValue("by: expected a number")

    def on_shout(self, message):
        raise InvalidValue("\\x1b[31mred")

    def on_break(self, message):
        raise ZeroDivisionError("division by zero")

def counts():
    return [len(ipywidgets.widgets.widget._instances), len(get_ipython().kernel.comm_manager.comms),
            threading.active_count()]
"""


@pytest.fixture(scope="module", autouse=True)
def clock(kernel):
    kernel.run(WIDGET)


def shown(messages):
    """The data of what was displayed, in order."""
    return [got["content"]["data"] for got in messages if got["msg_type"] == "display_data"]


def model(messages):
    return shown(messages)[-1]["application/vnd.jupyter.widget-view+json"]["model_id"]


def test_the_picture_comes_first_and_the_view_after_it(kernel):
    first, second = shown(kernel.run("Clock()", "a"))
    assert first == {
        "text/plain": "0 ticks",
        "text/html": '<div class="memlab-picture"><b>0 ticks</b></div>',
    }
    assert set(second) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert second["text/plain"] == ""


def test_a_question_is_answered_under_its_number(kernel):
    view = model(kernel.run("clock = Clock(); clock.show()", "a"))
    (answer,) = kernel.tell(view, {"ask": "tick", "body": {"by": 3}, "from": "v", "seq": 7})
    assert answer["content"]["data"]["content"] == {"to": "v", "seq": 7, "body": 3}
    assert bytes(answer["buffers"][0]) == b"raw"
    assert kernel.value("clock.ticks") == 3


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ("fail", "by: expected a number"),
        ("shout", "\ufffd[31mred"),
        ("break", "ZeroDivisionError: division by zero"),
        ("nonsense", "LookupError: Clock answers no question 'nonsense'"),
    ],
)
def test_what_goes_wrong_is_told_and_kept(kernel, ask, words):
    view = model(kernel.run("clock = Clock(); clock.show()", "a"))
    (answer,) = kernel.tell(view, {"ask": ask, "from": "v", "seq": 1})
    assert answer["content"]["data"]["content"]["error"]["message"] == words
    assert words.endswith(kernel.value("str(clock.error)").replace("\x1b", "\ufffd"))
    kernel.tell(view, {"ask": "hello", "from": "v", "seq": 2})
    assert kernel.value("clock.error") is None


def test_what_is_no_question_is_left_alone(kernel):
    view = model(kernel.run("Clock()", "a"))
    assert kernel.tell(view, {"something": 1}) == []


def test_the_picture_follows_when_the_person_pauses(kernel):
    view = model(kernel.run("clock = Clock(); clock.show()", "a"))
    kernel.tell(view, {"ask": "tick", "body": {"by": 2}, "from": "v", "seq": 1})
    updated, _ = kernel.tell(view, {"ask": "settled", "from": "v", "seq": 2})
    assert updated["msg_type"] == "update_display_data"
    assert updated["content"]["data"]["text/plain"] == "2 ticks"


@pytest.mark.parametrize(
    ("code", "cell", "times"),
    [
        ("Clock()", "b", 100),
        ("Clock()", None, 10),
        ("assigned = Clock(); assigned.show()", "b", 10),
        ("assigned.show()", "b", 10),
    ],
)
def test_many_runs_of_a_cell_leave_one_view(kernel, code, cell, times):
    kernel.run("assigned = Clock()")
    kernel.run(code, cell)
    before = kernel.value("counts()")
    for _ in range(times):
        kernel.run(code, cell)
    assert kernel.value("counts()") == before
    assert before[0] >= 2


def test_a_cell_that_shows_nothing_any_more_closes_what_it_showed(kernel):
    before = kernel.value("counts()")
    kernel.run("Clock()", "c")
    assert kernel.value("counts()") != before
    kernel.run("1 + 1", "c")
    assert kernel.value("counts()") == before


def test_views_of_different_cells_and_two_of_one_cell_live_side_by_side(kernel):
    before = kernel.value("counts()")[0]
    kernel.run("Clock()", "d")
    one = kernel.value("counts()")[0] - before
    kernel.run("Clock().show(); Clock()", "e")
    assert kernel.value("counts()")[0] - before == 3 * one
    kernel.run("None", "d")
    kernel.run("None", "e")
    assert kernel.value("counts()")[0] == before


def test_shown_elsewhere_it_closes_where_it_was(kernel):
    kernel.run("clock = Clock(); clock.show()", "f")
    before = kernel.value("counts()")
    kernel.run("clock.show()", "g")
    assert kernel.value("counts()") == before
    kernel.run("clock.close(); clock.close()")
    assert kernel.value("[clock.shown, *counts()]") == [False, before[0] - 2, before[1] - 2, before[2]]
    kernel.run("clock", "g")
    assert kernel.value("clock.shown")


def test_cells_are_known_by_id_or_code():
    header = {"msg_type": "execute_request", "msg_id": "r1"}
    named = {"header": header, "metadata": {"cellId": "x"}, "content": {"code": "1"}}
    assert cell_of(named) == Cell("id x", "r1")
    unnamed = {**named, "metadata": {}}
    assert cell_of(unnamed) == cell_of(unnamed) != cell_of({**unnamed, "content": {"code": "2"}})
    assert cell_of({"header": {"msg_type": "comm_msg"}}) is None
    assert cell_of({}) is None


def test_only_earlier_runs_are_closed():
    shown, closed = Shown(), []
    shown.add(Cell("a", "1"), lambda: closed.append("first"))
    shown.add(Cell("a", "1"), lambda: closed.append("second"))
    assert closed == []
    shown.add(Cell("a", "2"), lambda: closed.append("third"))
    assert closed == ["first", "second"]
    shown.ran(Cell("a", "2"))
    shown.ran(None)
    assert closed == ["first", "second"]


def test_outside_of_a_notebook_it_is_text(capsys):
    from memlab.widgets.base import Widget

    class Plain(Widget):
        def picture(self):
            return {"text/plain": "a picture in words"}

    Plain().show()
    assert capsys.readouterr().out == "a picture in words\n"
