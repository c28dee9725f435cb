"""Put the sample, data/, into wheels as memlab/_sample; an editable installation reads data/ where it lies."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SampleHook(BuildHookInterface):  # type: ignore[type-arg, unused-ignore]
    """Called by hatchling before it builds a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # hatch's own force-include setting would copy the files into editable installations too, beside the package.
        if version == "standard":
            build_data["force_include"]["data"] = "memlab/_sample"
