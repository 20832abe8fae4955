import contextlib
import ctypes
import fnmatch
import gc
import hashlib
import importlib.metadata
import inspect
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jaxtyping import config as checks
from jaxtyping import install_import_hook

# What arrives at functions and what they return is checked against their annotations, shapes
# included. Left out is what runs on single components, which a test calls by the million, and what
# users call, which has checks and messages of its own.
CHECKED = {
    "groups": "attitudes directors manifold poses products quaternion se3 so3",
    "dynamics": "aba centroidal closed_form coriolis crba derivatives discrete_articulated "
    "discrete_inverse_dynamics energy factorisation forward free_flight identifiable jacobians "
    "kinematics natural.coordinates natural.equations natural.layout paths "
    "operational_space regressor rnea screws statics",
    "system": "kinematic_tree tree_numbers",
    "forces": "actuators bushing compliance contacts coupling energy passive "
    "effort_limits point_forces points polynomials springs",
    "constraints": "assembly curves derivatives equations friction lock motion position "
    "redundancy stabilisation",
    "integrators": "commutator_free descriptor embedded_munthe_kaas energy_momentum gauss method "
    "moreau multistep munthe_kaas partitioned rattle variational",
    "quantities": "effort frame_motion frames momentum proximity reductions sensors state subtree",
    "sensors": "sensor",
    "parameters": "block nearness paths pseudo_inertia",
    "simulate": "result step_status trajectory",
    "identify": "base_parameters inverse_dynamics elimination torque_rows losses consistency "
    "problem reactions readings recursive_least_squares sensors shooting",
    "control": "matrix_equations",
    "reproduce": "goetz.chain goetz.energy_stable goetz.variational mueller.transition",
}


def _place() -> str:
    """Of programs that this processor can run, compiled by this jaxlib for this version."""
    described = Path("/proc/cpuinfo")
    processor = described.read_text() if described.exists() else platform.processor()
    features = {line for line in processor.splitlines() if not line.startswith(("cpu MHz", "bogo"))}
    versions = (importlib.metadata.version(name) for name in ("jaxlib", "difflie"))
    key = "\n".join((platform.machine(), *versions, *sorted(features)))
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    return str(Path(__file__).parent.parent / ".pytest_cache" / "programs" / name)


# Tests run almost every program once, and compiling it is what takes the time. So programs are
# hardly optimised (but for tests/native), and kept for other processes and for the next run. Set
# before jax is imported, and so that the processes which tests start have it, too.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", _place())
# Native code is kept beside them, not in the user's cache.
os.environ.setdefault("DIFFLIE_CACHE", str(Path(_place()) / "native"))
# Programs that run once need no better code.
os.environ.setdefault("DIFFLIE_TIERED", "first")
# Whole rollouts are not stored: tests that replace parts of the package trace what they replaced.
os.environ.setdefault("DIFFLIE_STORED", "0")
# Small ones, too: jax compiles every operation outside of a program by itself, hundreds in a test.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Of every operation the place in the source is written into programs: one frame will do for ten.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "1")
# Each process has one core, which also keeps jaxlib up to 0.10 from a deadlock, see difflie.cli.
os.environ.setdefault("PJRT_NPROC", "1")
# Threads of NumPy's linear algebra would take the cores of other workers while they wait. Without
# workers NumPy is there by now, and only processes that tests start have it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
_PLAIN = "--xla_cpu_use_fusion_emitters=false"
if importlib.metadata.version("jax").startswith(("0.8.", "0.9.", "0.10.")):
    # The emitters of fused loops compile derivatives of batches slowly. Not tried with later jax.
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '').replace(_PLAIN, '')} {_PLAIN}"

import jax

# Both precisions are tested in one process: single precision by casting the inputs.
jax.config.update("jax_enable_x64", True)

# Until all tests are there: what is imported stays.
gc.disable()

_MAPS = Path("/proc/self/maps")

# The files that take longest come first, so that no worker is left with one of them at the end.
_LONGEST = (
    "test_book test_singular_points test_frozen_identification test_second_derivatives "
    "test_every_robot test_distances_curved test_identify test_every_method test_internal_states "
    "test_distances_boxes test_distances_hulls test_smooth_distances test_joint_protocol "
    "test_absolute test_couplings test_frozen test_commands"
).split()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.own_markers = [m for m in item.own_markers if _is_meant(m, item)]
        if item.get_closest_marker("thorough"):  # as some cases of slow tests
            item.own_markers = [m for m in item.own_markers if m.name != "slow"]
    places = {f"{name}.py": i for i, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


def _is_meant(mark: pytest.Mark, item: pytest.Item) -> bool:
    """Whether a mark counts for this case: `slow("a*", "b")` does for some, `slow` for all."""
    if mark.name not in ("slow", "thorough") or not mark.args:
        return True
    case = item.name.partition("[")[2].removesuffix("]")
    return any(fnmatch.fnmatchcase(case, pattern) for pattern in mark.args)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr in ("slow", "thorough"):
        # Their programs are large, and few of them are needed twice: keeping them takes a
        # fourteenth of the time. Processes that tests start still do.
        jax.config.update("jax_enable_compilation_cache", False)
        # Checks take a sixth of the time, and what is called here the other tests have checked.
        return
    install_import_hook(
        [
            "difflie.formulations",
            *(
                f"difflie.{room}.{name}"
                for room, names in CHECKED.items()
                for name in names.split()
            ),
        ],
        "annotations.checked",
    )


_checked: set[str] = set()


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Checks take a fifth of the time; further cases of a test call what the first has checked.
    name = item.nodeid.split("[")[0]
    checks.update("jaxtyping_disable", name in _checked)
    _checked.add(name)


def pytest_addoption(parser):
    parser.addoption("--fuzz-seed", type=int, default=0, help="of the changed files")


def pytest_collection_finish() -> None:
    # What is there now stays, and tracing leaves little that only a collection finds.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def _call(function: Callable, arguments: dict[str, Any]) -> None:
    function(**arguments)


# Python's stack is made of pieces, and tracing goes over the end of one again and again, each time
# with memory mapped and unmapped: a tenth of all time. This frame has a piece with room behind it.
_call.__code__ = _call.__code__.replace(co_stacksize=300_000)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    names = inspect.signature(pyfuncitem.obj).parameters
    _call(pyfuncitem.obj, {name: pyfuncitem.funcargs[name] for name in names})
    return True


@pytest.fixture(autouse=True, scope="module")
def _few_programs():
    """Compiled programs are given up before the process has too many pieces of memory, or too much.

    Linux allows 65530 pieces by default, and a compiled gradient takes thousands; with no more to
    have, compilation crashes.
    """
    yield
    if _MAPS.exists() and (_pieces() > 20_000 or _has_grown()):
        jax.clear_caches()
        gc.collect()
        _give_back()
        _held[0] = _memory()


_held = [0.0]


def _give_back() -> None:
    """Programs lie on C's heap, in pieces too small for it to give them back unasked."""
    with contextlib.suppress(AttributeError):  # of C libraries but glibc
        ctypes.CDLL(None).malloc_trim(0)


def _pieces() -> int:
    return _MAPS.read_bytes().count(b"\n")


def _has_grown() -> bool:
    # Giving up takes seconds, and what is common to tests is compiled once more after it.
    return _memory() > _held[0] + (2e9 if _available() < _WHOLE / 3 else 4e9)


_WHOLE = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")


def _available() -> float:
    """Memory that no process needs, in bytes."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return 1024 * float(next(x.split()[1] for x in lines if x.startswith("MemAvailable")))


def _memory() -> float:
    """In bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def traversal(request, monkeypatch):
    """How passes along trees are compiled: "unrolled", or "scanned", as for large trees."""
    if request.param == "unrolled":  # as all programs that are there
        yield request.param
        return
    monkeypatch.setattr("difflie.system.topology._SMALL", 0)
    jax.clear_caches()
    yield request.param
    jax.clear_caches()
