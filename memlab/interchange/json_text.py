"""JSON as text that any reader takes for one line and no terminal obeys."""

from __future__ import annotations

import json
import re
from typing import Any

# Valid in a JSON string as they are, but: C1 controls and DEL steer terminals, NEL and U+2028/2029 end lines for some
# readers, bidirectional marks reorder what is shown, and surrogates cannot be encoded.
_ESCAPED = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """``value`` as JSON: characters as they are, except those that would be obeyed rather than shown.

    Parameters
    ----------
    value : Any
        Plain JSON values.
    indent : int, optional
        Spaces a level; one line without spaces by default.
    """
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
