"""``memlab.serve``: one cell, and assistants on this machine use the store."""

from __future__ import annotations

from memlab.errors import InvalidValue
from memlab.retrieval import HybridRetriever
from memlab.server.handle import ServerHandle, running
from memlab.server.sockets import bound_socket, check_host
from memlab.store import MemoryStore


def serve(
    store: MemoryStore | HybridRetriever,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    project: str | None = None,
    read_only: bool = False,
    token: str | bool = True,
    wait: float = 0.0,
    keep: int = 200,
) -> ServerHandle:
    """Serve a store to assistants on this machine, over MCP, while the notebook goes on.

    The server runs in a thread of its own and stops with the kernel. Serving the same store again stops the former
    server and takes over its port, so a cell may be run twice.

    Parameters
    ----------
    store : MemoryStore or HybridRetriever
        A retriever with settings of its own answers with them.
    port : int
        0 for a free one; name one that the settings of a client can keep.
    host : str
        ``127.0.0.1``, ``localhost`` or ``::1``.
    project : str, optional
        Where new memories belong that name no project.
    read_only : bool
        Offer no tool that changes the store.
    token : str or bool
        A random bearer token by default, kept in a private file for the next time; a token of your own; ``False`` for
        none, for programs that cannot send one.
    wait : float
        Seconds that a recall waits for an encoder that is still loading, before it goes by keywords alone.
    keep : int
        How many calls are kept to be looked at, with their recalls.

    Returns
    -------
    ServerHandle

    Raises
    ------
    InvalidValue
        If the address is not this machine's own, the port is taken, or the token is no token.

    Examples
    --------
    >>> server = memlab.serve(store)
    >>> server                  # address, set-up lines, and each call as it arrives
    >>> server.stop()
    """
    retriever = store if isinstance(store, HybridRetriever) else None
    base = retriever.store if retriever is not None else store
    if not isinstance(base, MemoryStore):
        raise InvalidValue(f"store: expected a MemoryStore or a HybridRetriever, found {type(store).__name__}")
    former = running(base.path)
    if port == 0 and former is not None and former.host == host:
        port = former.port
    handle = ServerHandle(
        base, retriever, port=port, host=host, project=project, read_only=read_only, token=token, wait=wait, keep=keep
    )
    if former is None:
        return handle.start()
    # What cannot be had must not cost the one that runs: only its own port has to be free first.
    if port == former.port:
        check_host(host)
        former.stop()
        return handle.start()
    listening = bound_socket(host, port)
    former.stop()
    return handle.start_on(listening)
