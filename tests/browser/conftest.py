"""A real JupyterLab, for some tests Notebook 7 too, with a real browser in front. Run by ``make test-browser``.

They and the browser are started once; each test has a folder of its own in the server's root. Nothing leaves the
machine, and nobody's own Jupyter settings are read. ``MEMLAB_CHROMIUM`` names another Chromium than the one on PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.browser.applications import LAB, NOTEBOOK
from tests.browser.lab import Lab, NotebookApplication

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 120  # seconds that Jupyter may take to start on a busy machine


class Server(NamedTuple):
    """Where a Jupyter server listens, and the folder that it serves."""

    address: str
    served: Path


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium with an empty profile."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: python -m pip install playwright")
    named = os.environ.get("MEMLAB_CHROMIUM", "")
    path = named or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("needs Chromium on PATH (apt-get install chromium), or its path in MEMLAB_CHROMIUM")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A JupyterLab on a free loopback port."""
    pytest.importorskip("jupyterlab", reason="needs JupyterLab: python -m pip install jupyterlab")
    with serving("jupyterlab", "LabApp", tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="session")
def notebook_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Jupyter Notebook 7 on a free loopback port."""
    pytest.importorskip("notebook", "7", reason="needs Jupyter Notebook 7: python -m pip install 'notebook>=7'")
    with serving("notebook", "JupyterNotebookApp", tmp_path_factory.mktemp("notebook")) as server:
        yield server


@contextmanager
def serving(module: str, application: str, base: Path) -> Iterator[Server]:
    """Run a Jupyter server in a process of its own, with all that it writes under ``base``."""
    served = base / "served"
    served.mkdir()
    log = base / "server.log"
    environment = own_environment(base)
    settings = Path(environment["JUPYTERLAB_SETTINGS_DIR"]) / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    # Lab would ask on the first start whether it may fetch news.
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    command = [sys.executable, "-m", module, "--no-browser", f"--ServerApp.port={free_port()}"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={served}", "--IdentityProvider.token="]
    command += [f"--{application}.expose_app_in_browser=True", "--ServerApp.port_retries=50"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # in a container there is nobody else
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=served, env=environment, stdout=out, stderr=out)
    try:
        yield Server(address_of(process, Path(environment["JUPYTER_RUNTIME_DIR"]), log), served)
    finally:
        process.terminate()  # it shuts its kernels down
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def own_environment(base: Path) -> dict[str, str]:
    """This process's environment, with every folder that Jupyter, IPython or memlab would use under ``base``."""
    places = {
        "HOME": "home",
        "USERPROFILE": "home",
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "XDG_CACHE_HOME": "cache",
        "XDG_CONFIG_HOME": "xdg",
        "XDG_DATA_HOME": "share",
        "MEMLAB_CACHE": "memlab",
        "NUMBA_CACHE_DIR": "numba",
    }
    for name in places.values():
        (base / name).mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "JPY_"))}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    return {**kept, **{name: str(base / place) for name, place in places.items()}, "PYTHONPATH": path}


def free_port() -> int:
    """A port on the loopback that nobody uses now; Lab takes the next free one if somebody does by then."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def address_of(process: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Where the server listens, as it writes it down itself once it does."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        for path in runtime.glob(f"jpserver-{process.pid}.json"):
            try:
                return str(json.loads(path.read_text())["url"])
            except (ValueError, KeyError):  # half written
                pass
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    ended = "ended" if process.poll() is not None else f"said nothing within {PATIENCE} s"
    pytest.fail(f"Jupyter {ended}; the end of its log:\n{log.read_text()[-3000:]}")


@pytest.fixture
def lab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """JupyterLab in a page of its own, for one test; its notebooks lie in a folder of their own.

    A test that is marked with `in_both` gets Jupyter Notebook 7 as well.
    """
    kind, server, pictures = Lab, "lab_server", ROOT / "screenshots"
    if getattr(request, "param", LAB) == NOTEBOOK:
        kind, server, pictures = NotebookApplication, "notebook_server", pictures / "notebook-7"
    address, served = request.getfixturevalue(server)
    folder = served / request.node.name.translate(str.maketrans("[]/\\ ", "-----"))
    folder.mkdir()
    context = browser.new_context(viewport={"width": 1280, "height": 1100}, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(60_000)
    opened = kind(page, address, served, folder, pictures)
    yield opened
    opened.shut_down()
    context.close()


@pytest.fixture
def memories(tmp_path: Path) -> Callable[[], Path]:
    """Make a store of 24 short memories of two projects, without a model: its path."""
    from memlab.encoders import HashingEncoder
    from memlab.store import MemoryStore

    def make() -> Path:
        path = tmp_path / "memory.db"
        with MemoryStore(path, HashingEncoder(384)) as store:
            for number, text in enumerate(NOTES):
                store.remember(
                    text, memory_id=f"m-{number:02}", project=("billing", "search")[number % 2], tags=["note"]
                )
        return path

    return make


NOTES = (
    "Webhooks retry with full jitter, capped at five minutes.",
    "The search index is rebuilt at night.",
    "A failed payment is retried three times before the invoice is marked overdue.",
    "Queries shorter than two letters are not searched.",
    "The retry queue lives in Redis and is emptied on deploy.",
    "Stemming is off for product codes.",
    "Webhook signatures use HMAC with a rotating secret.",
    "Synonyms are read from a file that the editors keep.",
    "Invoices are numbered by country and year.",
    "The ranking was tuned on last year's clicks.",
    "Backoff doubles from one second and stops at five minutes.",
    "Facets are counted on the first thousand results only.",
    "Refunds need two people above 500 euros.",
    "The autocomplete answers from memory, not from disk.",
    "Currency is kept in cents, never as a float.",
    "A typo of one letter is forgiven in words of five letters or more.",
    "Timeouts towards the bank are ten seconds.",
    "Old products stay searchable for ninety days.",
    "A webhook that fails for a day is switched off and its owner is told.",
    "The index holds a shard for each language.",
    "Payments are idempotent by the order's number.",
    "Highlighting marks whole words.",
    "The failing webhooks of one customer never delay those of another.",
    "Search logs are kept for thirty days without addresses.",
)
