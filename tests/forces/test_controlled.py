"""Controllers, motors, orientations and springs that yield: single precision, and slopes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.forces.actuators.acting import generalised, torques
from difflie.forces.internal_states import state_rates
from difflie.system.internal_states import with_states
from difflie.system.kinematic_tree import Tree


def machine(turning=True):
    """A hinge, a slide and a ball in a row, with an actuator or a spring of each kind.

    turning: whether the ball is there.
    """
    box = {"mass": 1.0, "inertia": 0.1 * np.eye(3), "com": (0.1, 0.2, 0.0)}
    bodies = [
        dl.Body(name="a", joint=dl.Revolute(name="h", axis=(0, 1, 0)), **box),
        dl.Body(name="b", joint=dl.Prismatic(name="s", axis=(1, 0, 0)), **box),
        dl.Body(name="c", joint=dl.Spherical(name="ball"), **box),
    ]
    chain = dl.chain(bodies if turning else bodies[:2])
    servo = dl.PIDServo(
        "s",
        name="pid",
        further=(("velocity", "pid/velocity"), ("effort", "pid/effort")),
        **{"kp": 3.0, "kd": 0.5, "ki": 2.0, "integral_limit": 0.5, "integral_lead": 0.01},
        **{"slew_rate": 3.0, "slew_lag": 0.02, "command_range": (-1, 1), "force_range": (-9, 9)},
    )
    motor = dl.DCMotor(
        "h",
        name="motor",
        takes="position",
        further=(("voltage", "motor/voltage"),),
        **{"torque_constant": 0.5, "resistance": 2.0, "max_voltage": 30.0, "kp": 3.0, "kd": 0.5},
        **{"electric_lag": 0.05, "current_rate": 80.0, "thermal": (3.0, 4.0, 0.01, 5.0)},
        **{"bristle": (20.0, 0.3, 0.2, 0.3, 0.5), "cogging": (0.2, 6.0, 0.3)},
    )
    axes = [f"o/{axis}" for axis in "xyz"]
    ball = [
        dl.OrientationServo(
            transmission=dl.JointTransmission("ball", np.eye(3)[i]),
            name=axes[i],
            index=i,
            others=[name for name in axes if name != axes[i]],
            **{"kp": 2.0, "kd": 0.3, "max_torque": 5.0},
        )
        for i in range(3)
    ]
    ball.append(
        dl.YieldingRotation([("b", (0, 0, 0)), ("c", (0, 0, 0))], (9.0, 2.0, 1.0), 0.3, name="r")
    )
    extra = [
        dl.ExtraCommand("s", name="pid/velocity"),
        dl.ExtraCommand("s", name="pid/effort"),
        dl.ExtraCommand("h", name="motor/voltage"),
    ]
    springs = [
        dl.YieldingSpring("s", (40.0, 9.0, 3.0), 0.2, z0=[0.1]),
        dl.YieldingSpring("h", (40.0, 9.0, 3.0), 0.2, z0=[-0.4]),
    ]
    return dl.attach(chain, servo, motor, *(ball if turning else ()), *extra, *springs)


def program(system):
    """The laws of commands, velocities, states and numbers (n,) with derivatives, and these."""
    held = system.actuators, system.couplings
    leaves, structure = jax.tree.flatten(held)
    shapes = [jnp.shape(leaf) for leaf in leaves]
    sizes = [system.nu, system.nv, system.nz, *(int(np.prod(shape)) for shape in shapes)]
    ends = np.cumsum(sizes)[:-1]

    def laws(x, q):
        u, v, z, *numbers = jnp.split(x, ends)
        numbers = [jnp.reshape(n, shape) for n, shape in zip(numbers, shapes, strict=True)]
        actuators, couplings = jax.tree.unflatten(structure, numbers)
        at = with_states(
            dataclasses.replace(system.astype(x.dtype), actuators=actuators, couplings=couplings),
            z,
        )
        tree = Tree.of(at)
        force = generalised(tree, torques(tree, u, q, v), q, v) + dl.passive_force(at, q, v)
        return jnp.concatenate([force, state_rates(tree, u, q, v)])

    def slopes(x, q, way, back):
        value, ahead = jax.jvp(lambda x: laws(x, q), (x,), (way,))
        return value, ahead, jax.vjp(lambda x: laws(x, q), x)[1](back)[0]

    u = 0.3 + 0.1 * np.arange(system.nu)
    v = np.array([0.4, 0.5, -0.3, 0.2, 0.6])
    z = np.asarray(dl.system.internal_states.states_of(system))
    z = z + 0.05 * np.arange(1, len(z) + 1) * (z == 0)
    x = np.concatenate([u, v, z, *map(np.ravel, leaves)])
    return jax.jit(slopes), x


@pytest.fixture(scope="module")
def compared():
    """In double and in single precision: values, and derivatives in both modes; and differences."""
    system = machine()
    slopes, x = program(system)
    rng = np.random.default_rng(0)
    q = np.asarray(system.manifold.retract(system.neutral(), jnp.array([0.3, 0.5, 0.2, 0.4, -0.3])))
    n = system.nv + system.nz
    way, back = rng.normal(size=len(x)), rng.normal(size=n)
    found = [
        slopes(*(jnp.asarray(a, dtype) for a in (x, q, way, back)))
        for dtype in (jnp.float64, jnp.float32)
    ]
    h = 1e-6
    ends = [slopes(x + s * h * way, q, way, back)[0] for s in (1, -1)]
    return found, (ends[0] - ends[1]) / (2 * h), way, back


@pytest.mark.slow
def test_derivatives(compared):
    """Forward mode as differences, and reverse mode as forward mode."""
    ((_, ahead, reverse), _), differences, way, back = compared
    np.testing.assert_allclose(ahead, differences, rtol=1e-6, atol=1e-6)
    assert float(back @ ahead) == pytest.approx(float(reverse @ way), rel=1e-10)


def test_single_precision(compared):
    """Values and derivatives in single precision are those in double to its rounding."""
    (double, single), *_ = compared
    for wide, narrow in zip(double, single, strict=True):
        assert narrow.dtype == jnp.float32
        scale = np.max(np.abs(wide))
        np.testing.assert_allclose(narrow, wide, rtol=2e-5, atol=2e-6 * scale)


@pytest.mark.slow
def test_motion_in_single_precision():
    """Keeps its precision and its states move; without the ball."""
    system = machine(turning=False).astype(jnp.float32)
    q, v = system.neutral(), jnp.array([1.0, 2.0], jnp.float32)
    u = jnp.full(system.nu, 0.2, jnp.float32)
    run = dl.simulate(system, q, v, control=u, dt=1e-2, steps=20, method=dl.RKMK2())
    assert run.q.dtype == run.z.dtype == jnp.float32 and run.result.ok
    moved = np.abs(np.asarray(run.z[-1] - run.z[0]))
    labels = [name for name, _ in system.state_labels]
    wanted = "s/rest", "motor/current", "motor/bristle", "pid/integral"
    assert all(moved[labels.index(name)] > 1e-3 for name in wanted)
