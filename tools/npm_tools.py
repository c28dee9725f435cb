"""Install the programs from npm that test the MCP server, in exact versions, into a folder that git ignores.

    python tools/npm_tools.py [FOLDER]

Prints the folder. A second run finds them and installs nothing. npm has to be there; any Node that it runs on will do,
for the Node that the programs themselves need is one of them.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".mcp-tools"
PROGRAMS = {"@modelcontextprotocol/inspector": "2.12.0", "@modelcontextprotocol/conformance": "0.2.0-alpha.12"}
NODE = "24.22.3"
_SYSTEMS = {"Linux": "linux", "Darwin": "darwin", "Windows": "win"}
_MACHINES = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def node_package() -> str:
    """The package that carries Node for this machine."""
    return f"node-{_SYSTEMS[platform.system()]}-{_MACHINES[platform.machine()]}"


def wanted() -> dict[str, str]:
    """Packages and their exact versions."""
    return {**PROGRAMS, node_package(): NODE}


def installed(folder: Path) -> bool:
    """Whether they are all there."""
    for name, version in wanted().items():
        try:
            found = json.loads((folder / "node_modules" / name / "package.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        if found.get("version") != version:
            return False
    return True


def node(folder: Path) -> Path:
    """The Node that was installed."""
    return folder / "node_modules" / node_package() / "bin" / ("node.exe" if platform.system() == "Windows" else "node")


def install(folder: Path) -> None:
    """Install what is missing."""
    if installed(folder):
        return
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is needed to test the MCP server with the programs that others test theirs with")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"private": True, "dependencies": wanted()}, indent=2)
    (folder / "package.json").write_text(text + "\n", encoding="utf-8")
    quiet = ("--no-fund", "--no-audit", "--no-update-notifier", "--ignore-scripts", "--loglevel=error")
    subprocess.run([npm, "install", *quiet], cwd=folder, check=True, stdout=sys.stderr)
    if not installed(folder):
        raise SystemExit(f"npm install left something out in {folder}; remove the folder and try again")


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else FOLDER
    install(place)
    print(place)
