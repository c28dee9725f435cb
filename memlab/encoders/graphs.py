"""Graphs for ONNX Runtime: made once from verified weights, checked, kept, and found again."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from memlab.cached import cache_home, write_whole
from memlab.encoders.base import FloatMatrix
from memlab.encoders.bert_graph import GRAPH_FORMAT, build_graph, read_shape, why_not_bert
from memlab.encoders.fingerprint import file_sha256
from memlab.encoders.model_files import read_facts
from memlab.encoders.onnx_model import OnnxModel
from memlab.encoders.reference_vectors import CHECK_TEXTS, agrees, reference_vectors
from memlab.encoders.weights import MINILM, MINILM_SHA256, ModelFolder, cache_folders, cached_snapshot
from memlab.errors import EncoderUnavailable

__all__ = ["Found", "Prepared", "find_graph", "graph_path", "open_graph", "prepare_graph"]

_CHECK_LIMIT = 256
_MAKE = "`memlab prepare` makes one in a few seconds"


@dataclass(frozen=True)
class Found:
    """The graph for some weights.

    Attributes
    ----------
    path : Path or None
        ``None`` where there is none to be used.
    own : bool
        Whether memlab made it and its hash is the one it had then. Another's is checked when it is loaded.
    reason : str
        Why there is none; empty if there is.
    """

    path: Path | None
    own: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Prepared:
    """What :func:`prepare_graph` did.

    Attributes
    ----------
    path : Path
    made : bool
        False if it was there.
    seconds : float
    difference : float
        The largest difference of a component from the reference, over all texts of the check; NaN where it was there.
    """

    path: Path
    made: bool
    seconds: float
    difference: float


def graph_path(folder: ModelFolder) -> Path:
    """Where the graph for these weights lies, whether it is there or not."""
    return cache_home() / "graphs" / f"{folder.fingerprint.removeprefix('sha256:')}-{GRAPH_FORMAT}.onnx"


def find_graph(folder: ModelFolder) -> Found:
    """Look for the graph of a model; nothing is loaded.

    First memlab's own, by the weights' hash; then, for the original weights of all-MiniLM-L6-v2, ``onnx/model.onnx`` of
    the model's folder or of its snapshot in the Hugging Face cache.
    """
    if find_spec("onnxruntime") is None:
        return Found(None, reason="onnxruntime is not installed: python -m pip install onnxruntime")
    path = graph_path(folder)
    damage = _damage(path)
    if damage == "":
        return Found(path, own=True)
    if _is_original(folder):
        snapshots = [cached_snapshot(MINILM, cache) for cache in cache_folders()]
        for place in (folder.path, *snapshots):
            if place is not None and (file := place / "onnx" / "model.onnx").is_file():
                return Found(file)
    if damage is not None:
        return Found(None, reason=damage)
    unfit = why_not_bert(folder.path)
    return Found(None, reason=f"no graph can be made of it: {unfit}" if unfit else f"no graph yet; {_MAKE}")


def open_graph(folder: ModelFolder, found: Found, token_limit: int, threads: int | None = None) -> OnnxModel:
    """Load the graph that :func:`find_graph` found; one that memlab did not make is checked first.

    Raises
    ------
    EncoderUnavailable
        If there is none, it cannot be loaded, or its vectors are not those of the weights.
    """
    if found.path is None:
        raise EncoderUnavailable(found.reason)
    tokenizer = read_facts(folder.path).tokenizer_folder / "tokenizer.json"
    if not found.own:
        # At the limit that the expected vectors were made with, whatever this model is asked for.
        _check(OnnxModel(found.path, tokenizer, _CHECK_LIMIT, threads), reference_vectors(), found.path)
    return OnnxModel(found.path, tokenizer, token_limit, threads)


def prepare_graph(
    folder: ModelFolder, *, force: bool = False, say: Callable[[str], None] = lambda line: None
) -> Prepared:
    """Make the graph for the weights in ``folder``, check it, and keep it in the cache folder.

    Nothing is done if it is there and whole. The file appears when the check is passed, with its hash beside it.

    Parameters
    ----------
    folder : ModelFolder
        Of a BERT with mean pooling, with its weights in one model.safetensors.
    force : bool
        Make it anew.
    say : callable
        Is given a line before each step.

    Raises
    ------
    EncoderUnavailable
        If it is another kind of model; the weights are not those that ``folder`` names; a package is missing; the cache
        folder cannot be written or is full; or the graph's vectors differ from the reference.

    Notes
    -----
    The reference: for the original weights vectors that sentence-transformers made and memlab keeps; for all others
    sentence-transformers itself, now.
    """
    started = time.perf_counter()
    path = graph_path(folder)
    if not force and _damage(path) == "":
        return Prepared(path, False, time.perf_counter() - started, float("nan"))
    if unfit := why_not_bert(folder.path):
        raise EncoderUnavailable(f"{folder.path}: no graph can be made of this model: {unfit}; it goes through torch")
    say(f"reading the weights in {folder.path}")
    weights = _read_weights(folder)
    say("writing the network as an ONNX graph")
    graph, numbers = build_graph(weights, read_shape(folder.path), _numbers(path).name)
    tokenizer = read_facts(folder.path).tokenizer_folder / "tokenizer.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _check_room(path.parent, len(graph) + len(numbers))
        with tempfile.TemporaryDirectory(prefix="check-", dir=path.parent) as temporary:
            candidate = Path(temporary) / path.name
            candidate.write_bytes(graph)
            _numbers(candidate).write_bytes(numbers)
            say("comparing its vectors with the reference")
            limit = min(_CHECK_LIMIT, read_facts(folder.path).position_limit or _CHECK_LIMIT)
            expected = reference_vectors() if _is_original(folder) else _made_by_torch(folder, limit)
            difference = _check(OnnxModel(candidate, tokenizer, limit), expected, candidate)
        # Without the record nothing is used, and it goes last.
        _record(path).unlink(missing_ok=True)
        write_whole(_numbers(path), numbers)
        write_whole(path, graph)
        record = {"graph": hashlib.sha256(graph).hexdigest(), "numbers": hashlib.sha256(numbers).hexdigest()}
        write_whole(_record(path), json.dumps(record).encode())
        for older in path.parent.glob(f"{path.stem.rpartition('-')[0]}-*"):
            if older.stem != path.stem:
                older.unlink()  # of a former memlab
    except OSError as error:
        raise EncoderUnavailable(
            f"{path.parent}: the graph cannot be written there ({error.strerror or error}); free or unlock the folder, "
            "or name another one with MEMLAB_CACHE. Until then the slower path is used"
        ) from error
    return Prepared(path, True, time.perf_counter() - started, difference)


def _check(model: OnnxModel, expected: FloatMatrix, path: Path) -> float:
    """Compare a graph with what is expected, texts together and alone; tells the largest difference."""
    together = model.encode(CHECK_TEXTS)
    alone = np.concatenate([model.encode([text]) for text in CHECK_TEXTS])
    agreed, difference = agrees([together, alone], expected)
    if not agreed:
        raise EncoderUnavailable(
            f"{path}: the graph's vectors differ from the reference by {difference:.2g}, so it is not used"
        )
    return difference


def _made_by_torch(folder: ModelFolder, limit: int) -> FloatMatrix:
    from memlab.encoders.sentence_transformer import SentenceTransformerEncoder

    reference = SentenceTransformerEncoder(folder.path, query_prefix="", document_prefix="", token_limit=limit)
    return reference.encode_documents(CHECK_TEXTS)


def _read_weights(folder: ModelFolder) -> bytes:
    try:
        weights = (folder.path / "model.safetensors").read_bytes()
    except OSError as error:
        raise EncoderUnavailable(f"the weights in {folder.path} cannot be read: {error.strerror}") from error
    found = f"sha256:{hashlib.sha256(weights).hexdigest()}"
    if found != folder.fingerprint:
        raise EncoderUnavailable(
            f"{folder.path}: expected the weights {folder.fingerprint}, found {found}; were they changed meanwhile?"
        )
    return weights


def _check_room(folder: Path, size: int) -> None:
    free, needed = shutil.disk_usage(folder).free, 2 * size + 1_000_000
    if free < needed:
        raise OSError(28, f"{free / 1e6:,.0f} MB are free, {needed / 1e6:,.0f} MB are needed")


def _damage(path: Path) -> str | None:
    """What is wrong with a graph of memlab's own: empty if nothing is, None if there is none."""
    if not path.is_file():
        return None
    try:
        record = json.loads(_record(path).read_text(encoding="utf-8"))
        if (file_sha256(path), file_sha256(_numbers(path))) == (record["graph"], record["numbers"]):
            return ""
    except (OSError, ValueError, KeyError, TypeError):
        return f"the graph {path} is not whole, so it is not used; {_MAKE}"
    return f"the graph {path} is damaged, so it is not used; {_MAKE}"


def _numbers(path: Path) -> Path:
    return path.with_suffix(".weights")


def _record(path: Path) -> Path:
    return path.with_suffix(".json")


def _is_original(folder: ModelFolder) -> bool:
    return folder.fingerprint == f"sha256:{MINILM_SHA256}"
