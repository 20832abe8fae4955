"""Frozen systems: what the ordinary ones compute, by shorter programs; what they refuse."""

import copy
import dataclasses
import functools
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loops import four_bar
from trees import zoo

import difflie as dl
from difflie.forces.actuators import Drive
from difflie.native.jaxprs import nested
from difflie.system.kinematic_tree import Tree

ADJOINTS = [dl.Direct(), dl.RecursiveCheckpoint(8), dl.Forward(), dl.Reversible()]


def bars(**joint):
    """Two bars on hinges and a ball joint, with zeros and quarter turns in their placements."""
    shape = {"mass": 1.0, "com": (0.0, 0.0, -0.5), "inertia": np.diag([0.1, 0.1, 0.01])}
    hinge = dl.Revolute(axis=(0.0, 1.0, 0.0), **joint)
    bodies = [
        dl.Body(name="upper", joint=hinge, **shape),
        dl.Body(
            name="lower",
            joint=hinge,
            position=(0.0, 0.0, -1.0),
            rotation=(0.0, 0.0, np.pi / 2),
            **shape,
        ),
        dl.Body(name="ball", joint=dl.Spherical(), position=(0.1, 0.0, -1.0), **shape),
    ]
    return dl.chain(bodies)


@functools.cache
def arm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dl.load(Path(dl.__file__).parent / "data" / "arm7.urdf")


def spring(stiffness=20.0):
    return dl.Spring((("upper", (0.1, 0, 0)), ("ball", (0, 0, 0))), stiffness, 0.3)


def equal(found, expected, tolerance=1e-14):
    """Whether pytrees of arrays agree, leaf by leaf, relative to the largest entry."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    for a, b in pairs:
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, np.abs(b).max()))


def state(system, seed=0):
    rng = np.random.default_rng(seed)
    change, v = rng.normal(size=(2, system.nv)) * 0.3
    q = dl.integrate(system, system.neutral(), jnp.asarray(change, system.dtype))
    return q, jnp.asarray(v, system.dtype)


def end(system, q, v, gain, **options):
    options = {"steps": 8, "dt": 0.02, "method": "SemiImplicitEuler", **options}
    run = dl.simulate(system, q, v, control=lambda t, q, v: -gain * v, **options)
    return run.q[-1], run.v[-1]


def loss(system, q, v, gain, **options):
    q, v = end(system, q, v, gain, **options)
    return jnp.sum(q * jnp.arange(1.0, len(q) + 1).astype(q.dtype)) + jnp.sum(v**2)


def test_a_frozen_system_is_a_pytree_without_leaves_that_is_equal_by_its_numbers():
    # What jax keeps compiled programs by.
    system = bars()
    one, same, other = system.frozen(), bars().frozen(), bars(damping=0.1).frozen()
    assert isinstance(one, dl.System)
    assert jax.tree.leaves(one) == []
    assert jax.tree.structure(one) == jax.tree.structure(same)
    assert hash(jax.tree.structure(one)) == hash(jax.tree.structure(same))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert jax.tree.structure(one) != jax.tree.structure(other)
    assert one != system
    assert one.frozen() is one
    for copied in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert copied == one
        assert hash(copied) == hash(one)
    assert repr(one).startswith("FrozenSystem")


@pytest.mark.parametrize("jit", [jax.jit, eqx.filter_jit])
def test_equal_frozen_systems_share_a_program(jit):
    # A program for each set of numbers, and none for the same ones again.
    traced = []

    @jit
    def product(system, x):
        traced.append(system)
        return x * system.joints.armature[0]

    values = [product(bars(armature=a).frozen(), 2.0) for a in (1.0, 1.0, 3.0)]
    assert len(traced) == 2
    assert values == [2.0, 2.0, 6.0]


def test_changed_systems_are_frozen_too():
    # Nothing done to a frozen system gives back leaves.
    system = bars()
    frozen, heavy = system.frozen(), 2 * system.bodies.mass
    for change in (
        lambda s: s.replace(mass=heavy, gravity=(0.0, 0.0, -1.0)),
        lambda s: s.astype(jnp.float32),
        lambda s: dl.attach(s, spring()),
        lambda s: dataclasses.replace(s, gravity=jnp.zeros(3)),
        lambda s: s.with_constraints(()),
    ):
        assert change(frozen) == change(system).frozen()
        assert change(frozen) != frozen or change(system) == system
    assert jax.jit(lambda x: x * frozen.astype(jnp.float32).bodies.mass)(1.0).dtype == jnp.float32


@pytest.mark.slow
def test_the_functions_of_dynamics_agree():
    # Every joint type, and fixed bodies in a row, with numbers computed beforehand.
    system = dl.tree(zoo())
    q, v = state(system)

    @jax.jit
    def found(system, q, v):
        return dl.inverse_dynamics(system, q, v, v), dl.body_poses(system, q)

    equal(found(system.frozen(), q, v), found(system, q, v))


def step_sizes(system):
    """The instructions of a time step, and those of its derivative, in their order."""
    q, v = state(system)

    def loops(jaxpr):
        for equation in jaxpr.eqns:
            loop = equation.params.get("loop")
            if loop is not None and loop.length == 8:
                yield len(loop.program().used())
            for inner in nested(equation.params):
                yield from loops(inner.jaxpr)

    gradient = jax.make_jaxpr(jax.value_and_grad(loss, argnums=(1, 2)))(system, q, v, 0.1)
    return np.array(list(loops(gradient.jaxpr)))


@pytest.mark.slow
def test_the_numbers_are_folded_into_the_programs():
    # Of the step and of its derivative about half is left.
    sizes, folded = step_sizes(arm()), step_sizes(arm().frozen())
    assert len(sizes) == len(folded) == 2
    assert np.all(folded < 0.62 * sizes)


@pytest.mark.slow
def test_what_follows_from_the_numbers_is_rounded_once():
    # A program in single precision has the double precision's numbers, and its zeros.
    single = arm().astype(jnp.float32)
    exact = Tree.of(single.astype(jnp.float64))
    found = Tree.of(single.frozen())
    eps = float(jnp.finfo(jnp.float32).eps)
    for name in ("placement", "inertia", "offset"):
        pairs = zip(*(jax.tree.leaves(getattr(t, name)) for t in (found, exact)), strict=True)
        for a, b in pairs:
            assert a.dtype == jnp.float32
            np.testing.assert_allclose(a, b, rtol=eps / 2, atol=2 * eps)
    entries = np.abs(np.stack(jax.tree.leaves(found.placement.rotation)))
    assert set(entries.ravel().tolist()) == {0.0, 1.0}


@pytest.mark.slow
def test_what_follows_is_exact_where_jax_has_single_precision_only():
    # As jax starts: double precision is turned on for these numbers, and for nothing else.
    code = """
import jax, numpy as np, difflie as dl
from difflie.system.kinematic_tree import Tree
from trees import zoo
system = dl.tree(zoo())
mass = np.asarray(system.bodies.mass, float)[-1]
com = np.asarray(system.bodies.com, float)[-1]
Tree.of(system)
for tree in (Tree.of(system.frozen()), jax.jit(lambda x: Tree.of(system.frozen()).inertia)(0.0)):
    first = getattr(tree, "inertia", tree).first
    assert first.x.dtype == "float32" and not jax.config.jax_enable_x64
    carried = [float(a[system.topology.last_dof[-1]]) for a in (first.x, first.y, first.z)]
    np.testing.assert_array_equal(carried, (mass * com).astype(np.float32))
"""
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent.parent, check=True)


@pytest.mark.slow
@pytest.mark.thorough("float32-neutral", "float32-moving")
@pytest.mark.parametrize(
    ("dtype", "start"),
    [
        (jnp.float64, "moving"),
        (jnp.float32, "neutral"),
        (jnp.float64, "neutral"),
        (jnp.float32, "moving"),
    ],
)
def test_motions_and_gradients_agree(dtype, start):
    # In the state and in what a control closes over; at rest and unturned, too.
    system = bars(damping=0.1, stiffness=2.0).astype(dtype)
    q, v = state(system)
    if start == "neutral":
        q, v = system.neutral(), jnp.zeros_like(v)
    f = jax.jit(jax.value_and_grad(loss, argnums=(1, 2, 3)))
    tolerance = 1e-14 if dtype == jnp.float64 else 1e-5
    equal(f(system.frozen(), q, v, 0.1), f(system, q, v, 0.1), tolerance)


@pytest.mark.slow
def test_a_batch_of_states_agrees():
    # In the lanes of vector instructions, the frozen system as an argument.
    system = bars()
    q, v = (jnp.stack(x) for x in zip(*(state(system, seed) for seed in range(64)), strict=True))

    ends = jax.jit(jax.vmap(end, in_axes=(None, 0, 0, None)))
    equal(ends(system.frozen(), q, v, 0.1), ends(system, q, v, 0.1))


@pytest.mark.slow
@pytest.mark.thorough("Direct", "Reversible")
@pytest.mark.parametrize("adjoint", ADJOINTS, ids=lambda a: type(a).__name__)
def test_every_adjoint_agrees(adjoint):
    # First derivatives, and second ones but for the adjoint that steps back.
    system = bars()
    q, v = state(system)
    reversible = isinstance(adjoint, dl.Reversible)
    method = "StormerVerlet" if reversible else "SemiImplicitEuler"
    f = functools.partial(loss, gain=0.0, adjoint=adjoint, method=method)
    slope = jax.jacfwd if isinstance(adjoint, dl.Forward) else jax.grad
    first = jax.jit(slope(f, argnums=(1, 2)))
    equal(first(system.frozen(), q, v), first(system, q, v), 1e-13)
    if not reversible:
        second = jax.jit(jax.jacfwd(slope(f, argnums=2), argnums=2))
        equal(second(system.frozen(), q, v), second(system, q, v), 1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("traversal", ["scanned"], indirect=True)
def test_a_large_tree_agrees(traversal):
    # Passes along a tree that are loops, in which the numbers are looked up.
    system = bars()
    q, v = state(system)
    f = jax.jit(jax.value_and_grad(loss, argnums=(1, 2)))
    equal(f(system.frozen(), q, v, 0.1), f(system, q, v, 0.1), 1e-13)


@pytest.mark.slow
def test_couplings_and_actuators_with_a_memory_agree():
    # What a step puts into a frozen system, traced, is what the actuators remember.
    system = dl.attach(
        bars(),
        spring(),
        Drive("upper", delay=0.03, torque_scale=0.9),
    )
    q, v = state(system)

    @jax.jit
    def run(system, q, v):
        run = dl.simulate(system, q, v, dt=0.02, steps=4, control=jnp.ones((4, 1)))
        return run.q, run.v

    equal(run(system.frozen(), q, v), run(system, q, v))


@pytest.mark.slow
def test_closed_loops_agree():
    # Constraints, their projection, and which numbers must not change.
    system, q, v = four_bar()

    def all_of(system):
        f = jax.value_and_grad(lambda v: jnp.sum(end(system, q, v, 0.1, method="RKMK4")[0]))
        return dl.assemble(system, q, v), f(v)

    equal(all_of(system.frozen()), all_of(system), 1e-13)
    breaking = [dl.inconsistent_parameters(s, q) for s in (system.frozen(), system)]
    assert jax.tree.all(jax.tree.map(np.array_equal, *breaking))


@pytest.mark.slow
def test_a_step_and_an_event_agree():
    # The step by itself, and the shorter one at the end.
    system = bars()
    q, v = state(system)

    def both(system):
        step = dl.step(system, q, v, 0.01, method="SemiImplicitEuler")
        run = dl.simulate(system, q, v, steps=5, until=lambda t, q, v: 0.0025 - t)
        return step.q, run.t, run.q

    equal(both(system.frozen()), both(system))


SYSTEM = bars()


def loss_of_mass(system, mass):
    return system.replace(mass=mass).gravity[0]


REFUSED = {
    "freezing under jit": lambda: jax.jit(lambda s: s.frozen().bodies.mass)(SYSTEM),
    "freezing under grad": lambda: jax.grad(lambda s: s.frozen().bodies.mass[0])(SYSTEM),
    "freezing under vmap": lambda: jax.vmap(lambda m: SYSTEM.replace(mass=m).frozen().gravity)(
        jnp.ones((2, 3))
    ),
    "replace": lambda: jax.grad(loss_of_mass, argnums=1)(SYSTEM.frozen(), jnp.ones(3)),
    "attach": lambda: jax.grad(lambda k: dl.attach(SYSTEM.frozen(), spring(k)).gravity[0])(1.0),
}


@pytest.mark.parametrize("case", REFUSED)
def test_traced_numbers_are_refused(case):
    # Whatever is traced cannot be a constant: which one, and what to do instead.
    with pytest.raises(
        TypeError, match=r"is traced.*freeze or change it before jax\.jit.*before frozen\(\)"
    ):
        REFUSED[case]()


def test_batches_and_parameters_are_refused():
    # A batch of constants is none, and numbers that are no leaves are no parameters.
    with pytest.raises(ValueError, match=r"chain: this is a batch of systems.*freeze one of them"):
        jax.tree.map(lambda a: jnp.stack((a, a)), SYSTEM).frozen()
    with pytest.raises(ValueError, match=r"upper/mass.*constants; use the system before frozen"):
        dl.Parameters(SYSTEM.frozen(), ["upper/mass"])
    assert dl.Parameters(SYSTEM.frozen(), []).names == ()


def test_transforms_of_jax_in_a_frozen_system():
    # jax asks nobody here: a gradient in no numbers is the argument, and no axis is to be batched.
    def f(system):
        return jnp.sum(system.bodies.mass)

    assert jax.grad(f)(SYSTEM.frozen()) == SYSTEM.frozen()
    with pytest.raises(ValueError, match="at least one argument containing an array"):
        jax.vmap(f)(SYSTEM.frozen())
