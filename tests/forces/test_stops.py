"""Compliant stops at joint limits, against contacts, closed forms and differences."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl

UP = (0.0, 0.0, 1.0)


def slider(**limits):
    """A mass of 2 kg on a vertical slide."""
    body = dl.Body(name="mass", joint=dl.Prismatic(axis=UP, name="slide", **limits), mass=2.0)
    return dl.chain([body])


def test_a_stop_is_a_contact_of_the_joint():
    """At the lower limit it pushes as a plane does; at the upper one the other way round."""
    numbers = {"exponent": 1.5, "dissipation": 0.4, "smoothing": 0.02}
    plane = dl.PlaneContact([(None, (0, 0, 0.3)), ("mass", (0, 0, 0))], 1e4, UP, **numbers)
    touching = dl.attach(slider(), plane)
    floor = dl.attach(slider(lower=0.3), dl.JointStop(1e4, **numbers))
    roof = dl.attach(slider(upper=-0.3), dl.JointStop(1e4, "slide", **numbers))
    x, v = np.meshgrid(np.linspace(0.2, 0.4, 11), [-3.0, 0.0, 2.0, 50.0])
    x, v = jnp.asarray(x.reshape(-1, 1)), jnp.asarray(v.reshape(-1, 1))

    def force(system, q, v):
        return dl.passive_force(system, q, v), dl.elastic_energy(system, q)

    def at(system, q, v):
        return jax.jit(jax.vmap(force, (None, 0, 0)))(system, q, v)

    expected, energy = at(touching, x, v)
    assert np.ptp(expected) > 100
    for (found, stored), sign in ((at(floor, x, v), 1), (at(roof, -x, -v), -1)):
        np.testing.assert_allclose(sign * found, expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(stored, energy, rtol=1e-12)


def test_contact_time():
    """(2/w) (pi - atan(v w / g)) at a linear stop, under which the mass leaves as it came."""
    system = dl.attach(slider(lower=0.0), dl.JointStop(1e5))
    w = np.sqrt(1e5 / 2)
    time = 2 / w * (np.pi - np.arctan(1.7 * w / 9.81))
    run = dl.simulate(system, [0.0], [-1.7], dt=time / 100, steps=100, method=dl.RKMK6())
    assert abs(time - 0.0142804017696) < 1e-13
    np.testing.assert_allclose((run.q[-1, 0], run.v[-1, 0]), (0, 1.7), atol=1e-10)
    energy = sum(run.energy(system))
    np.testing.assert_allclose(energy, energy[0], rtol=1e-11)


@pytest.fixture(scope="module")
def arm():
    """Limits on one side, both and none, a mimic joint, a ball and a universal joint."""
    joints = {
        "one": (None, dl.Revolute(lower=-0.5)),
        "none": ("one", dl.Revolute(axis=(1.0, 0.0, 0.0))),
        "both": ("none", dl.Prismatic(lower=-0.1, upper=0.2)),
        "mimic": ("one", dl.Prismatic(mimic=dl.Mimic("one", -2.0, 0.1), lower=-0.2, upper=0.6)),
        "ball": ("both", dl.Spherical(lower=-1.0, upper=1.0)),
        "cross": ("both", dl.Universal(upper=(0.1, np.inf))),
    }
    bodies = [
        dl.Body(name=n, joint=j, parent=up, mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3))
        for n, (up, j) in joints.items()
    ]
    return dl.tree(bodies)


def test_every_limit(arm):
    """All limits that exist, one by one; those of the mimic joint on the joint it follows."""
    system = dl.attach(arm, dl.JointStop(100.0))
    one, none, both, cross, other = 0.7, 3.0, 0.25, 0.3, 9.0
    q = jnp.array([one, none, both, 1.0, 0, 0, 0, cross, other])
    expected = np.zeros(system.nv)
    expected[0] = -2.0 * 100 * (-0.2 - (-2 * one + 0.1))
    expected[2] = -100 * (both - 0.2)
    expected[6] = -100 * (cross - 0.1)
    still = jnp.zeros(system.nv)
    np.testing.assert_allclose(dl.passive_force(system, q, still), expected, atol=1e-12)
    named = dl.attach(arm, dl.JointStop(100.0, ["both"]), dl.JointStop(50.0, "cross"))
    expected[0], expected[6] = 0, expected[6] / 2
    np.testing.assert_allclose(dl.passive_force(named, q, still), expected, atol=1e-12)


@pytest.mark.slow
def test_derivatives(arm):
    """By the limits, the numbers of the stop, q and v; and for the sharp law at the limit."""
    numbers = {"exponent": 1.5, "dissipation": 0.3, "smoothing": 0.1}
    system = dl.attach(arm, dl.JointStop(100.0, **numbers))
    q = jnp.array([0.3, 0.2, 0.15, 1.0, 0, 0, 0, 0.05, 0.4])
    v = jnp.linspace(-1, 1, system.nv)
    leaves, structure = jax.tree.flatten(
        (system.couplings, system.joints.lower[jnp.array([0, 2])], q, v)
    )
    sizes = np.cumsum([leaf.size for leaf in leaves])[:-1]
    x = jnp.concatenate([leaf.ravel() for leaf in leaves])

    def force(x):
        parts = [p.reshape(a.shape) for p, a in zip(jnp.split(x, sizes), leaves, strict=True)]
        couplings, lower, q, v = jax.tree.unflatten(structure, parts)
        lower = system.joints.lower.at[jnp.array([0, 2])].set(lower)
        changed = replace(system.replace(lower=lower), couplings=couplings)
        return dl.passive_force(changed, q, v)

    forwards, backwards = jax.jit(lambda x: (jax.jacfwd(force)(x), jax.jacrev(force)(x)))(x)
    h, unit = 1e-5, jnp.eye(x.size)
    moved = jax.jit(jax.vmap(force))(x + h * jnp.concatenate((unit, -unit)))
    differences = (moved[: x.size] - moved[x.size :]).T / (2 * h)
    np.testing.assert_allclose(forwards, differences, atol=2e-6)
    np.testing.assert_allclose(backwards, forwards, atol=1e-12)

    sharp = dl.attach(slider(lower=0.0), dl.JointStop(100.0, dissipation=0.2, exponent=1.5))
    slopes = jax.jit(jax.jacrev(dl.passive_force, (0, 1, 2)))
    for dtype in ("float32", "float64"):
        zero = jnp.zeros(1, dtype)
        found = jax.tree.leaves(slopes(sharp.astype(dtype), zero, zero))
        assert all(np.all(np.isfinite(a)) and a.dtype == dtype for a in found)


def test_a_variational_method_keeps_the_energy():
    """Its steps are solved with the slope of the stop, and its energy does not drift."""
    system = dl.attach(slider(lower=0.0), dl.JointStop(1e5, exponent=1.5, smoothing=1e-3))
    method = dl.VariationalMidpoint()
    run = dl.simulate(system, [0.05], [0.0], dt=2e-4, steps=5000, method=method, save_every=10)
    assert run.result.ok
    energy = np.asarray(sum(run.energy(system)))
    assert np.min(run.q) < 0 and np.max(run.q[-250:]) > 0.049
    np.testing.assert_allclose(energy, energy[0], atol=2e-3 * 0.05 * 2 * 9.81)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dl.JointStop(1.0, "crss"), r"JointStop \('crss'\): no joint .*mean 'cross'"),
        (lambda: dl.JointStop(1.0, ["one", "none"]), "the joint 'none' has no limit; give it"),
        (lambda: dl.JointStop(1.0, "ball"), "the joint 'ball' has no limit"),
        (lambda: dl.JointStop(-1.0), r"JointStop \(all joints\): stiffness is -1.0"),
        (lambda: dl.JointStop(1.0, exponent=0.5), "exponent is 0.5; it must be 1 or more"),
        (
            lambda: dl.JointStop(1.0, dissipation=-0.5),
            "dissipation is -0.5 s/rad or s/m; it must",
        ),
        (lambda: dl.JointStop(1.0, smoothing=np.nan), "smoothing is nan; it must be finite"),
        (lambda: dl.JointStop([1.0, 2.0]), r"stiffness has shape \(2,\), needed is \(\)"),
        (lambda: dl.JointStop(1.0, [3]), "give their names"),
        (lambda: dl.JointStop(1.0, 3), "joints of a JointStop are 3; give their names"),
    ],
)
def test_what_is_refused(arm, make, message):
    with pytest.raises(dl.ModelError, match=message):
        dl.attach(arm, make())


def test_machines_without_limits_and_methods_without_stops():
    with pytest.raises(dl.ModelError, match="no joint has a limit"):
        dl.attach(slider(), dl.JointStop(1.0))
    system = dl.attach(slider(lower=0.0), dl.JointStop(1.0))
    with pytest.raises(ValueError, match=r"no mean force of JointStop \(all joints\); use another"):
        dl.simulate(system, [0.1], [0.0], steps=2, method=dl.EnergyMomentum())
