"""What a test does with JupyterLab: open a notebook, run it, look at it, ask its kernel. Nothing waits a fixed time."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

Theme = Literal["light", "dark"]
THEMES: dict[Theme, str] = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}

_PANEL = """
const panelOf = (path) => [...jupyterapp.shell.widgets('main')].find((w) => w.context && w.context.path === path);
"""
# Asks the kernel in the page's own session, so that the answer comes after every message that the page sent before.
_ASK = f"""async ([path, code, expression]) => {{
    {_PANEL}
    const kernel = panelOf(path).sessionContext.session?.kernel;
    if (!kernel) return {{error: 'the notebook has no kernel'}};
    const future = kernel.requestExecute({{
        code, silent: false, store_history: false, stop_on_error: false, user_expressions: {{value: expression}}
    }});
    const reply = (await future.done).content;
    if (reply.status !== 'ok') return {{error: (reply.traceback || [reply.evalue]).join('\\n')}};
    const value = reply.user_expressions.value;
    if (value.status !== 'ok') return {{error: (value.traceback || [value.evalue]).join('\\n')}};
    return {{value: value.data['text/plain']}};
}}"""


class KernelError(AssertionError):
    """What a test asked the kernel raised there."""


class Lab:
    """A page with JupyterLab.

    Parameters
    ----------
    page : Page
    address : str
        Of the server, ending in a slash.
    served : Path
        The server's root.
    folder : Path
        Of this test, below the root.
    pictures : Path
        Where screenshots go.
    """

    def __init__(self, page: Page, address: str, served: Path, folder: Path, pictures: Path) -> None:
        self.page = page
        self.address = address
        self.served = served
        self.folder = folder
        self.pictures = pictures
        self.said: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", self._hear)
        self._loaded = False

    def _hear(self, error: Any) -> None:
        frames = [line for line in (error.stack or "").splitlines() if line.strip().startswith("at ")]
        if not self._own(str(error), frames):
            self.said.append(f"pageerror: {error}")

    def _own(self, said: str, frames: Sequence[str]) -> bool:
        """Whether it is a known error of the application itself, which it makes with no widget on the page too."""
        # Where the page loads slowly Lab takes its splash screen away twice: a line of its own, called by a timer.
        return "'removeChild'" in said and len(frames) == 1 and "/static/lab/jlab_core." in frames[0]

    def write(self, name: str, cells: Sequence[str]) -> Path:
        """Write a notebook of code cells."""
        import nbformat
        from nbformat import v4

        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = self.folder / name
        nbformat.write(v4.new_notebook(cells=list(map(v4.new_code_cell, cells)), metadata={"kernelspec": kernel}), path)
        return path

    def open(self, path: Path, *, kernel: bool = True) -> Notebook:
        """Show a notebook. Without a kernel, what was saved is all that there is to see."""
        relative = path.relative_to(self.served).as_posix()
        self._show(relative, kernel)
        self.page.wait_for_function(
            f"(path) => {{ {_PANEL} return panelOf(path)?.context.isReady && panelOf(path).isVisible; }}", arg=relative
        )
        notebook = Notebook(self, relative, path)
        if kernel:
            self.page.wait_for_function(
                f"(path) => {{ {_PANEL} "
                "const s = panelOf(path).sessionContext; return s.isReady && s.kernelDisplayStatus === 'idle'; }",
                arg=relative,
            )
        return notebook

    def _show(self, relative: str, kernel: bool) -> None:
        if not self._loaded:
            self.page.goto(f"{self.address}lab?reset")
            self.page.wait_for_function("window.jupyterapp && document.querySelector('#jp-main-dock-panel')")
            self.page.evaluate("jupyterapp.restored")
            self.page.evaluate("jupyterapp.commands.execute('application:set-mode', {mode: 'single-document'})")
            self.page.evaluate("jupyterapp.shell.collapseLeft()")
            self._loaded = True
        self.page.evaluate(
            "([path, start]) => { jupyterapp.commands.execute('docmanager:open', "
            "{path, factory: 'Notebook', kernelPreference: {shouldStart: start, canStart: start}}); }",
            [relative, kernel],
        )

    def run(self, name: str, *cells: str) -> Notebook:
        """Write a notebook, open it and run all its cells."""
        notebook = self.open(self.write(name, cells))
        notebook.run_all()
        return notebook

    def theme(self, theme: Theme) -> None:
        """Change Lab's theme and what the system is said to prefer, and wait until it is there."""
        self.page.emulate_media(color_scheme=theme)
        self.page.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', {theme})", THEMES[theme])
        self.page.wait_for_function("(theme) => document.body.dataset.jpThemeName === theme", arg=THEMES[theme])
        self.page.wait_for_function(
            "(light) => document.body.dataset.jpThemeLight === light", arg=str(theme == "light").lower()
        )

    def errors(self) -> list[str]:
        """What the page complained of: uncaught exceptions, and errors on the console that Lab itself did not make."""
        return [line for line in self.said if line.startswith("pageerror") or ("memlab" in line and "error" in line)]

    def shut_down(self) -> None:
        """End every kernel that the page started."""
        if self._loaded:
            self.page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")


class NotebookApplication(Lab):
    """A page with Jupyter Notebook 7, which shows one notebook and is made of Lab's parts."""

    def _show(self, relative: str, kernel: bool) -> None:
        assert kernel, "Jupyter Notebook starts a kernel for whatever it shows"
        self.page.goto(f"{self.address}notebooks/{quote(relative)}")
        self.page.wait_for_function("window.jupyterapp && document.querySelector('.jp-NotebookPanel')")
        self.page.evaluate("jupyterapp.restored")
        self._loaded = True

    def _own(self, said: str, frames: Sequence[str]) -> bool:
        # While it starts, Notebook 7.6 asks for the schema of a setting that it does not have.
        own = "reading 'schema'" in said and all(
            "/static/notebook/notebook_core." in f or "Promise" in f for f in frames
        )
        return own or super()._own(said, frames)


class Notebook:
    """A notebook that is open in Lab.

    Parameters
    ----------
    lab : Lab
    relative : str
        Its path below the server's root.
    path : Path
    """

    def __init__(self, lab: Lab, relative: str, path: Path) -> None:
        self.lab = lab
        self.page = lab.page
        self.relative = relative
        self.path = path

    @property
    def panel(self) -> Locator:
        """The notebook in the page."""
        return self.page.locator(".jp-NotebookPanel:visible")

    def cell(self, number: int) -> Locator:
        """One cell, from 0."""
        return self.panel.locator(".jp-Cell").nth(number)

    def output(self, number: int) -> Locator:
        """The output of a cell, from 0."""
        return self.cell(number).locator(".jp-Cell-outputWrapper")

    def run_all(self) -> None:
        """Run all cells and wait until the last one is through; a cell that raises fails the test."""
        self._command("notebook:run-all-cells")
        failed = self.page.evaluate(
            f"(path) => {{ {_PANEL} return panelOf(path).model.sharedModel.toJSON().cells.flatMap((cell) => "
            "(cell.outputs || []).filter((o) => o.output_type === 'error')).map((o) => o.traceback.join('\\n')); }",
            self.relative,
        )
        if failed:
            raise KernelError(failed[0])

    def run_cell(self, number: int) -> None:
        """Run one cell, again if need be."""
        self.page.evaluate(
            f"([path, number]) => {{ {_PANEL} panelOf(path).content.activeCellIndex = number; }}",
            [self.relative, number],
        )
        self._command("notebook:run-cell")

    def restart(self) -> None:
        """Restart the kernel; nothing is run."""
        self.page.evaluate(
            f"async (path) => {{ {_PANEL} await panelOf(path).sessionContext.restartKernel(); }}", self.relative
        )
        self.page.wait_for_function(
            f"(path) => {{ {_PANEL} return panelOf(path).sessionContext.kernelDisplayStatus === 'idle'; }}",
            arg=self.relative,
        )

    def ask(self, expression: str, code: str = "") -> Any:
        """The value of an expression in the notebook's kernel, as JSON carries it; ``code`` is run before."""
        asked = f"__import__('json').dumps({expression}, default=str)"
        answer = self.page.evaluate(_ASK, [self.relative, code, asked])
        if "error" in answer:
            raise KernelError(f"{expression}: {answer['error']}")
        return json.loads(ast.literal_eval(answer["value"]))

    def execute(self, code: str) -> None:
        """Run code in the kernel, in no cell."""
        self.ask("None", code)

    def until(self, expression: str, wanted: Any | Callable[[Any], bool], seconds: float = 30) -> Any:
        """Ask until the value is ``wanted``, or fits it; a test that waits in vain fails with the last value."""
        fits = wanted if callable(wanted) else lambda value: value == wanted
        limit = time.monotonic() + seconds
        while True:
            value = self.ask(expression)
            if fits(value):
                return value
            if time.monotonic() > limit:
                raise AssertionError(f"{expression}: expected {wanted!r} within {seconds:g} s, found {value!r}")
            self.page.wait_for_timeout(50)

    def save(self) -> None:
        """Save the notebook as it is in the page."""
        self._command("docmanager:save")

    def close(self) -> None:
        """Save the notebook, end its kernel and close it."""
        self.save()
        self.page.evaluate(
            f"async (path) => {{ {_PANEL} const panel = panelOf(path); await panel.sessionContext.shutdown(); "
            "panel.dispose(); }",
            self.relative,
        )

    def reopened(self, name: str = "reopened.ipynb") -> Notebook:
        """A copy of what was saved, opened without a kernel. Nobody has signed the copy, so Lab does not trust it."""
        import nbformat

        self.close()
        saved = nbformat.read(self.path, as_version=4)
        saved.metadata["copied"] = True
        copy = self.path.with_name(name)
        nbformat.write(saved, copy)
        return self.lab.open(copy, kernel=False)

    def screenshot(self, name: str, target: Locator, themes: tuple[Theme, ...] = ("light", "dark")) -> list[Path]:
        """Pictures of an element, in each theme: ``screenshots/NAME-THEME.png``."""
        self.lab.pictures.mkdir(parents=True, exist_ok=True)
        paths = []
        for theme in themes:
            self.lab.theme(theme)
            path = self.lab.pictures / f"{name}-{theme}.png"
            target.screenshot(path=path, animations="disabled")
            paths.append(path)
        if themes[-1] != "light":
            self.lab.theme("light")
        return paths

    def _command(self, name: str) -> None:
        self.page.evaluate(
            f"async ([path, name]) => {{ {_PANEL} jupyterapp.shell.activateById(panelOf(path).id); "
            "await jupyterapp.commands.execute(name); }",
            [self.relative, name],
        )
