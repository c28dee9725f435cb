"""What to put into each client's settings so that it uses a store: exact commands and files, with absolute paths.

A snippet never holds the token itself: a shell reads it from its private file, a client that can does the same, and
the others ask for it or take it from an environment variable.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.errors import InvalidValue

NAME = "memlab"
VARIABLE = "MEMLAB_TOKEN"


@dataclass(frozen=True)
class Snippet:
    """What to copy, and where to.

    Attributes
    ----------
    client : str
        Its name as people write it.
    where : str
        A shell, or the file to add it to.
    text : str
    note : str
        What else is to be known; empty as a rule.
    """

    client: str
    where: str
    text: str
    note: str = ""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        head = f"# {self.client}: {self.where}"
        return "\n".join([head, *([f"# {self.note}"] if self.note else []), self.text])


@dataclass(frozen=True)
class Http:
    """Where a server listens, and where its token is kept.

    Attributes
    ----------
    url : str
    token_file : Path or None
        ``None`` if there is no token, or it is kept nowhere.
    needs_token : bool
    """

    url: str
    token_file: Path | None
    needs_token: bool = True

    @property
    def shell_token(self) -> str:
        """What a shell makes the token of."""
        return f"$(cat {shlex.quote(str(self.token_file))})" if self.token_file is not None else f"${VARIABLE}"

    @property
    def export(self) -> str:
        """Sets the variable that a client reads."""
        value = f'"$(cat {shlex.quote(str(self.token_file))})"' if self.token_file is not None else "TOKEN"
        return f"export {VARIABLE}={value}"


def command(db: Path, *arguments: str) -> list[str]:
    """The command that starts a stdio server, by absolute paths: clients start it wherever they are."""
    beside = shutil.which("memlab", path=str(Path(sys.executable).parent))
    start = [beside] if beside else [sys.executable, "-m", "memlab.cli"]
    return [*start, "mcp", "--db", str(db.absolute()), *arguments]


def shell_line(words: Sequence[str]) -> str:
    """A command as one types it into a shell."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _home(*parts: str) -> str:
    return str(Path.home().joinpath(*parts))


def _desktop_file() -> str:
    if sys.platform == "darwin":
        return _home("Library", "Application Support", "Claude", "claude_desktop_config.json")
    if os.name == "nt":
        return str(
            Path(os.environ.get("APPDATA", _home("AppData", "Roaming"))) / "Claude" / "claude_desktop_config.json"
        )
    return _home(".config", "Claude", "claude_desktop_config.json")


def _entry(words: Sequence[str]) -> dict[str, Any]:
    return {"command": words[0], "args": list(words[1:]), "env": {"PYTHONUTF8": "1"}}


def _header(http: Http, token: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {token}"}} if http.needs_token else {}


# -- stdio -----------------------------------------------------------------------------------------------------------


def _claude_code(words: Sequence[str]) -> Snippet:
    return Snippet(
        "Claude Code",
        "in a shell",
        shell_line(["claude", "mcp", "add", "-s", "user", NAME, "-e", "PYTHONUTF8=1", "--", *words]),
    )


def _claude_desktop(words: Sequence[str]) -> Snippet:
    return Snippet("Claude Desktop", _desktop_file(), _json({"mcpServers": {NAME: _entry(words)}}))


def _codex(words: Sequence[str]) -> Snippet:
    return Snippet(
        "Codex", "in a shell", shell_line(["codex", "mcp", "add", NAME, "--env", "PYTHONUTF8=1", "--", *words])
    )


def _gemini(words: Sequence[str]) -> Snippet:
    # Its own options go before the name; a bare -- would become an argument of the server.
    return Snippet(
        "Gemini CLI",
        "in a shell",
        shell_line(["gemini", "mcp", "add", "-s", "user", "-e", "PYTHONUTF8=1", NAME, *words]),
    )


def _opencode(words: Sequence[str]) -> Snippet:
    entry = {"type": "local", "command": list(words), "environment": {"PYTHONUTF8": "1"}, "enabled": True}
    return Snippet("OpenCode", _home(".config", "opencode", "opencode.json"), _json({"mcp": {NAME: entry}}))


def _vscode(words: Sequence[str]) -> Snippet:
    entry = {"type": "stdio", **_entry(words)}
    return Snippet("VS Code", ".vscode/mcp.json of a workspace", _json({"servers": {NAME: entry}}))


def _cursor(words: Sequence[str]) -> Snippet:
    return Snippet("Cursor", _home(".cursor", "mcp.json"), _json({"mcpServers": {NAME: _entry(words)}}))


# -- HTTP ------------------------------------------------------------------------------------------------------------


def _claude_code_http(http: Http) -> Snippet:
    text = f"claude mcp add -s user --transport http {NAME} {http.url}"
    if http.needs_token:
        text += f' --header "Authorization: Bearer {http.shell_token}"'
    return Snippet("Claude Code", "in a shell", text)


def _codex_http(http: Http) -> Snippet:
    text = f"codex mcp add {NAME} --url {http.url}"
    if not http.needs_token:
        return Snippet("Codex", "in a shell", text)
    note = f"{VARIABLE} must be set wherever codex is started"
    return Snippet("Codex", "in a shell", f"{http.export}\n{text} --bearer-token-env-var {VARIABLE}", note)


def _gemini_http(http: Http) -> Snippet:
    text = "gemini mcp add -s user -t http"
    if http.needs_token:
        text += f' -H "Authorization: Bearer {http.shell_token}"'
    return Snippet("Gemini CLI", "in a shell", f"{text} {NAME} {http.url}")


def _opencode_http(http: Http) -> Snippet:
    token = f"{{file:{http.token_file}}}" if http.token_file is not None else f"{{env:{VARIABLE}}}"
    entry = {"type": "remote", "url": http.url, "enabled": True, "oauth": False, **_header(http, token)}
    return Snippet("OpenCode", _home(".config", "opencode", "opencode.json"), _json({"mcp": {NAME: entry}}))


def _vscode_http(http: Http) -> Snippet:
    entry = {"type": "http", "url": http.url, **_header(http, "${input:memlab-token}")}
    value: dict[str, Any] = {"servers": {NAME: entry}}
    if not http.needs_token:
        return Snippet("VS Code", ".vscode/mcp.json of a workspace", _json(value))
    asked = {"type": "promptString", "id": "memlab-token", "description": "memlab token", "password": True}
    value = {"inputs": [asked], **value}
    return Snippet(
        "VS Code", ".vscode/mcp.json of a workspace", _json(value), _where_token(http, "VS Code asks for it once")
    )


def _cursor_http(http: Http) -> Snippet:
    entry = {"url": http.url, **_header(http, f"${{env:{VARIABLE}}}")}
    text = _json({"mcpServers": {NAME: entry}})
    note = _where_token(http, f"Cursor reads {VARIABLE} from its environment") if http.needs_token else ""
    return Snippet("Cursor", _home(".cursor", "mcp.json"), text, note)


def _where_token(http: Http, how: str) -> str:
    return f"{how}; it is in {http.token_file}" if http.token_file is not None else how


CLIENTS: dict[str, tuple[Callable[[Sequence[str]], Snippet], Callable[[Http], Snippet] | None]] = {
    "claude-code": (_claude_code, _claude_code_http),
    "claude-desktop": (_claude_desktop, None),
    "codex": (_codex, _codex_http),
    "gemini": (_gemini, _gemini_http),
    "opencode": (_opencode, _opencode_http),
    "vscode": (_vscode, _vscode_http),
    "cursor": (_cursor, _cursor_http),
}


def stdio_snippet(client: str, db: Path, *arguments: str) -> Snippet:
    """The settings for a server that the client starts itself.

    Parameters
    ----------
    client : str
        One of :data:`CLIENTS`.
    db : Path
        The store.
    arguments : str
        Further options of ``memlab mcp``.

    Raises
    ------
    InvalidValue
        If the client is not known.
    """
    return _known(client)[0](command(db, *arguments))


def http_snippet(client: str, http: Http) -> Snippet:
    """The settings for a server that listens already; raises :class:`InvalidValue`."""
    make = _known(client)[1]
    if make is None:
        raise InvalidValue(f"{client}: starts its servers itself and takes no address in its file; use stdio")
    return make(http)


def _known(client: str) -> tuple[Callable[[Sequence[str]], Snippet], Callable[[Http], Snippet] | None]:
    key = client.strip().lower().replace("_", "-").replace(" ", "-")
    key = {"claude": "claude-code", "gemini-cli": "gemini", "vs-code": "vscode", "code": "vscode"}.get(key, key)
    if key not in CLIENTS:
        raise InvalidValue(f"client: expected one of {', '.join(CLIENTS)}; found {client!r}")
    return CLIENTS[key]
