"""Keyword channels without their shortcut, to see what the shortcut costs."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from memlab.checks import MOST
from memlab.retrieval.channels import Channel


def exhaustive(channel: Channel) -> Channel | None:
    """The channel with every match scored; ``None`` if it does so anyway."""
    names: set[str] = {item.name for item in fields(channel)} if is_dataclass(channel) else set()
    if "candidates" not in names:
        return None
    changed: Channel = replace(cast(Any, channel), candidates=MOST)
    return changed
