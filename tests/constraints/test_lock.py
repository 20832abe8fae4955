"""Locked joints: the same machine without some of its degrees of freedom."""

from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.groups import Euclidean

ARM7 = Path(dl.__file__).parent / "data" / "arm7.urdf"
RNG = np.random.default_rng(0)
HELD = {"slide": 0.3, "screw": -0.7, "swing": 2.0}


def body(name, parent, joint):
    inertia = np.diag(RNG.uniform(0.8, 1.2, 3))
    place = {"position": RNG.normal(size=3), "rotation": RNG.normal(size=3)}
    com = RNG.normal(size=3)
    return dl.Body(
        name=name, parent=parent, joint=joint, mass=2.0, com=com, inertia=inertia, **place
    )


def machine():
    """A tree with joints of all types that can be locked, and one that follows another."""
    axis = (0.3, -2.0, 0.7)
    follows = dl.Mimic("slide", 2.0, 0.1)
    return dl.tree(
        [
            body("a", None, dl.Revolute(name="first", axis=axis, damping=0.3)),
            body("b", "a", dl.Prismatic(name="slide", axis=axis, armature=0.2)),
            body("c", "b", dl.Spherical(name="ball")),
            body("d", "c", dl.Helical(name="screw", axis=axis, pitch=0.4, stiffness=3.0)),
            body("e", "a", dl.Prismatic(name="finger", axis=axis, mimic=follows)),
            body("f", "e", dl.Revolute(name="swing", axis=axis, lower=-3.0, upper=3.0)),
            body("g", "d", dl.Revolute(name="last", axis=axis, friction=0.1)),
        ]
    )


SYSTEM = machine()


@pytest.mark.slow
def test_the_other_joints_move_as_before():
    """Against the whole machine, at the coordinates of the lock and at rest there."""
    locked = dl.lock(SYSTEM, HELD)
    assert locked.joint_names == ("first", "ball", "last") and locked.body_names == tuple("abcdefg")
    t = SYSTEM.topology
    q = SYSTEM.manifold.retract(SYSTEM.neutral(), jnp.asarray(RNG.normal(size=SYSTEM.nv)))
    for name, x in HELD.items():
        q = q.at[t.coordinate_start[t.joints.index(name)]].set(x)
    names = [name for name, _ in t.velocity_labels]
    free = np.array([name not in HELD for name in names])
    points = np.concatenate(
        [
            np.arange(*t.coordinate_start[b : b + 2])
            for b in t.coordinate_joints
            if t.joints[b] not in HELD
        ]
    )
    v, a = (jnp.asarray(RNG.normal(size=SYSTEM.nv) * free) for _ in range(2))
    args = q[points], v[free], a[free]
    close = {"rtol": 1e-12, "atol": 1e-12}
    wanted = dl.inverse_dynamics(SYSTEM, q, v, a)[free]
    np.testing.assert_allclose(dl.inverse_dynamics(locked, *args), wanted, **close)
    whole = dl.mass_matrix(SYSTEM, q)[np.ix_(free, free)]
    np.testing.assert_allclose(dl.mass_matrix(locked, args[0]), whole, **close)
    poses = dl.body_poses(SYSTEM, q)
    np.testing.assert_allclose(dl.body_poses(locked, args[0]), poses, **close)


@pytest.mark.slow
def test_arms_are_the_reduced_models_of_pinocchio():
    """Torques, mass matrix, and derivatives by the coordinates that are left."""
    pin = pytest.importorskip("pinocchio")
    held = {"joint2": -0.6, "joint5": 0.4, "joint7": 1.1}
    system = dl.load(ARM7)
    system = dl.lock(system.replace(armature=0 * system.joints.armature), held)
    model = pin.buildModelFromUrdf(str(ARM7))
    reference = pin.neutral(model)
    for name, x in held.items():
        reference[model.joints[model.getJointId(name)].idx_q] = x
    reduced = pin.buildReducedModel(model, [model.getJointId(n) for n in held], reference)
    assert system.joint_names[-reduced.nv :] == tuple(reduced.names)[1:]
    data, close = reduced.createData(), {"rtol": 1e-12, "atol": 1e-12}
    q, v, a = RNG.normal(size=(3, 4))
    wanted = pin.rnea(reduced, data, q, v, a)
    np.testing.assert_allclose(dl.inverse_dynamics(system, q, v, a), wanted, **close)
    np.testing.assert_allclose(dl.mass_matrix(system, q), pin.crba(reduced, data, q), **close)
    slopes = jax.jacfwd(dl.inverse_dynamics, (1, 2, 3))(system, q, v, a)
    theirs = pin.computeRNEADerivatives(reduced, data, q, v, a)
    for found, wanted in zip(slopes[:2], theirs[:2], strict=True):
        np.testing.assert_allclose(found, wanted, **close)
    np.testing.assert_allclose(np.triu(slopes[2]), np.triu(theirs[2]), **close)


@pytest.mark.slow
def test_derivatives_by_the_numbers_of_the_whole_machine():
    """Reverse mode through the lock, by masses and places of all bodies, held ones included."""
    t, n = SYSTEM.topology, SYSTEM.nv
    names = [name for name, _ in t.velocity_labels]
    free = np.array([name not in HELD for name in names])
    q = np.asarray(SYSTEM.neutral()).copy()
    for name, x in HELD.items():
        q[t.coordinate_start[t.joints.index(name)]] = x
    v, a = RNG.normal(size=(2, n)) * free
    weights = RNG.normal(size=free.sum())

    def locked(mass, position):
        system = dl.lock(SYSTEM.replace(mass=mass, position=position), HELD)
        return weights @ dl.inverse_dynamics(system, system.neutral(), v[free], a[free])

    def whole(mass, position):
        system = SYSTEM.replace(mass=mass, position=position)
        return weights @ dl.inverse_dynamics(system, q, v, a)[free]

    at = SYSTEM.bodies.mass, SYSTEM.joints.position
    found, wanted = (jax.grad(f, (0, 1))(*at) for f in (locked, whole))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
def test_derivatives_by_a_locked_coordinate():
    """The torque of gravity as a function of where a joint is held, against differences."""
    arm = dl.chain([body(n, None, dl.Revolute(name=n)) for n in ("turn", "screw")])

    def torque(x):
        return dl.gravity_force(dl.lock(arm, {"screw": x}), jnp.asarray([0.4]))[0]

    h = 1e-6
    wanted = (torque(0.3 + h) - torque(0.3 - h)) / (2 * h)
    np.testing.assert_allclose(jax.grad(torque)(0.3), wanted, rtol=1e-7)


@dataclass(frozen=True, kw_only=True)
class Wheel(dl.Joint):
    """It rolls along x."""

    radius: float = eqx.field(default=0.1, converter=dl.number(unit="m", positive=True))

    @property
    def manifold(self):
        return Euclidean(1)

    def transform(self, q):
        place = jnp.array((self.radius * q[0], 0.0, 0.0))
        turn = dl.so3.exp(q * jnp.array((0.0, 1.0, 0.0)))
        return jnp.eye(4).at[:3, :3].set(turn).at[:3, 3].set(place)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["front", "rear"])
def test_user_defined_joints_in_frozen_systems(name):
    """Their own numbers are stacked by type: those of the others must stay with them."""
    wheels = [body(n, None, Wheel(name=n, radius=r)) for n, r in (("front", 0.2), ("rear", 0.5))]
    system = dl.tree(wheels)
    locked = dl.lock(system.frozen(), {name: 0.8})
    assert not jax.tree.leaves(locked)
    q = jnp.array([1.1, 1.1]).at[("front", "rear").index(name)].set(0.8)
    wanted = dl.body_poses(system, q)
    np.testing.assert_allclose(dl.body_poses(locked, jnp.array([1.1])), wanted, atol=1e-14)


def test_what_stands_elsewhere_is_kept():
    """Springs between bodies, and forces, actuators and encoders at other joints."""
    parts = [
        dl.Spring([("b", (0.1, 0.0, 0.0)), ("g", (0.0, 0.2, 0.0))], 20.0, 0.3),
        dl.Stribeck("last", 0.1, 0.7),
        dl.Drive("last"),
    ]
    attached = dl.attach(SYSTEM, *parts)
    locked = dl.lock(attached, HELD)
    assert locked.actuator_names == ("last",) and len(locked.couplings) == 2
    q = locked.neutral()
    assert np.all(np.isfinite(dl.bias_force(locked, q, np.ones(locked.nv))))


def gripper(*constraints):
    fingers = [
        body(n, None, dl.Prismatic(name=n, lower=0.0, upper=0.04)) for n in ("left", "right")
    ]
    return dl.constrain(dl.tree([*fingers, body("arm", None, dl.Revolute())]), *constraints)


def test_constraints_between_locked_joints_hold_by_themselves():
    equal = dl.constraints.Polynomial("right", [0.0, 1.0], "left")
    stop = dl.constraints.HardStop("left", upper=0.04)
    system = gripper(equal, stop)
    assert dl.lock(system, {"left": 0.02, "right": 0.02}).constraints == ()
    with pytest.raises(ValueError, match="ties 'right' to a locked joint; lock 'right' too"):
        dl.lock(system, {"left": 0.02})
    with pytest.raises(ValueError, match=r"violated by 0\.01 at the locked coordinates"):
        dl.lock(system, {"left": 0.02, "right": 0.03})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"slid": 0.1}, "no joint is named 'slid'; did you mean 'slide'?"),
        ({"finger": 0.1}, "the joint 'finger' follows 'slide'; lock that one"),
        ({"ball": 0.1}, "the joint 'ball' has no single coordinate"),
        ({"slide": "open"}, "the coordinate of 'slide' is 'open'; give one number"),
        ({"slide": np.nan}, "the coordinate of 'slide' is nan; it must be finite"),
    ],
)
def test_one_sentence_for_what_cannot_be_locked(given, message):
    with pytest.raises(ValueError, match=message.replace("?", "\\?")):
        dl.lock(SYSTEM, given)


def test_names_of_bodies_and_names_alone_are_answered():
    """Guards that the two usual slips are told what to give instead."""
    hinge = dl.Revolute(name="hinge")
    arm = dl.chain([dl.Body(name="rod", joint=hinge, mass=1.0, com=(0.5, 0.0, 0.0))])
    with pytest.raises(ValueError, match=r"no joint is named 'rod'; .* is on 'hinge'"):
        dl.lock(arm, {"rod": 0.1})
    with pytest.raises(TypeError, match="coordinate"):  # of jaxtyping, where it checks
        dl.lock(arm, ["hinge"])
    with pytest.raises(ValueError, match=r"no body is named 'hinge'; .* moves 'rod'"):
        dl.body_jacobian(arm, [0.1], "hinge")


def test_what_stands_at_a_locked_joint_is_named():
    system = dl.attach(SYSTEM, dl.Drive("swing"))
    with pytest.raises(ValueError, match=r"Drive \('swing'\) stands at the joint 'swing'"):
        dl.lock(system, {"swing": 0.0})
    with pytest.raises(ValueError, match="the joint 'swing' is fixed; leave it out"):
        dl.lock(dl.lock(SYSTEM, {"swing": 0.0}), {"swing": 0.0})


@pytest.mark.slow
def test_degrees_are_noticed():
    with pytest.warns(
        UserWarning, match="'swing' is locked at 90 rad, outside its limits -3 and 3"
    ):
        dl.lock(SYSTEM, {"swing": 90})
