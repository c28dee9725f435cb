"""Which project a call is about: resolved here, so that one project does not become several by its spelling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memlab.errors import InvalidValue
from memlab.server.text import line


@dataclass(frozen=True)
class Resolved:
    """A project as the server understands it.

    Attributes
    ----------
    name : str or None
        ``None`` for none (or all, when reading).
    note : str
        What to say if that is not what was given.
    """

    name: str | None
    note: str = ""


@dataclass(frozen=True)
class Projects:
    """Resolves what a client calls a project.

    Parameters
    ----------
    current : str or None
        The project of this server: what new memories belong to unless another is named.
    """

    current: str | None = None

    def for_writing(self, given: str, known: Iterable[str]) -> Resolved:
        """The project of a new memory: the one given, else the server's; ``none`` for none; ``all`` is refused."""
        if given.strip().casefold() == "none":
            return Resolved(None)
        if given.strip().casefold() == "all":
            raise InvalidValue(
                "project: expected one project, found 'all', the word for every project in recall; name one, or 'none'"
            )
        return self._resolve(given or self.current or "", known)

    def for_reading(self, given: str, known: Iterable[str]) -> Resolved:
        """The project to look in: all unless one is given."""
        if given.strip().casefold() == "all":
            return Resolved(None)
        return self._resolve(given, known)

    def _resolve(self, given: str, known: Iterable[str]) -> Resolved:
        name = given.strip()
        if not name:
            return Resolved(None)
        names = list(known)
        if name in names:
            return Resolved(name)
        if name.casefold() == "current":
            if self.current is None:
                raise InvalidValue(
                    "project: this server has no current project (it was started outside of a repository and without "
                    "--project); name one, or leave project out"
                )
            return Resolved(self.current, f"project: this server's is {line(self.current)}")
        folder = name.replace("\\", "/").rstrip("/").rpartition("/")[2] or name
        same = [other for other in names if other.casefold() == folder.casefold()]
        chosen = folder if folder in names or not same else same[0]
        note = "" if chosen == name else f"project: {line(name)!r} was taken as {line(chosen)!r}"
        return Resolved(chosen, note)


def project_of(folder: Path) -> str | None:
    """The name of the repository that a folder lies in; ``None`` if it lies in none."""
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return place.name or None
    return None
