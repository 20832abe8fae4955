"""Bushings, torsional springs and stops of rotations, against formulas and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import difflie as dl
from difflie.groups.components import Matrix, Vector
from difflie.spatial import Motion, Transform

RNG = np.random.default_rng(3)
PATH = [("a", (0.0, 0.0, 0.0)), ("b", (0.0, 0.0, 0.0))]
STIFFNESS, DAMPING = (x @ x.T for x in RNG.normal(size=(2, 6, 6)))
TURNS = np.array((0.2, -0.4, 0.1)), np.array((0.5, 0.3, -1.0))
BUSHING = dl.Bushing(
    PATH, STIFFNESS, damping=DAMPING, first_rotation=TURNS[0], second_rotation=TURNS[1]
)
PLAIN = dl.Bushing(PATH, STIFFNESS)
AXIS = np.array((1.0, -2.0, 0.5))
TORSION = dl.TorsionalSpring(PATH, AXIS, 3.0, rest_angle=0.7, damping=0.4)


def moved(step, rotation, x):
    """Frames (2,) at attitudes (2, 3, 3) and places (2, 3), moved by steps (2, 6) in the world."""
    turned = jax.vmap(lambda w, r: dl.so3.exp(w) @ r)(step[:, :3], rotation)
    return Transform(Matrix.from_array(turned), Vector.from_array(x + step[:, 3:]))


@jax.jit
def found(coupling, rotation, x, twists):
    """Energy, its slope by the steps, the wrenches, and their derivatives in both modes."""
    still = jnp.zeros_like(twists)

    def wrenches(step, twists):
        frames = moved(step, rotation, x)
        return coupling.wrenches(frames, Motion.from_array(twists)).to_array()

    energy, slope = jax.value_and_grad(lambda s: coupling.energy(moved(s, rotation, x)))(still)
    ahead, back = (f(wrenches)(still, still) for f in (jax.jacfwd, jax.jacrev))
    return energy, slope, wrenches(still, still), wrenches(still, twists), ahead, back


def frames(*angles):
    """Attitudes of two bodies, the second turned about the axis in the first by each angle."""
    first = Rotation.from_rotvec(RNG.normal(size=3))
    turns = np.multiply.outer(angles, AXIS / np.linalg.norm(AXIS))
    pairs = ((first, first * Rotation.from_rotvec(turn)) for turn in turns)
    return [np.stack([r.as_matrix() for r in pair]) for pair in pairs]


ANY = Rotation.from_rotvec(RNG.normal(size=(2, 3))).as_matrix()
X, TWISTS = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 6))


def displacement(turns, rotation, x):
    """(theta, p) of the second frame in the first, by SciPy."""
    a, b = (r @ Rotation.from_rotvec(w).as_matrix() for r, w in zip(rotation, turns, strict=True))
    return np.concatenate((Rotation.from_matrix(a.T @ b).as_rotvec(), a.T @ (x[1] - x[0])))


def balanced(wrenches, x):
    """Both bodies feel opposite forces at one place."""
    moments, forces = wrenches[:, :3], wrenches[:, 3:]
    total = (moments + np.cross(x, forces)).sum(axis=0)
    np.testing.assert_allclose(np.concatenate((forces.sum(axis=0), total)), 0, atol=1e-12)


@pytest.mark.slow
def test_a_bushing_is_elastic_by_its_displacement_and_damped_by_the_rate_of_it():
    energy, slope, wrenches, damped, ahead, back = found(BUSHING, ANY, X, TWISTS)
    e = displacement(TURNS, ANY, X)
    np.testing.assert_allclose(energy, e @ STIFFNESS @ e / 2, rtol=1e-13)
    np.testing.assert_allclose(wrenches, -slope, atol=1e-12)
    np.testing.assert_allclose(ahead, back, atol=1e-11)
    # The rates of the displacement's places, and the turning in the axes of the first frame.
    first = ANY[0] @ Rotation.from_rotvec(TURNS[0]).as_matrix()
    (w1, w2), (v1, v2) = TWISTS[:, :3], TWISTS[:, 3:]
    rate = np.concatenate((first.T @ (w2 - w1), first.T @ (v2 - v1 - np.cross(w1, X[1] - X[0]))))
    assert np.sum((damped - wrenches) * TWISTS) == pytest.approx(-rate @ DAMPING @ rate, rel=1e-12)
    for each in (wrenches, damped):
        balanced(np.asarray(each), X)


@pytest.mark.slow("float32")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_bushing_at_coincident_frames_is_its_stiffness(dtype):
    """Nothing is singular there, and the slope of the wrench on the second body is -K."""
    given = jax.tree.map(lambda a: a.astype(dtype), PLAIN)
    zero = np.zeros((2, 6), dtype)
    here = np.stack(2 * [np.eye(3)]).astype(dtype), np.zeros((2, 3), dtype)
    energy, slope, wrenches, _, ahead, back = found(given, *here, zero)
    assert wrenches.dtype == dtype and energy == 0
    np.testing.assert_array_equal((slope, wrenches), 0)
    tolerance = 1e-13 if dtype == "float64" else 1e-5
    for derivative in (ahead, back):
        np.testing.assert_allclose(derivative[1, :, 1], -STIFFNESS, atol=tolerance)


def test_a_bushing_turned_by_pi():
    """The moment is that of one side, and so are derivatives; a hair before it is exact."""
    for angle, rotation in zip((np.pi - 1e-6, np.pi), frames(np.pi - 1e-6, np.pi), strict=True):
        energy, slope, wrenches, _, ahead, back = found(PLAIN, rotation, X, TWISTS)
        e = displacement(np.zeros((2, 3)), rotation, X)
        either = [(s * e) @ STIFFNESS @ (s * e) / 2 for s in (1, np.repeat((-1, 1), 3))]
        off = np.abs(np.array(either[: 1 + (angle == np.pi)]) - energy).min()
        assert off < 1e-8 and np.isfinite(ahead).all()
        np.testing.assert_allclose(wrenches, -slope, atol=1e-9)
        np.testing.assert_allclose(ahead, back, atol=1e-7)


@pytest.mark.slow("0.0")
@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.7, 2.0, -2.0, -2.6, 3.0, np.pi + 0.5])
def test_a_torsional_spring_about_its_axis(angle):
    """The moment k (phi - phi_0) along the axis, counted the short way round from rest."""
    (rotation,) = frames(angle)
    energy, slope, wrenches, damped, ahead, back = found(TORSION, rotation, X, TWISTS)
    off = (angle - 0.7 + np.pi) % (2 * np.pi) - np.pi
    n = rotation[0] @ AXIS / np.linalg.norm(AXIS)
    assert float(energy) == pytest.approx(1.5 * off**2, rel=1e-9, abs=1e-15)
    np.testing.assert_allclose(wrenches[1], [*(-3.0 * off * n), 0, 0, 0], atol=1e-7)
    np.testing.assert_allclose(wrenches, -slope, atol=1e-12)
    along, rate = np.append(n, np.zeros(3)), n @ (TWISTS[1] - TWISTS[0])[:3]
    np.testing.assert_allclose(damped[1], wrenches[1] - 0.4 * rate * along, atol=1e-7)
    np.testing.assert_allclose(ahead, back, atol=1e-12)


def test_a_torsional_spring_of_bodies_turned_in_any_way():
    """The twist of swing and twist; none, and nothing singular, where the axis has turned over."""
    energy, slope, wrenches, damped, ahead, back = found(TORSION, ANY, X, TWISTS)
    x, y, z, c = Rotation.from_matrix(ANY[0].T @ ANY[1]).as_quat()
    twist = 2 * np.arctan2(np.dot((x, y, z), AXIS) / np.linalg.norm(AXIS), c) - 0.7
    assert float(energy) == pytest.approx(1.5 * ((twist + np.pi) % (2 * np.pi) - np.pi) ** 2)
    np.testing.assert_allclose(wrenches, -slope, atol=1e-12)
    np.testing.assert_allclose(ahead, back, atol=1e-12)
    assert np.sum((damped - wrenches) * TWISTS) < 0
    upright = dl.TorsionalSpring(PATH, (0, 0, 2.0), 3.0, damping=1.0)
    over = np.stack((np.eye(3), np.diag((1.0, -1.0, -1.0))))
    for value in found(upright, over, X, TWISTS):
        assert np.isfinite(value).all()


def test_a_spring_with_a_damper_is_both():
    """Their forces, also as means over a step, and the energy of the spring."""
    both = dl.SpringDamper(PATH, 20.0, 0.4, 3.0)
    parts = dl.Spring(PATH, 20.0, 0.4), dl.Damper(PATH, 3.0)
    at = moved(jnp.zeros((2, 6)), ANY, X)
    rates = Vector.from_array(jnp.asarray(TWISTS[:, 3:]))
    start, end = (Vector.from_array(jnp.asarray(X + s * TWISTS[:, 3:])) for s in (-0.1, 0.1))
    for name, given in (("forces", (at, rates)), ("mean_forces", (start, end, at, rates))):
        a, b = (getattr(part, name)(*given).to_array() for part in parts)
        np.testing.assert_allclose(getattr(both, name)(*given).to_array(), a + b, rtol=1e-14)
    assert both.energy(at) == parts[0].energy(at)


@pytest.mark.slow
def test_a_machine_on_a_bushing_keeps_its_energy_until_it_is_damped():
    """And its stiffness matrix at rest is K, as the frames coincide."""
    block = dl.Body(name="block", joint=dl.Free(), mass=2.0, inertia=np.diag((0.1, 0.2, 0.3)))
    bare = dl.chain([block], gravity=(0.0, 0.0, 0.0))
    stiffness = np.diag((5.0, 6.0, 7.0, 200.0, 300.0, 400.0)) + 0.5
    path = [(None, (0.0, 0.0, 0.0)), ("block", (0.0, 0.0, 0.0))]
    free = dl.attach(bare, dl.Bushing(path, stiffness))
    still = free.neutral()
    np.testing.assert_allclose(dl.stiffness_matrix(free, still), stiffness, atol=1e-12)
    v = np.array((1.0, -2.0, 0.5, 0.3, 0.2, 0.1))
    damped = dl.attach(bare, dl.Bushing(path, stiffness, damping=0.1 * np.eye(6)))
    for system, low, high in ((free, -1e-6, 1e-6), (damped, -2.0, -1e-2)):
        run = dl.simulate(system, still, v, dt=1e-3, steps=300, save_every=100)
        total = sum(run.energy(system))
        assert low < float(total[-1] - total[0]) < high


@pytest.mark.slow("0.0", "1e-09")
@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.7, 1.3, 3.0])
def test_a_stop_of_rotation_and_springs_of_higher_order(angle):
    """Moments along the rotation; nothing is singular without one, in single precision as well."""
    (rotation,) = frames(angle)
    n = rotation[0] @ AXIS / np.linalg.norm(AXIS)
    stop = dl.RotationStop(PATH, 3.0, 0.5, dissipation=0.2)
    terms = np.array([[0.4, 0.7], [0.3, 0.9]])
    spring = dl.Bushing(PATH, np.zeros((6, 6)), higher_stiffness=terms)
    rate = n @ (TWISTS[1] - TWISTS[0])[:3]
    depth, gap = max(angle - 0.5, 0), X[1] - X[0]
    far = np.linalg.norm(gap)
    pushed = -(0.3 * far + 0.9 * far**2) * gap
    moments = -3.0 * depth * n, -(0.4 * angle**2 + 0.7 * angle**3) * n
    energies = (
        1.5 * depth**2,
        0.4 * angle**3 / 3 + 0.7 * angle**4 / 4 + 0.1 * far**3 + 0.225 * far**4,
    )
    for part, moment, force, stored in zip(
        (stop, spring), moments, (np.zeros(3), pushed), energies, strict=True
    ):
        energy, slope, wrenches, damped, ahead, back = found(part, rotation, X, TWISTS)
        assert float(energy) == pytest.approx(stored, rel=1e-9, abs=1e-15)
        np.testing.assert_allclose(wrenches[1], [*moment, *force], atol=1e-7)
        np.testing.assert_allclose(wrenches, -slope, atol=1e-9)
        np.testing.assert_allclose(ahead, back, atol=1e-11)
        balanced(np.asarray(damped), X)
        short = jax.tree.map(lambda a: jnp.asarray(a, "float32"), (part, rotation, X, TWISTS))
        assert all(np.all(np.isfinite(value)) for value in found(*short))
        if part is stop:
            share = max(1 + 0.2 * rate, 0)
            np.testing.assert_allclose(damped[1, :3], share * moment, atol=1e-7)
