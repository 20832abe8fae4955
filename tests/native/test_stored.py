"""A rollout that another process has stored is not traced, and gives the same bits."""

import functools
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.native import disk_cache, private
from difflie.native.closures import Unknown
from difflie.native.contents import described, packed, unpacked

stored = importlib.import_module("difflie.native.stored")

pytestmark = pytest.mark.skipif(not private.storing(), reason="not with this jax")

# Prints numbers, bit by bit, and how often rollouts were traced.
SCRIPT = """
import importlib, sys
import jax
jax.config.update("jax_enable_x64", X64)
import jax.numpy as jnp
import numpy as np
import difflie as dl
stored = importlib.import_module("difflie.native.stored")
traces, traced = [], stored._traced
stored._traced = lambda *args: traces.append(1) or traced(*args)
arm = dl.chain([dl.Body(name=n, joint=dl.Revolute(), mass=1.0, com=(0.3, 0, 0)) for n in "yz"])
start = jnp.full(2, 0.1)
def end(system, q, v):
    run = dl.simulate(system, q, v, dt=0.01, steps=STEPS, method=METHOD)
    return jnp.sum(run.q[-1] * jnp.arange(1, 3))
CALLS = {"result": end, "gradient": jax.value_and_grad(end, (0, 1, 2), allow_int=True)}
made = jax.jit(CALLS[QUANTITY])(arm, start, start)
leaves = [np.asarray(x) for x in jax.tree.leaves(made) if x.dtype != jax.dtypes.float0]
print(*[x.tobytes().hex() for x in leaves])
print(len(traces))
"""
GIVEN = {"X64": True, "STEPS": 5, "METHOD": "SemiImplicitEuler", "QUANTITY": "result"}


def output(folder, path=None, script=SCRIPT, **given):
    """What a new process prints: the numbers, and the number of traces."""
    head = "\n".join(f"{name} = {value!r}" for name, value in (GIVEN | given).items())
    done = subprocess.run(
        [sys.executable, "-c", f"{head}\n{script}"],
        env=os.environ | {"DIFFLIE_CACHE": str(folder), "DIFFLIE_STORED": "1"},
        cwd=path,  # before all others on the path
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    numbers, traces = done.stdout.splitlines()
    return numbers, int(traces)


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["result", "gradient"])
def test_another_process_has_the_same_bits_without_a_trace(tmp_path, quantity):
    """Also the same as without a cache."""
    numbers, traces = output(tmp_path, QUANTITY=quantity)
    assert traces == 1
    assert output(tmp_path, QUANTITY=quantity) == (numbers, 0)
    assert output("0", QUANTITY=quantity) == (numbers, 0)


@pytest.mark.slow
def test_what_differs_is_stored_for_itself(tmp_path):
    """Precision, method and number of steps belong to the key."""
    output(tmp_path)
    for name, value in (("X64", False), ("METHOD", "RKMK4"), ("STEPS", 6)):
        assert output(tmp_path, None, SCRIPT, **{name: value})[1] == 1, name
    other = SCRIPT.replace('"yz"', '"xyz"').replace("full(2", "full(3").replace("1, 3", "1, 4")
    assert output(tmp_path, script=other)[1] == 1


@pytest.mark.slow
def test_an_edited_package_gives_the_new_number(tmp_path):
    """One changed line of the sources is another key."""
    package = tmp_path / "path/difflie"
    shutil.copytree(Path(dl.__file__).parent, package)
    numbers, _ = output(tmp_path / "cache", tmp_path / "path")
    assert output(tmp_path / "cache", tmp_path / "path") == (numbers, 0)
    loop = package / "simulate/loop.py"
    text = loop.read_text()
    line = "    t, q, v, (record, z), (u, torques) = motion\n"
    assert line in text
    loop.write_text(text.replace(line, f"{line}    q = 2 * q\n"))
    edited, traces = output(tmp_path / "cache", tmp_path / "path")
    assert edited != numbers and traces == 1


@pytest.mark.slow
def test_a_changed_control_of_a_user_gives_the_new_number(tmp_path):
    """A function of a user's script is traced by each process."""
    force = "jnp.full(2, FORCE)"
    script = SCRIPT.replace("method=METHOD", f"method=METHOD, control=lambda t, q, v: {force}")
    one, two = (output(tmp_path, script=script, FORCE=force)[0] for force in (1.0, 2.0))
    assert one != two and output(tmp_path, script=script, FORCE=1.0)[0] == one


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DIFFLIE_CACHE", str(tmp_path))
    monkeypatch.setenv("DIFFLIE_STORED", "1")
    forget()
    yield tmp_path
    forget()


def forget():
    """As in a new process."""
    jax.clear_caches()
    stored._programs.clear()


@pytest.fixture
def traces(monkeypatch):
    """The calls in which a rollout was traced."""
    made, traced = [], stored._traced
    monkeypatch.setattr(stored, "_traced", lambda *args: made.append(1) or traced(*args))
    return made


def arm():
    parts = [dl.Body(name=n, joint=dl.Revolute(), mass=1.0, com=(0.3, 0, 0)) for n in "yz"]
    return dl.chain(parts)


def end(system, q, v, **options):
    options = {"dt": 0.01, "steps": 5, "method": "SemiImplicitEuler"} | options
    return dl.simulate(system, q, v, **options).q[-1]


START = jnp.full(2, 0.1), jnp.full(2, -0.2)


def test_a_stored_rollout_is_not_traced(folder, traces):
    """Where the module is on disk; its parts, too."""
    first = jax.jit(end)(arm(), *START)
    assert len(traces) == 1
    forget()
    assert (jax.jit(end)(arm(), *START) == first).all() and len(traces) == 1


TRANSFORMED = {
    "vmap": jax.vmap(end, (None, 0, 0)),
    "jvp": lambda s, q, v: jax.jvp(lambda q, v: end(s, q[0], v[0]), (q, v), (v, q)),
    "forward": lambda s, q, v: jax.jacfwd(lambda q: end(s, q, v[0]))(q[0]),
    "reverse": lambda s, q, v: jax.jacrev(lambda q: end(s, q, v[0]))(q[0]),
    "hessian": lambda s, q, v: jax.hessian(lambda q: end(s, q, v[0])[0])(q[0]),
    "linearize": lambda s, q, v: jax.linearize(lambda q: end(s, q, v[0]), q[0])[1](v[0]),
    "of a batch": lambda s, q, v: jax.grad(
        lambda q: jax.vmap(lambda q, v: end(s, q, v))(q, v).sum()
    )(q),
    "checkpoint": lambda s, q, v: jax.grad(
        lambda q: jax.checkpoint(lambda q: end(s, q, v[0]))(q).sum()
    )(q[0]),
}


@pytest.mark.slow
@pytest.mark.thorough("jvp", "linearize", "of a batch", "checkpoint")
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations_are_those_of_a_traced_rollout(folder, monkeypatch, name):
    """Batches and derivatives, when stored, from disk, and without; also outside of a program."""
    f, points = TRANSFORMED[name], [jnp.stack([x, x + 0.1, -x]) for x in START]
    found = []
    for cache in (str(folder), str(folder), "0"):
        monkeypatch.setenv("DIFFLIE_CACHE", cache)
        forget()
        found.append(jax.jit(f)(arm(), *points))
        found.append(f(arm(), *points))
    for other in found[:-1]:
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14), other, found[-1]
        )


@pytest.mark.slow("empty", "exchanged")
@pytest.mark.parametrize("damage", ["cut", "empty", "missing", "exchanged"])
def test_damaged_entries_are_ignored(folder, traces, damage):
    """The rollout is traced again, and gives the same."""
    first = jax.jit(end)(arm(), *START)
    files = sorted(folder.iterdir())
    contents = [f.read_bytes() for f in files]
    for i, file in enumerate(files):
        if damage == "missing":
            file.unlink()
        elif damage == "exchanged":
            file.write_bytes(contents[i - 1])
        else:
            file.write_bytes(contents[i][: len(contents[i]) // 2 if damage == "cut" else 0])
    forget()
    assert (jax.jit(end)(arm(), *START) == first).all() and len(traces) == 2


def test_missing_machine_code_is_made_anew(folder, traces, monkeypatch):
    """A module whose handlers are not on disk any more is made again."""
    first = jax.jit(end)(arm(), *START)
    forget()
    monkeypatch.setattr(
        stored.vectorized_loop, "registered", lambda digest: (_ for _ in ()).throw(stored.Missing)
    )
    assert (jax.jit(end)(arm(), *START) == first).all() and len(traces) == 2


@pytest.mark.slow("DIFFLIE_NATIVE-0")
@pytest.mark.parametrize(
    ("name", "value"), [("DIFFLIE_CACHE", "0"), ("DIFFLIE_NATIVE", "0"), ("DIFFLIE_STORED", "0")]
)
def test_it_can_be_switched_off(folder, traces, monkeypatch, name, value):
    """With the cache, with native code, and by itself."""
    monkeypatch.setenv(name, "0")
    jax.jit(end)(arm(), *START)
    assert traces == []


@pytest.mark.slow
def test_options_and_types_have_entries_of_their_own(folder, traces):
    """Each argument of simulate that a trace reads belongs to the key."""
    single = jax.tree.map(lambda x: x.astype(np.float32) if x.dtype == float else x, (arm(), START))
    jax.jit(end)(arm(), *START)
    others = (
        {"save_every": 5},
        {"adjoint": dl.Forward()},
        {"stabilisation": dl.Baumgarte(10.0)},
        {"control": jnp.ones(2)},
        {"method": dl.RKMK4()},
    )
    for number, options in enumerate(others, start=2):
        jax.jit(functools.partial(end, **options))(arm(), *START)
        assert len(traces) == number, options
    jax.jit(end)(single[0], *single[1])
    assert len(traces) == len(others) + 2


def test_settings_of_jax_belong_to_the_key(folder, traces):
    """Such as the precision of products."""
    jax.jit(end)(arm(), *START)
    with jax.default_matmul_precision("highest"):
        jax.jit(end)(arm(), *START)
    assert len(traces) == 2


def test_functions_of_users_are_traced(folder, traces):
    """What is not of this package or jax has no name in other processes."""
    gain = {"k": 1.0}

    def control(t, q, v):
        return -gain["k"] * q

    first = jax.jit(lambda *a: end(*a, control=control))(arm(), *START)
    gain["k"] = 2.0
    second = jax.jit(lambda *a: end(*a, control=control))(arm(), *START)
    assert traces == [] and not (first == second).all()


def test_results_are_put_together_from_arrays():
    """What `packed` writes is read back, with what came from the arguments."""
    given, parts = arm(), []
    args = (given, 3)
    result = {"a": (1.5, np.arange(3), None), "b": [given.topology, "text", 2, True]}
    written = packed(result, args, parts)
    made = unpacked(written, args, parts)
    assert made["b"][0] is given.topology and made["b"][1:] == ["text", 2, True]
    assert made["a"][0] == 1.5 and made["a"][1] is parts[0] and made["a"][2] is None


def test_numbers_that_are_known_count():
    """Arrays of NumPy by their bytes, those of jax by their types alone."""
    assert described(np.arange(3)) != described(np.arange(1, 4))
    assert described(jnp.arange(3)) == described(jnp.arange(1, 4))
    assert described(jnp.arange(3)) != described(jnp.arange(4))
    with pytest.raises(Unknown):
        described(lambda x: x)


def test_without_a_folder_nothing_is_stored(monkeypatch, traces):
    """A rollout is traced as without the cache."""
    monkeypatch.setenv("DIFFLIE_STORED", "1")
    monkeypatch.setattr(disk_cache, "folder", lambda: None)
    forget()
    jax.jit(end)(arm(), *START)
    assert traces == []
