"""all-MiniLM-L6-v2 with numbers of 16 bits, for processors that multiply those faster."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from memlab.encoders.sentence_transformer import SentenceTransformerEncoder
from memlab.encoders.weights import ModelFolder

__all__ = ["BFLOAT16", "HalfPrecision", "multiplies_bfloat16"]

BFLOAT16 = "+bfloat16"
"""What follows the name and the fingerprint of the weights that vectors of this precision were made with."""

_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # Intel and AMD, Intel's tiles, ARM


class HalfPrecision(SentenceTransformerEncoder):
    """The model in ``folder`` on torch, its weights and sums rounded to bfloat16.

    Parameters
    ----------
    folder : ModelFolder
    batch_size, token_limit, device
        As in :class:`~memlab.encoders.sentence_transformer.SentenceTransformerEncoder`.
    """

    def __init__(self, folder: ModelFolder, *, batch_size: int, token_limit: int | None, device: str) -> None:
        super().__init__(folder.path, batch_size=batch_size, token_limit=token_limit, device=device)
        self._found = folder

    def _locate(self) -> ModelFolder:
        return self._found

    def _read_weights(self) -> Any:
        if self._device == "cpu" and multiplies_bfloat16() is False:
            warnings.warn(
                "this processor has no instructions for bfloat16, so it takes longer than float32 and is less exact; "
                "leave precision out",
                UserWarning,
                stacklevel=2,
            )
        return super()._read_weights().bfloat16()


def multiplies_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool | None:
    """Whether the processor has instructions for it; ``None`` where the system does not tell (only Linux does)."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, flags = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return not _FLAGS.isdisjoint(flags.split())
    return None
