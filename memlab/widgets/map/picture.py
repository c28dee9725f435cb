"""The static picture of a map: a PNG from numpy and zlib, for notebooks that are opened without a kernel."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.float32]

WIDTH, HEIGHT = 880, 480
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8a8a8a")
"""Okabe and Ito's, and a grey for the last value; the script has the same."""
ORDERED = ("#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369")
"""Of values with an order, the first the darkest (cividis, which reads the same to colour-blind people)."""
_MARGIN = 28


def draw(
    coordinates: npt.NDArray[np.float64],
    codes: npt.NDArray[np.uint8],
    *,
    ordered: bool = False,
    query: tuple[float, float] | None = None,
    hits: npt.NDArray[np.float64] | None = None,
) -> bytes:
    """Points, and a query with lines to its hits, on white.

    Parameters
    ----------
    coordinates : ndarray of float64, shape (n, 2)
    codes : ndarray of uint8, shape (n,)
        Which colour and which shape.
    ordered : bool
        Whether the codes have an order.
    query : tuple of float, optional
    hits : ndarray of float64, shape (h, 2), optional

    Returns
    -------
    bytes
        A PNG.
    """
    image = np.full((HEIGHT, WIDTH, 3), 255.0, np.float32)
    seen = [coordinates] + ([np.array([query])] if query is not None else [])
    to_pixels = _fit(np.concatenate(seen))
    radius = 4.5 if len(coordinates) <= 1_500 else 3.0 if len(coordinates) <= 20_000 else 1.6
    pixels = to_pixels(coordinates)
    for code in range(int(codes.max(initial=0)) + 1):
        colours = ORDERED if ordered else PALETTE
        # Values with an order are told by size as well, others by shape: never by colour alone.
        glyph = _glyph(0, radius * (1.25 - 0.09 * code)) if ordered else _glyph(code, radius)
        _stamp(image, pixels[codes == code], glyph, _rgb(colours[code % len(colours)]))
    if hits is not None and query is not None:
        start = to_pixels(np.array([query]))[0]
        for end in to_pixels(hits):
            _line(image, start, end)
    if hits is not None and len(hits):
        _stamp(image, to_pixels(hits), _ring(radius + 4.5), (27.0, 27.0, 27.0))
    if query is not None:
        _stamp(image, to_pixels(np.array([query])), _glyph(6, 10.0), (27.0, 27.0, 27.0))
    return png(np.clip(np.rint(image), 0, 255).astype(np.uint8))


def png(image: npt.NDArray[np.uint8]) -> bytes:
    """An image as a PNG file.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    """
    height, width, _ = image.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # 0 before each row: no filter
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


def _fit(coordinates: npt.NDArray[np.float64]) -> Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]:
    """From coordinates to pixels: all within the margins, both axes to the same scale, y upwards."""
    low = coordinates.min(axis=0) if len(coordinates) else np.zeros(2)
    high = coordinates.max(axis=0) if len(coordinates) else np.ones(2)
    extent = np.maximum(high - low, 1e-9)
    scale = float(min((WIDTH - 2 * _MARGIN) / extent[0], (HEIGHT - 2 * _MARGIN) / extent[1]))
    middle = (low + high) / 2

    def to_pixels(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        moved = (points - middle) * scale
        return np.stack([WIDTH / 2 + moved[:, 0], HEIGHT / 2 - moved[:, 1]], axis=1)

    return to_pixels


def _rgb(colour: str) -> tuple[float, float, float]:
    return (float(int(colour[1:3], 16)), float(int(colour[3:5], 16)), float(int(colour[5:7], 16)))


def _grid(reach: int) -> tuple[Image, Image]:
    at = np.arange(-reach, reach + 1, dtype=np.float32)
    across, down = np.meshgrid(at, at)
    return across, down


def _glyph(code: int, radius: float) -> Image:
    """How much of each pixel a shape covers: disc, square, triangle, diamond, triangle down, plus, star, small disc."""
    x, y = _grid(int(radius * 1.5) + 1)
    r = radius
    match code % 8:
        case 0:
            inside = r - np.hypot(x, y)
        case 1:
            inside = 0.86 * r - np.maximum(np.abs(x), np.abs(y))
        case 2:
            inside = np.minimum(0.7 * r - y, (y + 1.2 * r) * 0.5 - np.abs(x) * 0.87)
        case 3:
            inside = (1.25 * r - np.abs(x) - np.abs(y)) * 0.7
        case 4:
            inside = np.minimum(0.7 * r + y, (1.2 * r - y) * 0.5 - np.abs(x) * 0.87)
        case 5:
            inside = np.minimum(
                1.15 * r - np.maximum(np.abs(x), np.abs(y)), 0.45 * r - np.minimum(np.abs(x), np.abs(y))
            )
        case 6:
            angle = np.arctan2(x, -y)
            inside = r * (0.85 + 0.35 * np.cos(5 * angle)) - np.hypot(x, y)
        case _:
            inside = 0.7 * r - np.hypot(x, y)
    covered: Image = np.clip(inside + 0.5, 0.0, 1.0).astype(np.float32)
    return covered


def _ring(radius: float) -> Image:
    x, y = _grid(int(radius) + 2)
    ring: Image = np.clip(1.4 - np.abs(np.hypot(x, y) - radius), 0.0, 1.0).astype(np.float32)
    return ring


def _stamp(image: Image, pixels: npt.NDArray[np.float64], glyph: Image, colour: Sequence[float]) -> None:
    """Put a shape at each place. Of equal shapes the order does not matter, so each of its pixels is put at once."""
    reach = glyph.shape[0] // 2
    centres = np.rint(pixels).astype(np.int64)
    inside = ((centres >= -reach) & (centres < np.array([WIDTH, HEIGHT]) + reach)).all(axis=1)
    centres = centres[inside]
    cover = np.zeros((HEIGHT + 2 * reach, WIDTH + 2 * reach), np.float32)
    # Padded so that shapes at the rim need no clipping.
    centres = np.clip(centres, 0, np.array([WIDTH, HEIGHT]) - 1) + reach
    for down, across in zip(*np.nonzero(glyph), strict=True):
        rows, columns = centres[:, 1] + down - reach, centres[:, 0] + across - reach
        cover[rows, columns] = np.maximum(cover[rows, columns], glyph[down, across])
    alpha = (0.85 * cover[reach : reach + HEIGHT, reach : reach + WIDTH])[:, :, None]
    image *= 1 - alpha
    image += alpha * np.array(colour, np.float32)


def _line(image: Image, start: npt.NDArray[np.float64], end: npt.NDArray[np.float64]) -> None:
    steps = int(2 * np.hypot(*(end - start))) + 1
    along = np.linspace(0, 1, steps)[:, None]
    at = np.rint(start + along * (end - start)).astype(np.int64)
    at = at[((at >= 0) & (at < [WIDTH, HEIGHT])).all(axis=1)]
    image[at[:, 1], at[:, 0]] = 0.5 * image[at[:, 1], at[:, 0]] + 0.5 * 27.0
