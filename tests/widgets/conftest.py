from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.widgets.kernel import Kernel, running_kernel


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with running_kernel() as started:
        yield started
