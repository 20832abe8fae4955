"""Forces defined outside the package, in a few lines each, with all that those of it have."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.groups.components import Matrix, Vector
from difflie.io.config import ConfigError, read_config
from difflie.io.couplings import coupled
from difflie.spatial import Force


class Drag(dl.PointCoupling):
    """Air on a body: -c |v| v at its centre of pressure."""

    needs = "one point"
    path: dl.Path = eqx.field(converter=dl.as_path)
    area: jax.Array = eqx.field(converter=dl.number(unit="m^2", positive=True))

    def forces(self, frames, velocities):
        speed = jnp.sqrt(velocities.square() + 1e-12)
        return velocities * (-0.6 * self.area * speed)


class Mount(dl.Conservative):
    """A bushing for small angles: a 6x6 stiffness in the axes of the first body."""

    needs = "two points"
    path: dl.Path = eqx.field(converter=dl.as_path)
    stiffness: jax.Array = eqx.field(converter=dl.number(shape=(6, 6), kind="semidefinite"))

    def energy(self, frames):
        (r, s), (x, y) = frames.rotation.to_array(), frames.translation.to_array()
        turn = Matrix.from_array(r.T @ s).axial().to_array() / 2
        e = jnp.concatenate((turn, r.T @ (y - x)))
        return e @ self.stiffness @ e / 2


class Torsion(dl.Coupling):
    """A torsional spring: k (1 - cos phi), phi from a direction of one body to that of another."""

    needs = "two points"
    path: dl.Path = eqx.field(converter=dl.as_path)
    pointer: jax.Array = eqx.field(converter=dl.number(shape=(3,), kind="direction"))
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N m/rad", nonnegative=True))

    def energy(self, frames):
        a, b = (frames.rotation @ Vector(*self.pointer)).to_array()
        return self.stiffness * jnp.sum((a - b) ** 2) / 2

    def wrenches(self, frames, twists):
        a = frames.rotation @ Vector(*self.pointer)
        b = jax.tree.map(lambda x: x[::-1], a)
        return Force(a.cross(b) * self.stiffness, jax.tree.map(jnp.zeros_like, a))


class Cogging(dl.JointForce):
    """The torque of a motor's slots."""

    joint: str = eqx.field(static=True)
    amplitude: jax.Array = eqx.field(converter=dl.number(unit="N m", nonnegative=True))
    slots: int = eqx.field(static=True, default=12)

    def effort(self, x, v):
        return self.amplitude * jnp.sin(self.slots * x)

    def potential(self, x):
        return self.amplitude * jnp.cos(self.slots * x) / self.slots


CENTRE = (0.0, 0.0, 0.0)
STIFF = np.diag((2.0, 3.0, 4.0, 40.0, 50.0, 60.0)) + 0.5


def machine():
    """A free hull with an arm, and all four forces on them."""
    inertia = np.diag((0.02, 0.03, 0.04))
    hinge = dl.Revolute(axis=(0.0, 1.0, 0.0), name="hinge")
    hull = dl.Body(name="hull", joint=dl.Free(name="base"), mass=2.0, inertia=inertia)
    arm = dl.Body(name="arm", joint=hinge, mass=1.0, com=(0, 0, -0.2), inertia=inertia)
    between = [("hull", (0.1, 0.0, 0.0)), ("arm", (0.0, 0.0, -0.1))]
    return dl.attach(
        dl.chain([hull, arm]),
        Drag([("hull", CENTRE)], 0.8),
        Mount(between, STIFF),
        Torsion(between, (0.0, 0.0, 1.0), 5.0),
        Cogging("hinge", 0.3),
    )


SYSTEM = machine()
Q = jnp.array([0.9, 0.1, -0.3, 0.2, 0.4, -0.2, 0.1, 0.5]).at[:4].divide(np.sqrt(0.95))
V = jnp.array([0.3, -0.2, 0.5, 1.0, -2.0, 0.5, 0.7])


@pytest.mark.slow
def test_they_act_and_their_force_is_minus_the_slope_of_the_energy():
    """Of the potentials; the drag is the formula, at the point of the body it is at."""
    drag, others = SYSTEM.couplings[0], SYSTEM.couplings[1:]
    bare = dl.chain(dl.system.builders.bodies_of(SYSTEM))
    stored = dl.attach(bare, *others)

    @jax.jit
    def found():
        still = jnp.zeros_like(V)
        slope = jax.grad(lambda s: dl.energy(stored, dl.integrate(stored, Q, s), still)[1])(still)
        weight = dl.gravity_force(stored, Q)
        return dl.passive_force(stored, Q, V), weight - slope, dl.passive_force(SYSTEM, Q, V)

    force, expected, whole = found()
    np.testing.assert_allclose(force, expected, atol=1e-12)
    velocity = V[3:6]
    air = -0.6 * drag.area * np.linalg.norm(velocity) * velocity
    np.testing.assert_allclose(whole - force, [0, 0, 0, *air, 0], atol=1e-9)


@pytest.mark.slow
def test_motions_with_them_differentiate_in_both_modes():
    """Along a change of every number of the machine, against central differences."""
    change = jax.tree.map(lambda a: 0.1 * jnp.cos(jnp.arange(a.size)).reshape(a.shape) * a, SYSTEM)
    change = eqx.tree_at(lambda s: s.joints, change, jax.tree.map(jnp.zeros_like, change.joints))

    def height(e):
        system = jax.tree.map(lambda a, d: a + e * d, SYSTEM, change)
        run = dl.simulate(system, Q, V, dt=5e-3, steps=10, save_every=10)
        return run.q[-1, 6] + run.q[-1, 7]

    ahead, back = jax.jvp(height, (0.0,), (1.0,))[1], jax.grad(height)(0.0)
    np.testing.assert_allclose(ahead, back, rtol=1e-11)
    h = 1e-4
    np.testing.assert_allclose(back, (height(h) - height(-h)) / (2 * h), rtol=1e-6)


def test_their_numbers_are_parameters_with_units():
    """As they declare: positive ones stay so, and the matrix stays a stiffness."""
    free = dl.Parameters(SYSTEM, ["couplings/0/area", "couplings/1/stiffness", "hinge/amplitude"])
    assert free.names[:2] == ("couplings/0/area", "couplings/1/stiffness[0, 0]")
    assert free.names[-1] == "hinge/amplitude" and (free.units[0], free.units[-1]) == ("m^2", "N m")
    far = free.system_at(free.start - 0.5)
    assert far.couplings[0].area > 0 and far.couplings[3].amplitude > 0
    assert np.linalg.eigvalsh(far.couplings[1].stiffness).min() > 0
    np.testing.assert_allclose(free.x_of(far), free.start - 0.5, atol=1e-9)
    rough = free.with_values(free.values(free.start))
    np.testing.assert_allclose(rough.couplings[1].stiffness, STIFF, rtol=1e-12)
    with pytest.raises(ValueError, match="Definite"):
        dl.Parameters(SYSTEM, [dl.Parameter("couplings/1/stiffness", dl.parameters.Identity())])


def test_the_amplitude_is_found_from_torques():
    t = 0.01 * np.arange(200)
    arm = dl.chain([dl.Body(name="arm", joint=dl.Revolute(name="hinge"), inertia=np.eye(3))])
    q, v, a = np.sin(2 * t), 2 * np.cos(2 * t), -4 * np.sin(2 * t)
    columns = (x[:, None] for x in (q, v, a, a - 0.3 * np.sin(12 * q)))
    system = dl.attach(arm, Cogging("hinge", 0.1))
    problem = di.InverseDynamics.of(system, [di.Recording("sine", t, *columns)])
    found = di.fit(dl.Parameters(system, ["hinge/amplitude"]), problem)
    np.testing.assert_allclose(found.values, 0.3, rtol=1e-9)


FILE = """[system]
file = "package:arm7"
[[coupling]]
type = "test_forces_of_ones_own:Drag"
path = [{body = "link7", point = [0, 0, 0.1]}]
area = 0.3
[[coupling]]
type = "test_forces_of_ones_own:Cogging"
joint = "joint2"
amplitude = 0.1
slots = 7
"""


def test_a_file_names_them(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(FILE)
    read = read_config(path, allow_code=True)
    drag, cogging = coupled(dl.load("difflie/data/arm7.urdf"), read.couplings, path).couplings
    assert isinstance(drag, Drag) and drag.path.bodies == ("link7",) and drag.area == 0.3
    assert isinstance(cogging, Cogging) and (cogging.joint, cogging.slots) == ("joint2", 7)
    for wrong, words in (
        (FILE.replace("0.3", "-0.3"), r"coupling\[0\].area is -0.3 m\^2; it must be positive"),
        (FILE.replace("joint2", "joint9"), r"coupling\[1\]: .*'joint9'; did you mean"),
    ):
        path.write_text(wrong)
        with pytest.raises(ConfigError, match=words):
            coupled(
                dl.load("difflie/data/arm7.urdf"),
                read_config(path, allow_code=True).couplings,
                path,
            )


class Flat(Drag):
    def forces(self, frames, velocities):
        return velocities.x


class Endless(Cogging):
    def potential(self, x):
        return jnp.stack((x, x))


class Loose(Cogging):
    joint: str  # not static


class Table(Cogging):
    """With constants in float64, and a plain number for the potential."""

    def effort(self, x, v):
        return jnp.interp(x, np.linspace(-1, 1, 3), np.ones(3))

    def potential(self, x):
        return 1.0


class Heavy(Drag):
    def forces(self, frames, velocities):
        return velocities * jnp.float64(3)


def test_forces_arrive_in_the_precision_of_the_state():
    """Whatever the class computes with."""
    bare = dl.chain(dl.system.builders.bodies_of(SYSTEM)).astype(jnp.float32)
    system = dl.attach(bare, Table("hinge", 1.0), Heavy([("hull", CENTRE)], 1.0))
    given = (jax.ShapeDtypeStruct(a.shape, jnp.float32) for a in (Q, V))
    found = jax.eval_shape(
        lambda q, v: (dl.passive_force(system, q, v), dl.energy(system, q, v)), *given
    )
    assert {a.dtype for a in jax.tree.leaves(found)} == {jnp.dtype("float32")}


@pytest.mark.parametrize(
    ("force", "words"),
    [
        (Loose("hinge", 1.0), r"joint holds 'hinge', which is no number; .*static=True"),
        (
            Flat([("hull", CENTRE)], 1.0),
            r"its law returns .* Vector, with components of shape \(1,",
        ),
        (Endless("hinge", 1.0), "its potential is .*; let potential return one number"),
        (Cogging("base", 1.0), "several degrees of freedom"),
        (Cogging("hinge", [1.0, 2.0]), r"amplitude has shape \(2,\), needed is \(\)"),
        (
            Mount([(None, CENTRE), ("arm", CENTRE)], np.eye(6, k=1)),
            "is not symmetric; give the half",
        ),
        (
            Mount([(None, CENTRE), ("arm", CENTRE)], -np.eye(6)),
            "eigenvalue -1; none may be negative",
        ),
    ],
)
def test_classes_and_numbers_that_cannot_be_are_named(force, words):
    bare = dl.chain(dl.system.builders.bodies_of(SYSTEM))
    with pytest.raises(dl.ModelError, match=words):
        dl.attach(bare, force)


def test_declarations_that_cannot_be_are_named():
    with pytest.raises(ValueError, match="unit is 3; give a string"):
        dl.number(unit=3)
    with pytest.raises(ValueError, match="shape is 3; give whole numbers in a tuple"):
        dl.number(shape=3)
    with pytest.raises(ValueError, match="kind is 'turn'; it must be one of 'plain', 'rotation'"):
        dl.number(kind="turn")
