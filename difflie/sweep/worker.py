"""What the workers of a cluster are sent, and what they make of it.

A parcel holds the versions and the settings of jax of the process that sends it, the source of
modules that are not installed, and, by cloudpickle, the sweep.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import pickle
import site
import sys
import sysconfig
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import jax

from ..solvers.few_cores import avoid_a_deadlock
from .chunks import chunk_size
from .run import Computed, Sweep
from .variants import Variants

# What numbers depend on.
_VERSIONS = "difflie", "jax", "jaxlib"
_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
)
# jax uses all cores for one chunk.
_ONE_AT_A_TIME = threading.Lock()


class Source(NamedTuple):
    """A module: its text, where it was, and whether it is a package."""

    text: str
    file: str
    package: bool


def packed(sweep: Sweep) -> bytes:
    """The parcel of a sweep, for `computed`."""
    import cloudpickle

    settings = {name: getattr(jax.config, name) for name in _SETTINGS}
    v = sweep.variants
    # Without what it has compiled.
    bare = Sweep(Variants(v.function, v.names, v.gradient), sweep.design, sweep.chunk)
    return pickle.dumps((_versions(), settings, _sources(), cloudpickle.dumps(bare)))


def computed(parcel: bytes, chunk: int) -> Computed | str:
    """A chunk of the sweep in a parcel; a sentence if it cannot be opened here."""
    with _ONE_AT_A_TIME:
        found = _opened(parcel)
        return found if isinstance(found, str) else found.compute(chunk)


def measured(parcel: bytes) -> int | str:
    """How many rows are best computed at once here; a sentence if the parcel cannot be opened."""
    with _ONE_AT_A_TIME:
        found = _opened(parcel)
        return found if isinstance(found, str) else chunk_size(found.variants, found.design)


# What is compiled for the chunks before is used again.
@functools.lru_cache(maxsize=1)
def _opened(parcel: bytes) -> Sweep | str:
    avoid_a_deadlock()
    versions, settings, sources, sweep = pickle.loads(parcel)
    here = _versions()
    for name, version in versions.items():
        if here[name] != version:
            return f"has {name} {here[name]}, and this process {version}; install the same"
    for name, value in settings.items():
        jax.config.update(name, value)
    _Sent.replace(sources)
    try:
        return pickle.loads(sweep)
    except Exception as error:
        return f"cannot read what is swept ({type(error).__name__}: {error}); install it there"


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in _VERSIONS}


def _sources() -> dict[str, Source]:
    """The imported modules that are not installed, such as one beside the file of a sweep.

    A package with compiled parts is left out: it must be installed on the workers.
    """
    paths = {*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()}
    installed = [Path(path).resolve() for path in paths] + [Path(__file__).resolve().parents[1]]
    found, compiled = {}, set()
    for name, module in list(sys.modules.items()):
        file, root = getattr(module, "__file__", None), name.partition(".")[0]
        if (
            not file
            or root == "__main__"
            or any(map(Path(file).resolve().is_relative_to, installed))
        ):
            continue
        if Path(file).suffix != ".py" or not Path(file).is_file():
            compiled.add(root)
            continue
        text = Path(file).read_text(encoding="utf-8", errors="replace")
        found[name] = Source(text, file, hasattr(module, "__path__"))
    return {name: x for name, x in found.items() if name.partition(".")[0] not in compiled}


class _Sent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of a parcel, before those that may be here."""

    def __init__(self, sources: dict[str, Source]) -> None:
        self.sources = sources

    @staticmethod
    def replace(sources: dict[str, Source]) -> None:
        """Forgets the modules of the parcel before, and finds those of this one."""
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _Sent)]
        for name, module in list(sys.modules.items()):
            if isinstance(getattr(module, "__loader__", None), _Sent):
                del sys.modules[name]
        sys.meta_path.insert(0, _Sent(sources))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        source = self.sources.get(fullname)
        if source is None:
            return None
        return importlib.util.spec_from_loader(
            fullname, self, origin=source.file, is_package=source.package
        )

    def exec_module(self, module: ModuleType) -> None:
        source = self.sources[module.__name__]
        module.__file__ = source.file
        exec(compile(source.text, source.file, "exec"), module.__dict__)
