"""A real kernel that cells are run in, one by one, as a notebook does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from jupyter_client.manager import KernelManager


class Kernel:
    """Runs cells and keeps what they put out."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.messages: list[dict[str, Any]] = []

    def run(self, code: str, cell: str | None = None) -> list[dict[str, Any]]:
        """Run a cell; the messages that it put out. A traceback is raised."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        message = self.client.session.msg(
            "execute_request", content, metadata={"cellId": cell} if cell is not None else {}
        )
        self.client.shell_channel.send(message)
        found = []
        while True:
            got = self.client.get_iopub_msg(timeout=60)
            if got["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            if got["msg_type"] == "error":
                raise AssertionError("\n".join(got["content"]["traceback"]))
            if got["msg_type"] == "status" and got["content"]["execution_state"] == "idle":
                break
            found.append(got)
        self.client.get_shell_msg(timeout=60)
        return found

    def value(self, code: str) -> Any:
        """The JSON value of an expression in the kernel."""
        out = self.run(f"import json as _json\nprint(_json.dumps({code}))")
        return json.loads("".join(got["content"]["text"] for got in out if got["msg_type"] == "stream"))

    def tell(self, comm_id: str, content: dict[str, Any]) -> list[dict[str, Any]]:
        """Send a widget a message, as its script does; what it answers."""
        message = self.client.session.msg(
            "comm_msg", {"comm_id": comm_id, "data": {"method": "custom", "content": content}}
        )
        self.client.shell_channel.send(message)
        found = []
        while True:
            got = self.client.get_iopub_msg(timeout=60)
            if got["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            if got["msg_type"] != "status":
                found.append(got)
            elif got["content"]["execution_state"] == "idle":
                return found


@contextlib.contextmanager
def running_kernel() -> Iterator[Kernel]:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
