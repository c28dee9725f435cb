"""The set-up: what is declared, what is pinned, what importing memlab costs, and how tools/bootstrap.py decides."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools import bootstrap

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def requirements(lines: list[str]) -> dict[str, Requirement]:
    """Requirements by canonical name, memlab's references to its own extras left out."""
    parsed = [Requirement(line) for line in lines]
    return {canonicalize_name(item.name): item for item in parsed if item.name != "memlab"}


def pins() -> dict[str, Requirement]:
    return requirements([line for line in CONSTRAINTS.splitlines() if line and not line.startswith("#")])


# ---- what importing memlab costs ------------------------------------------------------------------------------------


def test_importing_memlab_loads_nothing_heavy() -> None:
    script = "import json, sys; import memlab; print(json.dumps(sorted(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(json.loads(shown.stdout))
    heavy = {"torch", "umap", "numba", "pandas.plotting", "matplotlib", "sentence_transformers", "transformers"}
    assert "memlab" in loaded
    assert not loaded & heavy


# ---- what is declared and pinned ------------------------------------------------------------------------------------


def test_the_version_and_the_extras_that_the_readme_names() -> None:
    assert PROJECT["requires-python"] == ">=3.11,<3.14"
    assert {"eval", "map", "notebook", "test", "browser", "dev"} <= set(EXTRAS)
    assert bootstrap.expand_extras(["dev"], PYPROJECT) == set(EXTRAS)
    assert PROJECT["scripts"] == {"memlab": "memlab.cli:main"}


def test_every_constraint_is_a_plain_pin() -> None:
    for name, item in pins().items():
        (clause,) = item.specifier
        assert clause.operator == "==", name
        assert "*" not in clause.version, name
        assert Version(clause.version).local is None, f"{name}: a build of one machine"
        assert item.url is None, name


def test_the_pins_lie_in_the_declared_ranges() -> None:
    pinned = pins()
    declared = [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
    for name, item in requirements(declared).items():
        assert name in pinned, f"{name} has no tested version in constraints.txt"
        (clause,) = pinned[name].specifier
        assert item.specifier.contains(clause.version), f"{item} excludes the tested {clause.version}"


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_the_pins_hold_for_every_supported_python(python: str) -> None:
    for item in pins().values():
        assert (
            item.marker is None
            or "python_version" not in str(item.marker)
            or item.marker.evaluate({"python_version": python})
        ), item


def test_what_is_installed_is_what_is_pinned() -> None:
    assert Version(importlib.metadata.version("memlab")) == Version(PROJECT["version"])
    for name in requirements(PROJECT["dependencies"]):
        installed = importlib.metadata.version(name)
        assert requirements(PROJECT["dependencies"])[name].specifier.contains(installed), name


def imports(tree: ast.AST, always: bool) -> Iterator[tuple[str, bool]]:
    """The top-level packages that a module imports, and whether the import runs whenever the module is loaded."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], always) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0], always
        else:
            lazy = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Try) or (
                isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            )
            yield from imports(node, always and not lazy)


def test_every_import_of_memlab_is_declared() -> None:
    needed = set(requirements(PROJECT["dependencies"]))
    optional = needed | {name for lines in EXTRAS.values() for name in requirements(lines)}
    owners = importlib.metadata.packages_distributions()
    for path in sorted((ROOT / "memlab").rglob("*.py")):
        for module, always in imports(ast.parse(path.read_text(encoding="utf-8")), always=True):
            if module in sys.stdlib_module_names or module == "memlab":
                continue
            names = {canonicalize_name(name) for name in owners.get(module, [module])}
            assert names & (needed if always else optional), f"{path.relative_to(ROOT)} imports {module}: undeclared"


def tracked_files() -> list[Path]:
    """What git has or would take; everything that was shipped where there is no git."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git work tree")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def test_no_file_names_a_place_on_one_machine() -> None:
    local = re.compile(r"(?<![\w.~$}\])-])/(?:work|tmp|root)/")
    found = []
    for path in tracked_files():
        if path.relative_to(ROOT).parts[0] == "data" or path == Path(__file__).resolve():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a picture
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
            for number, line in enumerate(text.splitlines(), 1)
            if local.search(line)
        ]
    assert not found


def test_make_help_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony
    assert set(phony[1].split()) == set(re.findall(r"^([a-z-]+):.* ## ", text, re.MULTILINE))
    assert {"demo", "test", "lab", "lint", "clean", "help"} <= set(phony[1].split())


# ---- tools/bootstrap.py: which Python -------------------------------------------------------------------------------


def missing(_: str) -> None:
    return None


def test_the_running_python_is_taken_if_it_fits() -> None:
    assert bootstrap.choose_python(None, ("here", (3, 12, 1)), which=missing, probe=missing) == "here"


def test_another_python_is_found_on_path_and_stand_ins_are_passed_over() -> None:
    versions = {"python3.12": (3, 12, 1), "python3.11": (3, 11, 7)}
    found = bootstrap.choose_python(None, ("old", (3, 9, 0)), which=lambda name: name, probe=versions.get)
    assert found == "python3.12"


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 14, 0)])
def test_no_fitting_python_is_a_clear_error(version: tuple[int, ...]) -> None:
    with pytest.raises(bootstrap.SetupError, match=r"needs Python 3\.11 to 3\.13; this is Python 3\.1\d"):
        bootstrap.choose_python(None, ("here", version), which=missing, probe=missing)


def test_the_python_asked_for_is_taken_or_refused() -> None:
    running = ("here", (3, 11, 0))
    assert bootstrap.choose_python("p", running, which=missing, probe=lambda _: (3, 13, 0)) == "p"
    with pytest.raises(bootstrap.SetupError, match="MEMLAB_PYTHON=p starts no Python"):
        bootstrap.choose_python("p", running, which=missing, probe=missing)
    with pytest.raises(bootstrap.SetupError, match=r"MEMLAB_PYTHON=p is Python 3\.9\.1"):
        bootstrap.choose_python("p", running, which=missing, probe=lambda _: (3, 9, 1))


# ---- tools/bootstrap.py: where torch comes from ---------------------------------------------------------------------


def plan(
    *,
    installed: str | None = None,
    system: str = "Linux",
    gpu: bool = False,
    reach: bool | None = False,
    **settings: str,
) -> bootstrap.TorchPlan:
    """The plan under these answers; with ``reach=None``, asking for a network at all is an error."""

    def ask(url: str) -> bool:
        assert reach is not None, f"no need to ask {url}"
        return reach

    return bootstrap.plan_torch(
        installed=installed, requirement="torch>=2.6,<3", system=system, settings=settings, gpu=lambda: gpu, reach=ask
    )


def test_an_installed_torch_in_range_stays() -> None:
    assert plan(installed="2.13.0+cpu", reach=None).source == "keep"
    assert plan(installed="2.14.1", reach=None, MEMLAB_TORCH_INDEX="https://example.org/cpu").source == "keep"


def test_an_installed_torch_out_of_range_goes() -> None:
    assert plan(installed="1.13.1").source == "checked"


def test_linux_without_a_gpu_prefers_the_cpu_index_and_else_checks() -> None:
    assert plan(reach=True) == bootstrap.TorchPlan("cpu-index", bootstrap.CPU_INDEX)
    assert plan(reach=False) == bootstrap.TorchPlan("checked")


@pytest.mark.parametrize("system", ["Darwin", "Windows"])
def test_elsewhere_torch_is_plain(system: str) -> None:
    assert plan(system=system, reach=None).source == "plain"


def test_a_gpu_or_the_users_word_makes_torch_plain() -> None:
    assert plan(gpu=True, reach=None).source == "plain"
    assert plan(MEMLAB_TORCH="any", reach=None).source == "plain"


def test_an_index_of_the_users_own_comes_first() -> None:
    url = "https://example.org/cpu"
    assert plan(MEMLAB_TORCH_INDEX=url, MEMLAB_TORCH="any", reach=None) == bootstrap.TorchPlan("index", url)


def test_a_mistyped_setting_is_an_error() -> None:
    with pytest.raises(bootstrap.SetupError, match="the only value is `any`"):
        plan(MEMLAB_TORCH="cpu")


def torch_report(*needs: str) -> dict[str, Any]:
    return {"install": [{"metadata": {"name": "torch", "requires_dist": ["sympy>=1.13", *needs]}}]}


def test_cuda_packages_are_told_from_others() -> None:
    cuda = torch_report(
        'cuda-toolkit[cublas,cudart]==13.0.3; platform_system == "Linux"',
        'nvidia_cudnn_cu13==9.20.0.48; platform_system == "Linux"',
        "triton==3.7.1",
    )
    assert bootstrap.cuda_packages(cuda, "x86_64") == ["cuda-toolkit", "nvidia-cudnn-cu13", "triton"]


def test_needs_of_extras_and_of_other_machines_are_no_cuda() -> None:
    other = torch_report(
        'nvidia-cublas-cu12==12.8; platform_system == "Linux" and platform_machine == "x86_64"',
        'triton>=3; extra == "compile"',
    )
    assert bootstrap.cuda_packages(other, "aarch64") == []
    assert bootstrap.cuda_packages(other, "x86_64") == ["nvidia-cublas-cu12"]
    assert bootstrap.cuda_packages({"install": []}, "x86_64") == []


@pytest.mark.parametrize("version", ["2.5.1", "2.6", "2.6.0+cpu", "2.13.0", "2.14.1+cu130", "3.0", "3.0.0", "1.13"])
@pytest.mark.parametrize("wanted", [">=2.6,<3", "==2.13.0", "==2.13", ">=2.6.1"])
def test_ranges_are_read_as_pip_reads_them(version: str, wanted: str) -> None:
    assert bootstrap.in_range(version, f"torch{wanted}") == SpecifierSet(wanted).contains(version)


def test_an_address_that_nobody_serves_is_unreachable() -> None:
    assert not bootstrap.reachable("http://127.0.0.1:9/", seconds=2)
    assert not bootstrap.reachable("no address", seconds=2)


# ---- tools/bootstrap.py: doing no work twice ------------------------------------------------------------------------


def test_the_key_follows_what_an_installer_reads() -> None:
    def key(pyproject: dict[str, Any] = PYPROJECT, constraints: str = "a==1", python: str = "3.11.7") -> str:
        return bootstrap.set_up_key(pyproject, constraints, python, "here")

    assert key() == key()
    assert key(constraints="a==2") != key()
    assert key(python="3.12.1") != key()
    assert key({**PYPROJECT, "project": {**PROJECT, "dependencies": []}}) != key()
    assert key({**PYPROJECT, "tool": {**PYPROJECT["tool"], "ruff": {}}}) == key()


def test_an_unknown_extra_names_the_known_ones() -> None:
    with pytest.raises(bootstrap.SetupError, match=r"no extra is named 'tests'; .*browser.*test"):
        bootstrap.expand_extras(["tests"], PYPROJECT)


def test_a_damaged_stamp_is_no_stamp(tmp_path: Path) -> None:
    stamp = tmp_path / "stamp"
    assert bootstrap.read_stamp(stamp) == (None, set())
    stamp.write_text('{"key": 1}')
    assert bootstrap.read_stamp(stamp) == (None, set())
    bootstrap.write_stamp(stamp, "k", {"test", "eval"})
    assert bootstrap.read_stamp(stamp) == ("k", {"test", "eval"})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with an environment that looks installed, as far as bootstrap looks."""
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    venv = bootstrap.Venv(tmp_path / ".venv")
    packages = venv.path / ("Lib/site-packages" if sys.platform == "win32" else "lib/python3.11/site-packages")
    for folder in (venv.scripts, packages / "pip-26.3.dist-info", packages / "torch-2.13.0+cpu.dist-info"):
        folder.mkdir(parents=True)
    venv.python.touch()
    (venv.path / "pyvenv.cfg").write_text("home = somewhere\nversion = 3.11.7\n")
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What pip was asked; it always succeeds."""
    asked: list[list[str]] = []

    def record(self: bootstrap.Pip, *arguments: str, only_index: str | None = None) -> None:
        asked.append(list(arguments))

    monkeypatch.setattr(bootstrap.Pip, "run", record)
    return asked


def set_up(*extras: str) -> None:
    bootstrap.set_up(extras, sys.executable, explicit=False)


def test_a_second_set_up_asks_pip_for_nothing(project: Path, calls: list[list[str]]) -> None:
    set_up("test")
    assert [call[2:] for call in calls] == [["-e", ".[eval,map,test]"]]
    calls.clear()
    set_up("test")
    set_up()
    set_up("eval")
    assert calls == []


def test_another_target_only_adds(project: Path, calls: list[list[str]]) -> None:
    set_up()
    assert calls[-1][2:] == ["-e", "."]
    set_up("test")
    assert calls[-1][2:] == bootstrap.requirements(["eval", "map", "test"], PYPROJECT)
    assert not any("memlab" in item for item in calls[-1][2:])
    set_up("notebook")
    set_up("test")
    assert len(calls) == 3
    (project / "constraints.txt").write_text(CONSTRAINTS + "\n# changed\n")
    set_up()
    assert calls[-1][2:] == ["-e", ".[eval,map,notebook,test]"]


def test_the_installed_torch_becomes_the_pin(project: Path, calls: list[list[str]]) -> None:
    set_up()
    lines = (project / ".venv" / "memlab-constraints.txt").read_text().splitlines()
    assert [line for line in lines if line.startswith("torch==")] == ["torch==2.13.0+cpu"]
    assert len(lines) == len(CONSTRAINTS.splitlines())


def test_a_failed_set_up_names_the_command_and_leaves_no_stamp(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap.Pip, "run", lambda *_, **__: "ERROR: no network")
    with pytest.raises(bootstrap.SetupError, match=r"(?s)no network.*failed: .*pip install.* -e \..*memlab-setup\.log"):
        set_up()
    assert bootstrap.read_stamp(project / ".venv" / "memlab-stamp.json") == (None, set())


def test_a_cuda_build_is_refused_and_the_choices_are_told(
    project: Path, calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = torch_report("nvidia-cublas==13.1", "triton==3.7.1")
    monkeypatch.setattr(bootstrap.Venv, "installed", lambda _, name: "26.3" if name == "pip" else None)
    monkeypatch.setattr(bootstrap.Pip, "report", lambda *_: report)
    monkeypatch.setattr(bootstrap, "plan_torch", lambda **_: bootstrap.TorchPlan("checked"))
    with pytest.raises(
        bootstrap.SetupError, match=r"(?s)nvidia-cublas, triton\..*MEMLAB_TORCH_INDEX=.*MEMLAB_TORCH=any"
    ):
        set_up()
    assert calls == []


@pytest.mark.parametrize("needs", [(), ("nvidia-cublas==13.1",)])
def test_a_cpu_index_that_fails_is_followed_by_the_checked_way(
    project: Path, monkeypatch: pytest.MonkeyPatch, needs: tuple[str, ...]
) -> None:
    calls: list[list[str]] = []

    def fail_on_the_index(self: bootstrap.Pip, *arguments: str, only_index: str | None = None) -> str | None:
        calls.append(list(arguments))
        return "ERROR: no such index" if only_index else None

    monkeypatch.setattr(bootstrap.Venv, "installed", lambda _, name: "26.3" if name == "pip" else None)
    monkeypatch.setattr(bootstrap.Pip, "run", fail_on_the_index)
    monkeypatch.setattr(bootstrap.Pip, "report", lambda *_: torch_report(*needs))
    monkeypatch.setattr(
        bootstrap, "plan_torch", lambda **_: bootstrap.TorchPlan("cpu-index", "https://example.org/cpu")
    )
    pip = bootstrap.Pip(bootstrap.Venv(project / ".venv"))
    if needs:
        with pytest.raises(bootstrap.SetupError, match="is a CUDA build"):
            bootstrap.install_torch(pip, PYPROJECT, CONSTRAINTS, bootstrap.Steps())
        assert len(calls) == 1
    else:
        bootstrap.install_torch(pip, PYPROJECT, CONSTRAINTS, bootstrap.Steps())
        assert calls[1:] == [["--no-deps", next(line for line in CONSTRAINTS.split() if line.startswith("torch=="))]]


def test_an_environment_of_an_unsupported_python_is_an_error(project: Path, calls: list[list[str]]) -> None:
    (project / ".venv" / "pyvenv.cfg").write_text("version_info = 3.9.2.final.0\n")
    with pytest.raises(bootstrap.SetupError, match=r"has Python 3\.9\.2; `make distclean`"):
        set_up()


def test_the_command_line_wants_a_command_for_run_and_none_for_setup(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["run"], ["setup", "--", "memlab"]):
        with pytest.raises(SystemExit):
            bootstrap.main(arguments)
    assert "takes a command after" in capsys.readouterr().err


def test_options_of_the_command_are_left_to_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(bootstrap, "set_up", lambda extras, *_: ran.append(extras))
    monkeypatch.setattr(bootstrap, "run", lambda _, command: ran.append(command))
    bootstrap.main(["run", "--extra", "test", "--extra", "lint", "--", "python", "-m", "pytest", "--extra", "--", "x"])
    assert ran == [["test", "lint"], ["python", "-m", "pytest", "--extra", "--", "x"]]
