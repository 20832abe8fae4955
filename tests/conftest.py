import gc
from pathlib import Path

import jax
import pytest

# Both precisions are tested in one process: single precision by casting the inputs.
jax.config.update("jax_enable_x64", True)

_MAPS = Path("/proc/self/maps")


def pytest_addoption(parser):
    parser.addoption("--fuzz-seed", type=int, default=1, help="of the many changed files")


@pytest.fixture(autouse=True, scope="module")
def _few_programs():
    """Compiled programs are given up before the process has too many pieces of memory.

    Linux allows 65530 by default, and a compiled gradient takes thousands; with no more to have,
    compilation crashes.
    """
    yield
    if _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()
        gc.collect()
