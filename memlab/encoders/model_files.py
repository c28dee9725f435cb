"""What the small files of a sentence-transformers model say about it, read without torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memlab.errors import EncoderUnavailable

__all__ = ["ModelFacts", "read_facts"]

_TRANSFORMER_CONFIGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
# A tokenizer without a limit says so with 1e30.
_NO_LIMIT = 10**9
# These spend the first padding_idx + 1 positions on nothing.
_SHIFTED_POSITIONS = frozenset({"camembert", "mpnet", "roberta", "xlm-roberta", "xlm-roberta-xl"})


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model before its weights are loaded.

    Attributes
    ----------
    dimension : int or None
        Length of a vector; None when only the loaded model can tell.
    token_limit : int or None
        Tokens of a text that take part, special tokens included; None when no file says.
    position_limit : int or None
        The most that the weights could take; a larger token limit would fail inside the model.
    prompts : mapping
        The model's own prefixes by name, for example ``query`` and ``passage``.
    tokenizer_folder : Path
        Where the tokenizer's files are.
    lower_case : bool
        Whether sentence-transformers lower-cases the text in addition to what the tokenizer does.
    special_tokens : bool
        Whether the model adds special tokens; static embeddings do not.
    """

    dimension: int | None
    token_limit: int | None
    position_limit: int | None
    tokenizer_folder: Path
    prompts: Mapping[str, str] = field(default_factory=dict)
    lower_case: bool = False
    special_tokens: bool = True

    def prompt(self, *names: str) -> str:
        """Return the first prompt of these names that the model has, or an empty text."""
        return next((self.prompts[name] for name in names if self.prompts.get(name)), "")


def read_facts(folder: Path) -> ModelFacts:
    """Read the configuration files of the model in ``folder``.

    Raises
    ------
    EncoderUnavailable
        If one of them is not the JSON it should be.
    """
    modules = _read(folder / "modules.json", list) or []
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    paths = [folder / str(module.get("path", "")) for module in modules]
    inner = paths[0] if paths else folder
    config = _read(inner / "config.json", dict) or {}
    config = config.get("text_config") or config
    wrapper: dict[str, Any] = next((found for name in _TRANSFORMER_CONFIGS if (found := _read(inner / name, dict))), {})
    tokenizer = _read(inner / "tokenizer_config.json", dict) or {}
    own = _read(folder / "config_sentence_transformers.json", dict) or {}
    position_limit = _position_limit(config, tokenizer)
    stated = _whole(wrapper.get("max_seq_length"))
    return ModelFacts(
        dimension=_dimension(kinds, paths, config, own),
        token_limit=stated or position_limit,
        position_limit=position_limit,
        prompts={str(name): text for name, text in (own.get("prompts") or {}).items() if isinstance(text, str)},
        tokenizer_folder=inner,
        lower_case=bool(wrapper.get("do_lower_case")),
        special_tokens=kinds[:1] != ["StaticEmbedding"],
    )


def _dimension(kinds: list[str], paths: list[Path], config: dict[str, Any], own: dict[str, Any]) -> int | None:
    dimension = _whole(config.get("hidden_size")) or _whole(config.get("d_model")) or _whole(config.get("dim"))
    for kind, path in zip(kinds[1:], paths[1:], strict=True):
        settings = _read(path / "config.json", dict) or {}
        if kind == "Pooling":
            width = _whole(settings.get("embedding_dimension")) or _whole(settings.get("word_embedding_dimension"))
            dimension = (width or dimension or 0) * _pooling_modes(settings) or None
        elif kind == "Dense":
            dimension = _whole(settings.get("out_features"))
        elif kind not in {"Normalize", "Dropout", "LayerNorm"}:
            return None
    if kinds and kinds[0] != "Transformer":
        return None
    shortened = _whole(own.get("truncate_dim"))
    return min(dimension, shortened) if dimension and shortened else dimension


def _pooling_modes(settings: dict[str, Any]) -> int:
    mode = settings.get("pooling_mode")
    if isinstance(mode, list):
        return max(1, len(mode))
    switched = [value for name, value in settings.items() if name.startswith("pooling_mode_") and value is True]
    return 1 if isinstance(mode, str) else max(1, len(switched))


def _position_limit(config: dict[str, Any], tokenizer: dict[str, Any]) -> int | None:
    positions = _whole(config.get("max_position_embeddings"))
    if positions and config.get("model_type") in _SHIFTED_POSITIONS:
        positions -= (_whole(config.get("pad_token_id")) or 0) + 1
    longest = _whole(tokenizer.get("model_max_length"))
    limits = [limit for limit in (positions, longest) if limit and limit < _NO_LIMIT]
    return min(limits) if limits else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _read(file: Path, kind: type) -> Any:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise EncoderUnavailable(f"{file} cannot be read as JSON: {error}; fetch the model again") from error
    if not isinstance(content, kind):
        raise EncoderUnavailable(f"{file}: expected a JSON {kind.__name__}, found {type(content).__name__}")
    return content
