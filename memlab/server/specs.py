"""The tools as a client sees them: names, titles, hints, parameters; and what a client sends, made fit for them."""

from __future__ import annotations

import contextlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args, get_origin, get_type_hints

from memlab.server import listing, tools
from memlab.server.models import Result
from memlab.server.text import line


@dataclass(frozen=True)
class ToolSpec:
    """One tool.

    Attributes
    ----------
    function : callable
        Takes a :class:`~memlab.server.service.Service` and the parameters, gives back a model.
    title : str
    writes : bool
        Whether it can change the store; left out of a read-only server, unless it can read too.
    destructive : bool
        Whether what it does takes something away, if only for the time being.
    idempotent : bool
        Whether doing it twice is the same as once.
    reads : bool
        Whether it is of use without writing.
    """

    function: Callable[..., Result]
    title: str
    writes: bool = False
    destructive: bool = False
    idempotent: bool = True
    reads: bool = True

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.function.__name__

    @property
    def description(self) -> str:
        """What the tool is for."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.function, include_extras=True)

    @property
    def result(self) -> type[Result]:
        """The model that it gives back."""
        found: type[Result] = self._hints["return"]
        return found

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """By name, with annotations that are types and not text; the service is not among them."""
        found = list(inspect.signature(self.function).parameters.values())[1:]
        return {each.name: each.replace(annotation=self._hints[each.name]) for each in found}

    def prepare(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """What a client sent, as the tool takes it, and notes on what was left out.

        ``""``, ``null``, empty lists and a count of 0 are not given; a list of strings may come as ``"a, b"`` or as the
        text of a JSON list.
        """
        values: dict[str, Any] = {}
        unknown: list[str] = []
        for name, value in given.items():
            if name not in self.parameters:
                unknown.append(name)
                continue
            parameter = self.parameters[name]
            optional = parameter.default is not inspect.Parameter.empty
            if _is_list(parameter.annotation) and isinstance(value, str):
                value = _parts(value)
            if _is_list(parameter.annotation) and isinstance(value, list):
                value = [part for part in value if not isinstance(part, str) or part.strip()]
            blank = isinstance(value, str) and not value.strip()
            zero = value == 0 or (value == "0" and _kind(parameter.annotation) is int)  # in text "0" is a text
            if optional and (value is None or value == [] or blank or zero):
                continue
            values[name] = value
        return values, self._left_out(unknown)

    def _left_out(self, unknown: list[str]) -> list[str]:
        there = ", ".join(self.parameters)
        notes = [f"{line(name, 60)!r} is no parameter and was left out; there are: {there}" for name in unknown[:5]]
        return [*notes, f"{len(unknown) - 5} more were left out"] if len(unknown) > 5 else notes


def _kind(annotation: Any) -> Any:
    return get_args(annotation)[0] if hasattr(annotation, "__metadata__") else annotation


def _is_list(annotation: Any) -> bool:
    return get_origin(_kind(annotation)) is list


def _parts(text: str) -> list[Any]:
    """The parts of ``a, b``, or of the text of a JSON list."""
    if text.lstrip().startswith("["):
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(text)
            if isinstance(found, list):
                return found
    return [part.strip() for part in text.split(",")]


TOOLS = (
    ToolSpec(tools.recall, "Recall memories"),
    ToolSpec(tools.remember, "Remember something", writes=True, idempotent=False, reads=False),
    ToolSpec(tools.reflect, "Change a memory", writes=True, destructive=True, reads=False),
    ToolSpec(tools.forget, "Forget a memory", writes=True, destructive=True, reads=False),
    ToolSpec(tools.restore, "Restore a memory", writes=True, reads=False),
    ToolSpec(listing.memories, "List memories"),
    ToolSpec(listing.category, "Categories", writes=True, destructive=True),
    ToolSpec(listing.sync, "Find memories out of date"),
)
