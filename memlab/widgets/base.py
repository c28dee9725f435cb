"""What all widgets have in common: one live view at a time, a static picture under it, questions and answers.

A :class:`Widget` is an ordinary object. Shown in a notebook it emits its picture first, which a saved notebook keeps,
and then a view: an anywidget that is made for this view alone and closed with it. The script of the view asks; the
widget answers by its ``on_...`` methods. The script hides the picture while it gets answers, so a notebook that is
opened without a kernel shows the picture and nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, ClassVar, NamedTuple

from memlab.errors import MemlabError, MissingDependency
from memlab.retrieval.render import visible
from memlab.widgets.cells import SHOWN, current_cell, shell

Message = Mapping[str, Any]


class Answer(NamedTuple):
    """An answer with arrays beside it.

    Attributes
    ----------
    body : Any
        JSON values.
    buffers : sequence of bytes-like
        They reach the script as ``DataView`` objects, in order.
    """

    body: Any
    buffers: Sequence[bytes | memoryview] = ()


NOTHING = {"text/plain": ""}


class Slots(NamedTuple):
    """A place below a widget where it can show another one later.

    A message of a view is answered outside of any cell, where a display would go nowhere; one with an id can be filled.

    Attributes
    ----------
    picture, view : DisplayHandle
    """

    picture: Any
    view: Any

    @classmethod
    def reserve(cls) -> Slots:
        """Two empty outputs of the running cell."""
        from IPython.display import display

        handles = [display(NOTHING, raw=True, display_id=True) for _ in range(2)]  # type: ignore[no-untyped-call]
        return cls(*handles)


class Widget:
    """Something to look at and to use in a notebook.

    A class of widgets names its ``scripts`` and ``styles`` (files of ``memlab/widgets/js``, after the common ones) and
    gives its :meth:`picture`; for every kind of question ``kind`` that its script asks it has a method
    ``on_kind(message)`` that returns JSON values or an :class:`Answer`. What such a method raises is shown by the view
    and kept in :attr:`error`.
    """

    scripts: ClassVar[tuple[str, ...]] = ()
    styles: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self._view: Any = None
        self._picture: Any = None
        self.error: Exception | None = None

    # -- to be given by a widget -------------------------------------------------------------------------------------

    def picture(self) -> dict[str, Any]:
        """The static picture as a MIME bundle: ``text/plain``, and ``text/html`` or ``image/png`` (bytes)."""
        raise NotImplementedError

    def on_hello(self, message: Message) -> Any:
        """What a view needs to begin; asked by every view, again when a page is loaded again."""
        raise NotImplementedError

    def on_settled(self, message: Message) -> None:
        """The person has paused: bring the picture up to date."""
        self.refresh_picture()

    # -- shown and closed --------------------------------------------------------------------------------------------

    @property
    def shown(self) -> bool:
        """Whether there is a live view."""
        return self._view is not None

    def show(self, into: Slots | None = None) -> None:
        """Show it: live in a notebook, as text elsewhere. A view that was shown before closes.

        Parameters
        ----------
        into : Slots, optional
            Where another widget keeps a place for it; whoever opens it there also closes it. Below the running cell by
            default.
        """
        bundle = self.picture()
        if shell() is None:
            print(bundle["text/plain"])
            return
        from IPython.display import display

        self.close()
        cell = current_cell()
        SHOWN.ran(cell)  # before the new view opens: two of them would be one too many
        if into is None:
            self._picture = display(_marked(bundle), metadata=_alternative(bundle), raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._picture = into.picture
            self.refresh_picture()
        self._view = view = _view_class(type(self))(_kind="image" if "image/png" in bundle else "html")  # type: ignore[arg-type] # a class is hashable
        view.on_msg(self._receive)
        SHOWN.add(cell, self.close)
        data, metadata = view._repr_mimebundle_()
        # Without this text a front end that knows no widgets says "AnyWidget()" below the picture.
        data = {**data, "text/plain": ""}
        if into is None:
            display(data, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]
        else:
            into.view.update(NOTHING, raw=True)  # so that the front end makes a new element for the new view
            into.view.update(data, metadata=metadata, raw=True)

    def close(self) -> None:
        """End the live view; the picture stays. The object can be shown again."""
        view, self._view = self._view, None
        SHOWN.forget(self.close)
        if view is not None:
            view.on_msg(self._receive, remove=True)
            view.layout.close()  # a model of its own, which the view does not take with it
            view.close()

    def _ipython_display_(self) -> None:
        self.show()

    def refresh_picture(self) -> None:
        """Draw the picture again where it was shown last."""
        if self._picture is not None:
            bundle = self.picture()
            self._picture.update(_marked(bundle), metadata=_alternative(bundle), raw=True)

    # -- questions and answers ---------------------------------------------------------------------------------------

    def push(self, kind: str, body: Any = None, buffers: Sequence[bytes | memoryview] = ()) -> None:
        """Tell the live view something that it did not ask."""
        if self._view is not None:
            self._view.send({"push": kind, "body": body}, list(buffers))

    def answer(self, kind: str, message: Message) -> Answer:
        """Answer one question of the view; what goes wrong is raised.

        Raises
        ------
        LookupError
            If the widget knows no such question.
        """
        method = getattr(self, f"on_{kind}", None)
        if method is None:
            raise LookupError(f"{type(self).__name__} answers no question {kind!r}")
        found = method(message)
        return found if isinstance(found, Answer) else Answer(found)

    def _receive(self, view: Any, content: Any, _buffers: object) -> None:
        if not isinstance(content, dict) or not isinstance(content.get("ask"), str):
            return
        reply = {"to": content.get("from"), "seq": content.get("seq")}
        try:
            found = self.answer(content["ask"], content.get("body") or {})
            self.error = None
            view.send({**reply, "body": found.body}, list(found.buffers))
        except Exception as error:  # nobody else could tell the person at the view
            self.error = error
            if view.comm is not None:
                view.send({**reply, "error": error_words(error)})


def error_words(error: Exception) -> dict[str, str]:
    """An exception for a view: memlab's own say what to do, of others the kind matters too."""
    text = str(error)
    if not isinstance(error, MemlabError):
        text = f"{type(error).__name__}: {text}"
    return {"type": type(error).__name__, "message": visible(text)}


def _marked(bundle: dict[str, Any]) -> dict[str, Any]:
    """The picture's bundle; its HTML in an element by which the script finds it."""
    if "text/html" not in bundle:
        return bundle
    return {**bundle, "text/html": f'<div class="memlab-picture">{bundle["text/html"]}</div>'}


def _alternative(bundle: dict[str, Any]) -> dict[str, Any]:
    """The words in place of an image, where nbconvert and others look for them."""
    return {"image/png": {"alt": bundle["text/plain"]}} if "image/png" in bundle else {}


def source(names: Sequence[str]) -> str:
    """The text of these files of ``memlab/widgets/js``, one after the other."""
    folder = resources.files("memlab.widgets") / "js"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


@functools.cache
def _view_class(kind: type[Widget]) -> Any:
    """The anywidget class of a kind of widget. Script and style are strings: a file would be watched, and leak."""
    try:
        import anywidget
        import traitlets
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"a live widget needs the package {error.name}, which is not installed; install it with: "
            "python -m pip install anywidget",
            name=error.name,
        ) from error

    namespace = {
        "_esm": source(("common.js", "focus.js", *kind.scripts)),
        "_css": source(("common.css", *kind.styles)),
        "_kind": traitlets.Unicode("html").tag(sync=True),
        "__module__": kind.__module__,
    }
    return type(f"{kind.__name__}View", (anywidget.AnyWidget,), namespace)
