"""The exceptions memlab raises on purpose.

Each message says what was expected, what was found and what to do about it, so that a
caller (a person in a notebook, or an assistant over MCP) can act on the text alone.
"""

from __future__ import annotations

__all__ = [
    "ContentError",
    "DuplicateIdError",
    "EncoderError",
    "EncoderMismatch",
    "EncoderUnavailable",
    "FormatError",
    "IdempotencyError",
    "InvalidValue",
    "MemlabError",
    "MissingDependency",
    "NotAStore",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreReadOnly",
    "StoreTooNew",
    "UnknownMemory",
]


class MemlabError(Exception):
    """The root of every error that memlab raises on purpose."""


class InvalidValue(MemlabError, ValueError):
    """An argument is outside what the operation accepts; nothing was changed."""


class ContentError(InvalidValue):
    """The content of a memory is empty, blank or cannot be stored as text."""


class FormatError(MemlabError, ValueError):
    """A file to be imported does not have the layout it should have."""


class MissingDependency(MemlabError, ImportError):
    """An optional package is needed; the message has the exact install command."""


class StoreError(MemlabError):
    """Something is wrong with the file of a store, or with using it."""


class NotAStore(StoreError):
    """The path is a directory or holds something that memlab did not make."""


class StoreTooNew(StoreError):
    """The store was written by a newer memlab than this one."""


class StoreDamaged(StoreError):
    """SQLite reports that the file is malformed."""


class StoreReadOnly(StoreError):
    """A write was asked of a store that can only be read."""


class StoreFull(StoreError):
    """The disk is full; the write was undone."""


class StoreLocked(StoreError):
    """Another process held the write lock for longer than the busy timeout."""


class StoreClosed(StoreError):
    """The store was used after :meth:`MemoryStore.close`."""


class UnknownMemory(StoreError, KeyError):
    """No memory has this id."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument; a sentence should stay a sentence.
        return str(self.args[0]) if self.args else ""


class DuplicateIdError(StoreError):
    """A memory with this id exists already, with other content."""


class IdempotencyError(StoreError):
    """An idempotency key was used again for other content."""


class EncoderError(MemlabError):
    """An encoder failed, or gave vectors that cannot be used."""


class EncoderUnavailable(EncoderError):
    """The weights or the packages of an encoder are not on this machine."""


class EncoderMismatch(EncoderError):
    """A store's vectors come from another encoder than the one at hand."""
