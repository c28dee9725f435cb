"""Which memories may take part in a recall or a listing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal

from memlab.errors import InvalidValue
from memlab.store.records import check_importance, check_strings
from memlab.timestamps import format_time, parse_time

Strings = str | Iterable[str] | None
_MOST_MARKS = 500


@dataclass(frozen=True)
class Filters:
    """Conditions on metadata; all of those given must hold.

    Filters act before a channel takes its best candidates, so a memory outside them uses up no place.

    Parameters
    ----------
    project, category, subcategory, source : str or iterable of str, optional
        One value, or several of which any will do.
    tags : str or iterable of str, optional
        With ``tag_match="any"`` one of them suffices, with ``"all"`` none may be missing.
    tag_match : {"any", "all"}
    min_importance, max_importance : int, optional
        Bounds included, 1 to 10.
    created_after, created_before : datetime or str, optional
        From this time on; before this time. A zone is required.

    Raises
    ------
    InvalidValue
        If a value is of the wrong kind.
    """

    project: Strings = None
    category: Strings = None
    subcategory: Strings = None
    source: Strings = None
    tags: Strings = None
    tag_match: Literal["any", "all"] = "any"
    min_importance: int | None = None
    max_importance: int | None = None
    created_after: datetime | str | None = None
    created_before: datetime | str | None = None

    def __post_init__(self) -> None:
        for name in ("project", "category", "subcategory", "source", "tags"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else tuple(check_strings(value, name)) or None)
        if self.tag_match not in ("any", "all"):
            raise InvalidValue(f"tag_match: expected 'any' or 'all', found {self.tag_match!r}")
        for name in ("min_importance", "max_importance"):
            if getattr(self, name) is not None:
                try:
                    object.__setattr__(self, name, check_importance(getattr(self, name)))
                except InvalidValue as error:
                    raise InvalidValue(str(error).replace("importance", name, 1)) from None
        for name in ("created_after", "created_before"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, parse_time(getattr(self, name), name))

    @classmethod
    def of(cls, filters: Filters | Mapping[str, Any] | None, **given: Any) -> Filters:
        """Filters from an object, a mapping or keyword arguments; an unknown name lists the known ones."""
        if isinstance(filters, Filters) and not given:
            return filters
        if filters is not None and not isinstance(filters, (Filters, Mapping)):
            raise InvalidValue(f"filters: expected Filters or a mapping of filters to values, found {filters!r:.80}")
        values = dict(filters.given()) if isinstance(filters, Filters) else dict(filters or {})
        values.update(given)
        known = [item.name for item in fields(cls)]
        for name in values:
            if name not in known:
                raise InvalidValue(f"{name!r} is no filter; the filters are {', '.join(known)}")
        return cls(**values)

    def given(self) -> dict[str, Any]:
        """The conditions that are set, by name."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        if values["tags"] is None or len(values["tags"]) < 2:
            del values["tag_match"]  # says nothing about one tag
        return {name: value for name, value in values.items() if value is not None}

    def __bool__(self) -> bool:
        return bool(self.given())

    def conditions(self) -> dict[str, tuple[str, list[Any]]]:
        """For each condition that is set: SQL over the alias ``m`` of ``memories``, and its parameters."""
        result: dict[str, tuple[str, list[Any]]] = {}
        for name in ("project", "category", "subcategory", "source"):
            values = getattr(self, name)
            if values is not None:
                listed, given = _listed(values)
                result[name] = (f"m.{name} IN ({listed})", given)
        if self.tags is not None:
            tags: tuple[str, ...] = self.tags  # type: ignore[assignment]
            listed, given = _listed(tags)
            found = f"(SELECT count(DISTINCT value) FROM json_each(m.tags) WHERE value IN ({listed}))"
            result["tags"] = (f"{found} >= ?", [*given, 1 if self.tag_match == "any" else len(tags)])
        if self.min_importance is not None:
            result["min_importance"] = ("m.importance >= ?", [self.min_importance])
        if self.max_importance is not None:
            result["max_importance"] = ("m.importance <= ?", [self.max_importance])
        if isinstance(self.created_after, datetime):
            result["created_after"] = ("m.created_at >= ?", [format_time(self.created_after)])
        if isinstance(self.created_before, datetime):
            result["created_before"] = ("m.created_at < ?", [format_time(self.created_before)])
        return result

    def sql(self) -> tuple[str, list[Any]]:
        """The whole condition over the alias ``m``, and its parameters; ``1`` where nothing is set."""
        parts = self.conditions().values()
        where = " AND ".join(sql for sql, _ in parts) or "1"
        return where, [value for _, values in parts for value in values]

    def __repr__(self) -> str:
        shown = {k: format_time(v) if isinstance(v, datetime) else v for k, v in self.given().items()}
        return "Filters(" + ", ".join(f"{name}={_plain(value)!r}" for name, value in shown.items()) + ")"


def _listed(values: Sequence[str]) -> tuple[str, list[Any]]:
    """SQL for the inside of an IN (), and its parameters: one in all where a statement could not have one a value."""
    if len(values) <= _MOST_MARKS:
        return ", ".join("?" * len(values)), list(values)
    return "SELECT value FROM json_each(?)", [json.dumps(values, ensure_ascii=False)]


def _plain(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value
