"""DIFFLIE_NATIVE=dump writes what loops are compiled from."""

import re
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import native
from difflie.native import dump

llvm = pytest.importorskip("llvmlite.binding")
PAGE = Path(__file__).parents[2] / "docs/compiler.md"


@pytest.fixture
def dumped(tmp_path, monkeypatch):
    """A function (f, *args): the texts of the loops that f compiles, by name and ending."""
    monkeypatch.setenv("DIFFLIE_NATIVE", "dump")
    monkeypatch.setenv("DIFFLIE_DUMP", str(tmp_path / "made/here"))

    def texts(f, *args):
        shutil.rmtree(dump.folder(), ignore_errors=True)
        jax.jit(lambda *xs: f(*xs))(*args)
        found = {}
        for path in dump.folder().iterdir():
            name, ending = path.name.split(".", 1)
            found.setdefault(name, {})[ending] = path.read_text()
        return found

    return texts


def roots(x, a):
    """Three rows of square roots, searched for as long as it takes."""

    def body(x, _):
        y, _ = jax.lax.while_loop(
            lambda s: jnp.abs(s[0] - s[1]) > 1e-9, lambda s: (0.5 * (s[0] + a / s[0]), s[0]), (x, a)
        )
        return y + 1, y

    return native.scan(body, x, None, 3)


def test_a_loop_can_be_read(dumped):
    """Arguments, instructions, a loop inside and results; LLVM takes its text as it is."""
    (name,) = texts = dumped(roots, jnp.array(1.5), jnp.array(2.0))
    assert name.startswith("one-")
    assert set(texts[name]) == {"program.txt", "ll", "cu"}
    llvm.parse_assembly(texts[name]["ll"]).verify()
    assert 'extern "C" __global__' in texts[name]["cu"]
    lines = texts[name]["program.txt"].splitlines()
    assert lines[0] == "# 3 iterations"
    for line in (
        *("# constant0: float64 ()", "# carried0: float64 ()", "# saved0: float64 ()"),
        *("  while", "  do"),
    ):
        assert line in lines
    assert any(re.fullmatch(r"%\d+ = while constant0, carried0, constant0", x) for x in lines)
    assert any(re.fullmatch(r"    %\d+ = f64 div fixed\[0\], carried\[0\]", x) for x in lines)
    assert any(re.fullmatch(r"carried0 <- %\d+", x) for x in lines)
    texts = dumped(jax.vmap(roots, (0, None)), jnp.array([1.5, 3.0]), jnp.array(2.0))
    assert [name.split("-")[0] for name in texts] == ["batch"]


def test_the_step_of_the_page_is_that_of_the_pendulum(dumped):
    """Each instruction that the page prints is in the dump, in this order, with some numbers."""
    joint = dl.Revolute(axis=(0.0, 1.0, 0.0))
    system = dl.chain([dl.Body(name="bob", joint=joint, mass=1.0, com=(0.0, 0.0, -1.0))])

    def end(q):
        return dl.simulate(
            system, q, jnp.zeros(1), dt=1e-2, steps=100, method="SemiImplicitEuler"
        ).q

    found = [x["program.txt"] for x in dumped(end, jnp.array([0.3])).values()]
    (text,) = (x for x in found if x.startswith("# 100 iterations"))

    def shapes(text):
        """Lines without the numbers of instructions and of arguments."""
        return [re.sub(r"(%|constant|carried)\d+", r"\1", x) for x in text.splitlines() if x]

    lines = iter(shapes(text))
    (page,) = re.findall(r"```text\n(# 100 iterations.*?)```", PAGE.read_text(), re.S)
    missing = [x for x in shapes(page) if x != "..." and x not in lines]
    assert missing == []


def test_a_dump_changes_no_results(dumped, monkeypatch):
    """Results are those without it, and a folder that cannot be made stops nobody."""
    args = jnp.array(1.5), jnp.array(2.0)
    monkeypatch.setenv("DIFFLIE_NATIVE", "1")
    wanted = jax.jit(lambda *xs: roots(*xs))(*args)
    monkeypatch.setenv("DIFFLIE_NATIVE", "dump")
    monkeypatch.setenv("DIFFLIE_DUMP", str(PAGE / "no folder"))
    with pytest.warns(UserWarning, match="DIFFLIE_NATIVE=dump cannot write to"):
        found = jax.jit(lambda *xs: roots(*xs))(*args)
    assert all(map(np.array_equal, jax.tree.leaves(found), jax.tree.leaves(wanted)))
