"""What commands share: which store, opened how, with which encoder; and the options that say so."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memlab.errors import NotAStore

if TYPE_CHECKING:
    from memlab.encoders import Encoder
    from memlab.store import Filters, MemoryStore

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass
class Session:
    """The store that the commands of one run work on.

    Attributes
    ----------
    given : Path or None
        From ``--db`` or MEMLAB_DB.
    named : bool
        Whether ``--db`` was written out, not taken from the environment.
    """

    given: Path | None = None
    named: bool = False

    @property
    def path(self) -> Path:
        """The given path, or the default one."""
        return default_path() if self.given is None else self.given

    def read(self) -> MemoryStore:
        """Open the store for reading; nothing is made or changed."""
        from memlab.store import MemoryStore

        self._must_exist()
        return MemoryStore(self.path, read_only=True)

    def write(self, encoder: str | None = None, *, create: bool = False) -> MemoryStore:
        """Open the store for writing.

        Parameters
        ----------
        encoder : str, optional
            The name from ``--encoder``.
        create : bool
            Make the store if it is not there.
        """
        from memlab.store import AUTO, MemoryStore

        if not create:
            self._must_exist()
        elif self.given is None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return MemoryStore(self.path, AUTO if encoder is None else encoder_choice(encoder))

    def _must_exist(self) -> None:
        if not self.path.exists():
            raise NotAStore(
                f"{self.path}: there is no store yet; `memlab remember` and `memlab import` make one, "
                "--db or MEMLAB_DB names another, and `memlab demo` shows what it is like"
            )


def default_path() -> Path:
    """Where the store lies if nobody says otherwise."""
    import platformdirs

    return Path(platformdirs.user_data_dir("memlab", appauthor=False)) / "memory.db"


def encoder_choice(name: str) -> Encoder | None:
    """The encoder for ``minilm``, ``hashing``, ``none``, or the name or path of another model."""
    from memlab.encoders import HashingEncoder, MiniLM, encoder_from_name

    known: dict[str, Callable[[], Encoder | None]] = {
        "none": lambda: None,
        "minilm": MiniLM,
        "hashing": HashingEncoder,
    }
    return known[name.lower()]() if name.lower() in known else encoder_from_name(name)


@contextlib.contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal's stderr that something takes a while; what it gives changes the words."""
    from memlab.cli.screen import console

    with console(stderr=True).status(what) as status:
        yield lambda words: status.update(words)


def _take_db(context: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    session = context.ensure_object(Session)
    source = context.get_parameter_source(parameter.name or "")
    named = source is click.core.ParameterSource.COMMANDLINE
    if value is not None and (named or not session.named):
        session.given, session.named = value.expanduser(), named


db_option = click.option(
    "--db",
    metavar="PATH",
    type=click.Path(path_type=Path),
    envvar="MEMLAB_DB",
    expose_value=False,
    callback=_take_db,
    help="The store: one SQLite file. [env: MEMLAB_DB; default: memory.db in your data folder]",
)
encoder_option = click.option(
    "--encoder",
    metavar="NAME",
    help="For a new store: minilm (default), hashing, none, or the name or path of a model.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON, and nothing else, to stdout.")


def command(name: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A command that takes ``--db`` as well, so that it may stand before or after the command's name."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        make: Callable[[Callable[..., Any]], click.Command] = click.command(name, **settings)
        return make(db_option(click.pass_obj(function)))

    return decorate


_FILTERS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("--project",), {"multiple": True, "metavar": "NAME", "help": "Of this project (repeat for several)."}),
    (("--category",), {"multiple": True, "metavar": "NAME", "help": "Of this category (repeat for several)."}),
    (("--tag", "tags"), {"multiple": True, "metavar": "TAG", "help": "With this tag (repeat for several)."}),
    (("--tag-match",), {"type": click.Choice(["any", "all"]), "default": "any", "help": "One of the tags, or all."}),
    (("--source",), {"multiple": True, "metavar": "NAME", "help": "From this source (repeat for several)."}),
    (("--min-importance",), {"type": int, "metavar": "1-10", "help": "At least this important."}),
    (
        ("--after", "created_after"),
        {
            "metavar": "TIME",
            "help": "Made at this time or later: 2026-07-01 (its beginning in UTC), or a time with a zone.",
        },
    ),
    (("--before", "created_before"), {"metavar": "TIME", "help": "Made before this time."}),
)


def filter_options(function: Decorated) -> Decorated:
    """Add the options that :func:`filters_from` reads."""
    for names, settings in reversed(_FILTERS):
        function = click.option(*names, **settings)(function)
    return function


def filters_from(options: dict[str, Any]) -> Filters:
    """Take the filters out of a command's options."""
    from memlab.store import Filters

    names = ("project", "category", "tags", "tag_match", "source", "min_importance", "created_after", "created_before")
    values = {name: options.pop(name) for name in names}
    for name, option in (("created_after", "--after"), ("created_before", "--before")):
        values[name] = time_from(values[name], option)
    return Filters(**{name: value for name, value in values.items() if value not in ((), None)})


def time_from(text: str | None, option: str) -> datetime | None:
    """The time that an option names; a day alone is its beginning in UTC."""
    from memlab.timestamps import parse_day_or_time

    return None if text is None else parse_day_or_time(text, option)
