"""A recorded recall in the inspector, as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlab.retrieval.recording import arguments_of, entry_of, retriever_of

if TYPE_CHECKING:
    from memlab.store import LoggedQuery, MemoryStore
    from memlab.widgets.inspector import Inspector


def reopen(store: MemoryStore, entry: LoggedQuery | int) -> Inspector:
    """Look into a recorded recall: its query, with the settings, the filters and the ``now`` that it had.

    Parameters
    ----------
    store : MemoryStore
    entry : LoggedQuery or int
        One of ``store.query_log``, or its number there.

    Returns
    -------
    Inspector

    Raises
    ------
    InvalidValue
        If there is none of this number, or its retriever had a stage that is not memlab's own.

    Examples
    --------
    >>> store.query_log.frame
    >>> memlab.reopen(store, 17)
    """
    from memlab.widgets.inspector import inspect

    entry = entry_of(store, entry)
    return inspect(retriever_of(entry.settings, store), entry.query, **arguments_of(entry))
