"""The bearer token of a server: random, kept in a private file so that clients survive a restart, shown to nobody."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import tempfile
from pathlib import Path

_FORM = re.compile(r"[\w.~+/-]{16,512}=*", re.ASCII)
MASK = "••••••••"


class Secret:
    """A text that only ``secret.value`` shows: printed or displayed it is masked, so it gets into no saved notebook."""

    def __init__(self, value: str) -> None:
        self._value = value

    @property
    def value(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return f"<token {MASK}; .value is the token itself>" if self._value else "<no token>"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)


def new_token() -> str:
    """A token of 256 random bits."""
    return secrets.token_urlsafe(32)


def is_token(text: str) -> bool:
    """Whether this can be sent as a bearer token and is long enough to be one."""
    return bool(_FORM.fullmatch(text))


def token_path(store: Path) -> Path:
    """Where the token for a store lies: in the user's own data folder, named by the store's path."""
    import platformdirs

    name = hashlib.sha256(os.fsencode(store.resolve())).hexdigest()[:16]
    return Path(platformdirs.user_data_dir("memlab", appauthor=False)) / "tokens" / name


def _owner(path: Path) -> Path:
    """The file that says whose token it is."""
    return path.with_name(path.name + ".store")


def _drop_orphans(folder: Path, but: Path) -> None:
    """Remove the tokens of stores in temporary folders that are gone: notebooks and tests leave one each time."""
    temporary = Path(tempfile.gettempdir()).resolve()
    for owner in folder.glob("*.store"):
        with contextlib.suppress(OSError, ValueError):
            store = Path(owner.read_text(encoding="utf-8"))
            if owner != but and temporary in store.parents and not store.exists():
                owner.with_suffix("").unlink(missing_ok=True)
                owner.unlink()


def kept_token(path: Path) -> str | None:
    """The token in a file, if there is one that nobody else can read."""
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            return None
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return text if is_token(text) else None


def keep_token(path: Path, token: str, store: Path) -> bool:
    """Write the token for a store to a file of mode 0600; False where that cannot be done."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(token + "\n")
        os.replace(aside, path)
        _owner(path).write_text(str(store.resolve()), encoding="utf-8")
        _drop_orphans(path.parent, _owner(path))
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        return False
    return True


def ensure_token(store: Path) -> tuple[str, Path | None]:
    """The token for a store, made if there is none, and the file that keeps it, if one can."""
    path = token_path(store)
    token = kept_token(path)
    if token is None:
        token = new_token()
        if not keep_token(path, token, store):
            return token, None
    return token, path
