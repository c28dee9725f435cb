"""Long texts, cut into passages that fit an encoder."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memlab.checks import whole
from memlab.encoders.base import Encoder
from memlab.encoders.borders import WITHIN_WORD, Borders, find_borders
from memlab.errors import InvalidValue

__all__ = ["Passage", "PassageSplitter"]

# The best border is sought in the last 40 % of what fits.
_WINDOW = 0.4
# With more, a passage would hold little that the former one did not.
_MOST_OVERLAP = 0.4
# A text of so few characters to a token is likely to fit, so counting it comes before locating its tokens.
_LIKELY_FIT = 8
# Each round makes a piece that still counts too much smaller; two are rare.
_ROUNDS = 16


@dataclass(frozen=True, slots=True)
class Passage:
    """A slice of a text.

    Attributes
    ----------
    position : int
        Its place among the passages of the text, from 0.
    start, end : int
        Offsets in code points; ``end`` is the first one after the passage.
    """

    position: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """Length in code points, the weight of the passage in :func:`~memlab.encoders.aggregate`."""
        return self.end - self.start

    def text(self, content: str) -> str:
        """Return the passage itself, given the text it was cut from."""
        return content[self.start : self.end]


@dataclass(frozen=True, slots=True)
class PassageSplitter:
    """Cuts a text at its paragraphs, sentences, lines or words into pieces that an encoder takes whole.

    Each cut is made at the best border in the last 40 % of what fits: a blank line; the end of a
    sentence; the end of a line; white space; a symbol; and only then inside a word, between two tokens
    of it. What remains at the end is never a crumb: when less than 1.6 passages are left, the last cut
    goes near the middle, so that (without overlap) every passage of a text that had to be cut holds at
    least 30 % of what fits, unless a token is in the way.

    Parameters
    ----------
    token_limit : int, optional
        Most tokens of a passage, special tokens and document prefix included. By default the encoder's.
    overlap : int
        Tokens that neighbouring passages share at least; up to a quarter more, to begin at a better border.

    Raises
    ------
    InvalidValue
        If the limit is not a whole number of at least 1, or the overlap not one of at least 0.
    """

    token_limit: int | None = None
    overlap: int = 0

    def __post_init__(self) -> None:
        if self.token_limit is not None:
            whole(self.token_limit, "token_limit", least=1)
        whole(self.overlap, "overlap", least=0)

    def split(self, text: str, encoder: Encoder) -> list[Passage]:
        """Cut ``text`` into passages.

        Parameters
        ----------
        text : str
            Any text. What fits is one passage.
        encoder : Encoder
            Whose tokens count.

        Returns
        -------
        list of Passage
            In order; the first starts at 0, the last ends at ``len(text)``, and nothing between is
            left out. Without overlap each starts where the former ended.

        Raises
        ------
        InvalidValue
            If the limit is above the encoder's, leaves no room beside the special tokens and the
            prefix, or the overlap is more than 40 % of that room.
        """
        limit = self.token_limit or encoder.token_limit
        if limit > encoder.token_limit:
            raise InvalidValue(f"token_limit: {encoder.name} reads {encoder.token_limit} tokens, found {limit}")
        if len(text) <= _LIKELY_FIT * limit and encoder.count_tokens([text])[0] <= limit:
            return [Passage(0, 0, len(text))]
        spans = encoder.token_spans(text)
        if len(spans) <= limit and (len(spans) == 0 or encoder.count_tokens([text])[0] <= limit):
            return [Passage(0, 0, len(text))]
        room = limit - encoder.count_tokens([""])[0]
        if room < 1:
            raise InvalidValue(f"token_limit: {limit} tokens are taken up by the special tokens and the prefix alone")
        if self.overlap > _MOST_OVERLAP * room:
            most = int(_MOST_OVERLAP * room)
            raise InvalidValue(f"overlap: expected at most {most} (40 % of {room}), found {self.overlap}")
        plan = _Plan(find_borders(text, spans), self.overlap)
        ends = _fitting(plan, text, encoder, limit, room)
        return [Passage(position, start, end) for position, (start, end) in enumerate(ends)]


class _Plan:
    """Where to cut, in tokens; knows the borders but not the text."""

    def __init__(self, borders: Borders, overlap: int) -> None:
        self.borders = borders
        self.levels = borders.levels
        self.tokens = len(borders.levels) - 1
        self.overlap = overlap
        allowed = np.flatnonzero(self.levels >= WITHIN_WORD)
        places = np.arange(len(self.levels))
        self._next = allowed[np.searchsorted(allowed, places)]
        self._last = allowed[np.searchsorted(allowed, places, side="right") - 1]

    def cut(self, first: int, last: int, room: int) -> list[tuple[int, int]]:
        """Split the tokens ``first`` to ``last`` into ranges of at most ``room``, where the borders allow it."""
        overlap = min(self.overlap, int(_MOST_OVERLAP * room))
        # Pieces are planned with the most they may share, or the last could turn out too long.
        shared = overlap + overlap // 4
        ranges = []
        while last - first > room:
            end = self._end(first, last, room, shared)
            if end >= last:
                break
            ranges.append((first, end))
            first = self._start(first, end, overlap, shared)
        return [*ranges, (first, last)]

    def extent(self, first: int, last: int) -> tuple[int, int]:
        """Return the code points of a range of tokens."""
        return int(self.borders.positions[first]), int(self.borders.positions[last])

    def _end(self, first: int, last: int, room: int, shared: int) -> int:
        left = last - first + shared
        if left > (2 - _WINDOW) * room:
            low, high, wish = math.ceil((1 - _WINDOW) * room), room, room
        else:
            half, margin = left / 2, _WINDOW / 2 * room
            low, high = max(math.floor(half - margin), left - room), math.ceil(half + margin)
            wish = round(half)
        low = max(low, shared + 1)
        high = max(low, min(high, room))
        best = self._best(first + low, min(first + high, last - 1), first + wish)
        if best is None:
            before, after = int(self._last[first + low]), int(self._next[min(first + high, last)])
            best = before if before > first else after
        return best

    def _start(self, first: int, end: int, overlap: int, shared: int) -> int:
        if not overlap:
            return end
        latest = end - overlap
        best = self._best(max(first + 1, end - shared), latest, latest)
        if best is None:
            best = int(self._last[latest]) if latest > first else end
        return best if best > first else end

    def _best(self, low: int, high: int, wish: int) -> int | None:
        """Return the border of the highest level from ``low`` to ``high``; of several the nearest to ``wish``."""
        window: npt.NDArray[np.int8] = self.levels[low : high + 1]
        if not len(window) or (highest := window.max()) < WITHIN_WORD:
            return None
        places = low + np.flatnonzero(window == highest)
        return int(places[np.abs(places - wish).argmin()])


def _fitting(plan: _Plan, text: str, encoder: Encoder, limit: int, room: int) -> list[tuple[int, int]]:
    """Return the extents of the pieces, each counted by the encoder and cut again if it counts too much."""
    done: list[tuple[int, int]] = []
    pieces = plan.cut(0, plan.tokens, room)
    for _ in range(_ROUNDS):
        again = []
        extents = [plan.extent(*piece) for piece in pieces]
        for (first, last), extent, count in zip(pieces, extents, _counts(extents, text, encoder), strict=True):
            if count <= limit:
                done.append(extent)
                continue
            # A word cut in two can have more tokens than it had whole: the room shrinks in proportion, and by one.
            smaller = min(room, (last - first) * limit // count - 1, last - first - 1)
            parts = plan.cut(first, last, max(1, smaller))
            if len(parts) > 1:
                again += parts
            else:
                done += _halves(extent, text, encoder, limit)
        pieces = again
        if not pieces:
            break
    done += [plan.extent(*piece) for piece in pieces]
    return sorted({(start, end) for start, end in done if end > start})


def _halves(extent: tuple[int, int], text: str, encoder: Encoder, limit: int) -> list[tuple[int, int]]:
    """Halve a piece without a border inside until it fits or is one code point."""
    start, end = extent
    if end - start <= 1 or _counts([extent], text, encoder)[0] <= limit:
        return [extent]
    middle = (start + end) // 2
    return [*_halves((start, middle), text, encoder, limit), *_halves((middle, end), text, encoder, limit)]


def _counts(extents: Iterable[tuple[int, int]], text: str, encoder: Encoder) -> list[int]:
    return encoder.count_tokens([text[start:end] for start, end in extents])
