"""What tests of several rooms share: the compiler's cache here, and `one_binding.py` beside this file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `XDG_CACHE_HOME` may be: a program is compiled once for all tests, those in other workers too."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled"
    shared.mkdir(mode=0o700, exist_ok=True)
    return shared
