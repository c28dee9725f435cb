"""Set memlab up in ``.venv`` and run a command there. Needs nothing but Python itself.

    python tools/bootstrap.py setup [--extra test]...
    python tools/bootstrap.py run [--extra test]... -- memlab demo

A second run finds the stamp that the first one left, starts at once and touches no network.
Settings, all optional, are environment variables:

    MEMLAB_PYTHON        the interpreter to build .venv with (3.11 to 3.13)
    MEMLAB_TORCH=any     take whatever torch the package indexes give, CUDA builds too
    MEMLAB_TORCH_INDEX   a package index that holds a CPU build of torch
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
OLDEST, NEWEST = (3, 11), (3, 13)
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CUDA_PREFIXES = ("nvidia-", "cuda-", "triton", "pytorch-triton")
PROBE_SECONDS = 4.0


class SetupError(Exception):
    """Why the set-up stopped, and what to do about it."""


# ---- which Python ---------------------------------------------------------------------------------------------------


def supported(version: tuple[int, ...]) -> bool:
    """Whether memlab runs on this version of Python."""
    return OLDEST <= tuple(version[:2]) <= NEWEST


def probe_python(command: str) -> tuple[int, ...] | None:
    """The version of the Python that ``command`` starts, or None where it starts none."""
    try:
        shown = subprocess.run(
            [command, "-c", "import sys; print(*sys.version_info[:3])"], capture_output=True, text=True, timeout=30
        )
        return tuple(int(part) for part in shown.stdout.split()) if shown.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def choose_python(
    wanted: str | None,
    running: tuple[str, tuple[int, ...]],
    which: Callable[[str], str | None] = shutil.which,
    probe: Callable[[str], tuple[int, ...] | None] = probe_python,
) -> str:
    """The interpreter to use: the one asked for, else the running one, else a fitting one on PATH."""
    need = f"Python {'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
    if wanted:
        path = which(wanted) or wanted
        version = probe(path)
        if version is None:
            raise SetupError(f"MEMLAB_PYTHON={wanted} starts no Python; give the path of {need}")
        if not supported(version):
            raise SetupError(f"MEMLAB_PYTHON={wanted} is Python {dotted(version)}; memlab needs {need}")
        return path
    executable, version = running
    if supported(version):
        return executable
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = which(f"python3.{minor}")
        # A name on PATH is no proof: version managers leave stand-ins that start nothing.
        if found and supported(probe(found) or ()):
            return found
    raise SetupError(
        f"memlab needs {need}; this is Python {dotted(version)} and PATH has no other. "
        "Install one, or set MEMLAB_PYTHON to its path"
    )


def dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))


# ---- what is wanted, and whether it is there already ----------------------------------------------------------------


def read_pyproject() -> dict[str, Any]:
    import tomllib  # not in the Pythons that choose_python turns away

    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def requirements(extras: Iterable[str], pyproject: Mapping[str, Any]) -> list[str]:
    """What the extras ask for, less their references to one another."""
    known: Mapping[str, list[str]] = pyproject["project"]["optional-dependencies"]
    return sorted({item for extra in extras for item in known[extra] if not item.startswith("memlab[")})


def expand_extras(extras: Iterable[str], pyproject: Mapping[str, Any]) -> set[str]:
    """``extras`` and all those they contain, as ``dev`` contains ``test``."""
    known: Mapping[str, list[str]] = pyproject["project"]["optional-dependencies"]
    found: set[str] = set()
    todo = list(extras)
    while todo:
        extra = todo.pop()
        if extra not in known:
            raise SetupError(f"no extra is named {extra!r}; pyproject.toml has: {', '.join(sorted(known))}")
        if extra not in found:
            found.add(extra)
            for requirement in known[extra]:
                if inner := re.match(r"memlab\[(.*?)\]", requirement):
                    todo += [name.strip() for name in inner[1].split(",")]
    return found


def set_up_key(pyproject: Mapping[str, Any], constraints: str, python: str, root: str) -> str:
    """A hash of everything that decides what an installation looks like, its extras aside.

    Only the parts of pyproject.toml that an installer reads count, so a new lint rule installs nothing.
    """
    parts = {
        "build": [pyproject.get("build-system"), pyproject.get("project"), pyproject.get("tool", {}).get("hatch")],
        "constraints": constraints,
        "python": python,
        "root": root,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_stamp(path: Path) -> tuple[str | None, set[str]]:
    """The key and the extras of the last complete set-up; no key where there was none."""
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
        return str(stamp["key"]), set(stamp["extras"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, set()


def write_stamp(path: Path, key: str, extras: Iterable[str]) -> None:
    path.write_text(json.dumps({"key": key, "extras": sorted(extras)}) + "\n", encoding="utf-8")


# ---- the virtual environment ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Venv:
    """The layout of a virtual environment on this system."""

    path: Path

    @property
    def scripts(self) -> Path:
        return self.path / ("Scripts" if os.name == "nt" else "bin")

    @property
    def python(self) -> Path:
        return self.scripts / ("python.exe" if os.name == "nt" else "python")

    @property
    def stamp(self) -> Path:
        return self.path / "memlab-stamp.json"

    @property
    def log(self) -> Path:
        return self.path / "memlab-setup.log"

    def version(self) -> tuple[int, ...] | None:
        """The Python version that ``pyvenv.cfg`` names; None where there is no usable environment."""
        try:
            text = (self.path / "pyvenv.cfg").read_text(encoding="utf-8")
        except OSError:
            return None
        found = re.search(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)\.(\d+)", text, re.MULTILINE)
        return tuple(map(int, found.groups())) if found and self.python.exists() else None

    def installed(self, name: str) -> str | None:
        """The installed version of a distribution, read off its metadata folder."""
        pattern = "Lib/site-packages" if os.name == "nt" else "lib/python3*/site-packages"
        for folder in self.path.glob(f"{pattern}/{name}-*.dist-info"):
            return folder.name[len(name) + 1 : -len(".dist-info")]
        return None

    def environment(self) -> dict[str, str]:
        """This process's environment with the virtual one activated."""
        env = {**os.environ, "VIRTUAL_ENV": str(self.path)}
        env["PATH"] = os.pathsep.join([str(self.scripts), env.get("PATH", os.defpath)])
        env.pop("PYTHONHOME", None)
        # Modules are compiled on first use (see Pip.command), which pays only where the result may be kept.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        return env


def ensure_venv(venv: Venv, python: str, explicit: bool, say: Steps) -> tuple[int, ...]:
    """Create the environment unless a usable one is there, and return its Python version."""
    version = venv.version()
    if version is not None:
        if not supported(version):
            raise SetupError(f"{venv.path.name} has Python {dotted(version)}; `make distclean`, then try again")
        if explicit and (wanted := probe_python(python) or version)[:2] != version[:2]:
            raise SetupError(
                f"{venv.path.name} has Python {dotted(version)} and MEMLAB_PYTHON is Python {dotted(wanted)}; "
                "`make distclean` removes the old one"
            )
        return version
    with say.step(f"creating {venv.path.name} with Python {platform.python_version()}"):
        command = [python, "-m", "venv", "--clear", str(venv.path)]
        made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode != 0:
        raise SetupError(
            f"{made.stdout.strip()}\n\nfailed: {shown(command)}\n"
            "On Debian and Ubuntu the package python3-venv has to be installed first"
        )
    version = venv.version()
    if version is None:
        raise SetupError(f"{shown(command)} left no usable environment behind")
    return version


def shown(command: Sequence[str]) -> str:
    """A command as one would type it."""
    return subprocess.list2cmdline(command)


# ---- pip ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pip:
    """pip of one environment; what it prints goes to that environment's log."""

    venv: Venv

    def command(self, *arguments: str) -> list[str]:
        """``pip install``. Compiling every module of torch and the rest ahead of use would take half of the time."""
        quiet = ("--no-input", "--no-compile", "--disable-pip-version-check", "--no-warn-script-location")
        return [str(self.venv.python), "-m", "pip", "install", *quiet, *arguments]

    def run(self, *arguments: str, only_index: str | None = None) -> str | None:
        """Install; None when it worked, else the last lines that pip printed."""
        env = {**self.venv.environment(), "PIP_USER": "0"}
        if only_index:
            # Replaces extra indexes of the user's own settings, which could offer another build of the same release.
            env["PIP_EXTRA_INDEX_URL"] = only_index
        command = self.command(*arguments)
        with self.venv.log.open("ab") as log:
            log.write(f"\n$ {shown(command)}\n".encode())
            log.flush()
            start = log.tell()
            code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=env, cwd=ROOT).returncode
        if code == 0:
            return None
        with self.venv.log.open("rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").splitlines()
        told = [line for line in lines if line.strip() and not line.startswith("WARNING: Retrying")]
        return "\n".join(told[-25:])

    def need(self, *arguments: str, advice: str, only_index: str | None = None) -> None:
        """Install, or stop with the command that failed."""
        failure = self.run(*arguments, only_index=only_index)
        if failure is not None:
            raise SetupError(
                f"{failure}\n\nfailed: {shown(self.command(*arguments))}\n{advice}\nThe whole log: {self.venv.log}"
            )

    def report(self, requirement: str) -> dict[str, Any]:
        """What installing one requirement alone would bring, its metadata included, without installing it."""
        path = self.venv.path / "memlab-report.json"
        self.need(
            # Reads the metadata out of the remote wheel where the index can do so: 2 MB instead of 500.
            *("--use-feature=fast-deps", "--no-deps", "--dry-run", "--report", str(path), requirement),
            advice=f"Neither {CPU_INDEX} nor the package indexes that pip is set up for gave this torch. "
            "Is there a network? MEMLAB_TORCH_INDEX=URL names another index",
        )
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found
        finally:
            path.unlink(missing_ok=True)


# ---- torch ----------------------------------------------------------------------------------------------------------


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version: ``2.13.0+cpu`` gives (2, 13, 0)."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def in_range(version: str, requirement: str) -> bool:
    """Whether a version meets a requirement made of ``>=``, ``<`` and ``==`` clauses."""
    this = release(version)
    for operator, bound in re.findall(r"(>=|==|<)\s*([\d.]+)", requirement):
        that = release(bound)
        width = max(len(this), len(that))
        a, b = (part + (0,) * (width - len(part)) for part in (this, that))
        if not {">=": a >= b, "==": a == b, "<": a < b}[operator]:
            return False
    return bool(this)


def cuda_packages(report: Mapping[str, Any], machine: str) -> list[str]:
    """The packages that what stands in a pip report needs on this machine and that only a CUDA build needs."""
    found = set()
    for item in report.get("install", []):
        for requirement in item["metadata"].get("requires_dist", []):
            name, _, marker = requirement.partition(";")
            other = re.search(r"""platform_machine\s*==\s*["']([^"']+)""", marker)
            if "extra ==" in marker or (other and other[1] != machine):
                continue
            plain = re.split(r"[^\w.-]", name.strip())[0].lower().replace("_", "-")
            if plain.startswith(CUDA_PREFIXES):
                found.add(plain)
    return sorted(found)


def has_nvidia_gpu() -> bool:
    return shutil.which("nvidia-smi") is not None or any(Path("/dev").glob("nvidia*"))


def reachable(url: str, seconds: float = PROBE_SECONDS) -> bool:
    """Whether ``url`` answers within ``seconds``, looking up its name included."""
    answers: list[bool] = []

    def ask() -> None:
        try:
            request = urllib.request.Request(url, method="HEAD")
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                answers.append(answer.status < 400)
        except (OSError, ValueError):
            pass

    # A look-up of a name knows no time limit of its own, so the thread is left behind when it takes too long.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(answers)


@dataclass(frozen=True)
class TorchPlan:
    """Where torch comes from.

    ``keep`` the installed one; ``index`` as given; ``cpu-index``, PyTorch's own, with ``checked`` to fall back on;
    ``plain``, whatever pip's indexes give; ``checked``, the same unless it brings CUDA packages.
    """

    source: str
    index: str | None = None


def plan_torch(
    *,
    installed: str | None,
    requirement: str,
    system: str,
    settings: Mapping[str, str],
    gpu: Callable[[], bool] = has_nvidia_gpu,
    reach: Callable[[str], bool] = reachable,
) -> TorchPlan:
    """Decide where torch comes from; asks for a GPU or a network only when the answer matters."""
    choice, index = settings.get("MEMLAB_TORCH", ""), settings.get("MEMLAB_TORCH_INDEX", "")
    if choice not in ("", "any"):
        raise SetupError(f"MEMLAB_TORCH={choice}: the only value is `any`; leave it unset for the usual choice")
    if installed is not None and in_range(installed, requirement):
        return TorchPlan("keep")
    if index:
        return TorchPlan("index", index)
    if choice == "any" or system != "Linux" or gpu():
        return TorchPlan("plain")
    if reach(f"{CPU_INDEX}/torch/"):
        return TorchPlan("cpu-index", CPU_INDEX)
    return TorchPlan("checked")


def cuda_refusal(torch: str, packages: Sequence[str]) -> str:
    """What to say when the only torch at hand is a CUDA build."""
    return (
        f"{torch} from pip's package indexes is a CUDA build of several GB: it needs {', '.join(packages)}. "
        f"This machine shows no NVIDIA GPU, and PyTorch's own index of CPU builds ({CPU_INDEX}) did not give one. "
        "Nothing of it was installed. The choices:\n"
        "  MEMLAB_TORCH_INDEX=URL make demo    another index with CPU builds, such as a mirror of PyTorch's\n"
        "  MEMLAB_TORCH=any make demo          take the CUDA build all the same"
    )


def install_torch(pip: Pip, pyproject: Mapping[str, Any], constraints: str, say: Steps) -> None:
    """Put torch into the environment before anything else can ask for it. Its own needs come with the rest."""
    requirement = next(item for item in pyproject["project"]["dependencies"] if item.startswith("torch"))
    pinned = re.search(r"^torch==[^\s;]+", constraints, re.MULTILINE)
    torch = pinned[0] if pinned else requirement
    plan = plan_torch(
        installed=pip.venv.installed("torch"), requirement=requirement, system=platform.system(), settings=os.environ
    )
    if plan.source == "keep":
        return
    advice = "Is there a network, and is there a build for this Python and system?"
    if plan.source == "index":
        assert plan.index is not None
        with say.step(f"installing {torch} from {plan.index}"):
            advice = "MEMLAB_TORCH_INDEX names that index"
            pip.need("--no-deps", "--index-url", plan.index, torch, advice=advice, only_index=plan.index)
        return
    if plan.source == "cpu-index":
        with say.step(f"installing {torch}, the CPU build of PyTorch's own index (about 200 MB)"):
            arguments = ("--retries", "1", "--timeout", "10", "--no-deps", "--index-url", CPU_INDEX, torch)
            failure = pip.run(*arguments, only_index=CPU_INDEX)
        if failure is None:
            return
        say.line("that index did not give it: asking the package indexes that pip is set up for")
    if plan.source != "plain":
        with say.step(f"looking for a CPU build of {torch} on the package indexes that pip is set up for"):
            packages = cuda_packages(pip.report(torch), platform.machine())
        if packages:
            raise SetupError(cuda_refusal(torch, packages))
    with say.step(f"installing {torch}"):
        pip.need("--no-deps", torch, advice=advice)


# ---- the whole ------------------------------------------------------------------------------------------------------


class Steps:
    """Step lines with their times, on stderr: what a command prints stays alone on stdout."""

    def __init__(self) -> None:
        self.message = ""
        self.start = 0.0

    def line(self, message: str) -> None:
        print(f"memlab set-up: {message}", file=sys.stderr, flush=True)

    def step(self, message: str) -> Steps:
        self.message = message
        return self

    def __enter__(self) -> None:
        self.start = time.monotonic()
        print(f"memlab set-up: {self.message} ...", end="", file=sys.stderr, flush=True)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        took = f"{time.monotonic() - self.start:.1f} s"
        print(f" {took}" if kind is None else f" stopped after {took}", file=sys.stderr, flush=True)


def set_up(extras: Iterable[str], python: str, explicit: bool) -> Venv:
    """Bring ``.venv`` to what pyproject.toml, constraints.txt and the extras ask for; do nothing if it is there."""
    venv, say = Venv(ROOT / ".venv"), Steps()
    pyproject = read_pyproject()
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    wanted = expand_extras(extras, pyproject)
    version = ensure_venv(venv, python, explicit, say)
    key = set_up_key(pyproject, constraints, dotted(version), str(ROOT))
    stamped, present = read_stamp(venv.stamp)
    if stamped == key and wanted <= present:
        return venv
    # Only ever more: what an earlier target added is kept, and kept up to date.
    everything = wanted | present & set(pyproject["project"]["optional-dependencies"])
    venv.stamp.unlink(missing_ok=True)
    start = time.monotonic()
    pip = Pip(venv)
    pinned = re.search(r"^pip==(\S+)", constraints, re.MULTILINE)
    if pinned and venv.installed("pip") != pinned[1]:  # an old one takes twice as long for all that follows
        with say.step(f"updating pip to {pinned[1]}"):
            pip.need(pinned[0], advice="Is there a network?")
    install_torch(pip, pyproject, constraints, say)
    # The torch that is there is the pin from here on, whichever build and release it is.
    pins = venv.path / "memlab-constraints.txt"
    pins.write_text(re.sub(r"(?m)^torch==.*$", f"torch=={venv.installed('torch')}", constraints), encoding="utf-8")
    if stamped == key:  # memlab itself is there and need not be built again
        more, what, task = wanted - present, requirements(wanted - present, pyproject), "installing more"
    else:
        more, what, task = everything, ["-e", "."], "installing memlab and what it needs"
        if everything:
            what = ["-e", f".[{','.join(sorted(everything))}]"]
    with say.step(f"{task} for {', '.join(sorted(more))}" if more else task):
        pip.need("-c", str(pins), *what, advice="Is there a network? Running the same command again goes on")
    write_stamp(venv.stamp, key, everything)
    took = time.monotonic() - start
    say.line(f"ready in {venv.path.name} after {took:.0f} s; the first start takes longer than later ones")
    return venv


def run(venv: Venv, command: Sequence[str]) -> NoReturn:
    """Become ``command``, taken from the environment's scripts where it is one of them."""
    env = venv.environment()
    program = shutil.which(command[0], path=env["PATH"])
    if program is None:
        raise SetupError(f"{command[0]} is neither in {venv.path.name} nor on PATH")
    if os.name == "nt":  # exec there returns to the shell at once
        sys.exit(subprocess.run([program, *command[1:]], env=env).returncode)
    os.execve(program, [program, *command[1:]], env)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bootstrap.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("setup", "run"))
    parser.add_argument("--extra", action="append", default=[], help="an extra of pyproject.toml; may be repeated")
    ours, command = list(arguments), []
    if "--" in ours:
        ours, command = ours[: ours.index("--")], ours[ours.index("--") + 1 :]
    given = parser.parse_args(ours)
    if (given.action == "run") != bool(command):
        parser.error("`run` takes a command after `--`, `setup` takes none")
    explicit = os.environ.get("MEMLAB_PYTHON")
    try:
        python = choose_python(explicit, (sys.executable, sys.version_info[:3]))
        if not supported(sys.version_info[:3]):  # go on under a Python that can read pyproject.toml
            again = [python, __file__, *arguments]
            return subprocess.run(again, env={**os.environ, "MEMLAB_PYTHON": python}).returncode
        venv = set_up(given.extra, python, bool(explicit))
        if given.action == "run":
            run(venv, command)
    except SetupError as error:
        print(f"memlab set-up: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nmemlab set-up: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
