"""Where a server listens: on this machine's own address, and nowhere else."""

from __future__ import annotations

import os
import socket

from memlab.errors import InvalidValue

LOOPBACK = {"127.0.0.1": socket.AF_INET, "localhost": socket.AF_INET, "::1": socket.AF_INET6}


def check_host(host: str) -> None:
    """Raise :class:`InvalidValue` for an address that can be reached from elsewhere."""
    if host not in LOOPBACK:
        raise InvalidValue(
            f"host: expected one of {', '.join(LOOPBACK)}, found {host!r}; a memory is served to this machine alone "
            "(to reach it from another one, forward the port with ssh -L)"
        )


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening socket on this machine's own address.

    Raises
    ------
    InvalidValue
        If the address can be reached from elsewhere, or the port is taken.
    """
    check_host(host)
    address = "127.0.0.1" if host == "localhost" else host
    # With the protocol named, asyncio switches Nagle's algorithm off; without it every answer waits 40 ms.
    listening = socket.socket(LOOPBACK[host], socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere the option would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidValue(
            f"port: {port} on {address} cannot be had ({reason}); another program has it, or another server of this "
            "notebook that can be stopped. port=0 takes a free one"
        ) from error
    return listening
