"""Systems built by code: the order of bodies, and one clear error for every mistake."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.system.validation import as_array

BOX = {"mass": 1.0, "inertia": np.diag([0.1, 0.2, 0.25])}


def body(name, **options):
    return dl.Body(name=name, **{**BOX, "joint": dl.Revolute(), **options})


def test_bodies_keep_their_order_with_parents_first():
    bodies = [
        body("hand", parent="arm"),
        body("foot", parent="leg"),
        body("trunk"),
        body("leg", parent="trunk"),
        body("arm", parent="trunk"),
    ]
    assert dl.tree(bodies).body_names == ("trunk", "leg", "foot", "arm", "hand")


def test_chain_sizes_and_neutral():
    system = dl.chain(
        [
            body("a", joint=dl.Free(name="base")),
            body("b", joint=dl.Fixed()),
            body("c", joint=dl.Universal()),
            body("d", joint=dl.Spherical()),
            body("e", joint=dl.Planar()),
            body("f", joint=dl.Helical(pitch=0.1)),
            body("g", joint=dl.Translation()),
        ]
    )
    assert (system.nq, system.nv) == (7 + 2 + 4 + 3 + 1 + 3, 6 + 2 + 3 + 3 + 1 + 3)
    assert system.joint_names == ("base", "c", "d", "e", "f", "g")
    neutral = np.zeros(20)
    neutral[[0, 9]] = 1.0
    np.testing.assert_array_equal(system.neutral(), neutral)


class Spherical(dl.Joint):
    """A joint of one's own, with the name of one of difflie's."""


NAN = float("nan")
MISTAKES = {
    "no bodies": ([], "at least one body"),
    "two names": ([body("a"), body("a")], "two bodies named 'a'"),
    "unknown parent": ([body("trunk"), body("b", parent="trnk")], "did you mean 'trunk'"),
    "cycle": ([body("a", parent="b"), body("b", parent="a")], "a -> b -> a form a cycle"),
    "negative mass": ([body("a", mass=-1.0)], "mass is -1.0 kg"),
    "nan mass": ([body("a", mass=NAN)], "mass is nan; it must be finite"),
    "shape": ([body("a", com=(1.0, 2.0))], r"com has shape \(2,\), needed is \(3,\)"),
    "text": ([body("a", com="x")], "com is 'x'; numbers are needed"),
    "complex": ([body("a", com=np.array([1j, 0, 0]))], "real numbers are needed"),
    "no rotation": ([body("a", rotation=np.ones((3, 3)))], "is no rotation matrix"),
    "zero axis": ([body("a", joint=dl.Revolute(axis=(0, 0, 0)))], "the axis is zero"),
    "long axis": ([body("a", joint=dl.Revolute(axis=(0, 0, 1e200)))], r"of at most 1e\+09"),
    "class of a joint": ([body("a", joint=dl.Revolute)], "give an object such as dl.Revolute()"),
    "name of a joint": ([body("a", joint="revolute")], "body 'a': its joint is 'revolute'; give"),
    "own joint": (
        [body("a", joint=Spherical())],
        "Spherical has no manifold; a user-defined joint type",
    ),
    "nan axis": ([body("a", joint=dl.Prismatic(axis=(NAN, 0, 0)))], "three finite numbers"),
    "limits": ([body("a", joint=dl.Revolute(lower=1.0, upper=0.0))], "lies above the upper"),
    "damping": ([body("a", joint=dl.Revolute(damping=-1.0))], "damping is -1.0"),
    "friction velocity": (
        [body("a", joint=dl.Revolute(friction_velocity=0.0))],
        "friction_velocity is 0.0 rad/s or m/s; it must be positive",
    ),
    "spring_reference": (
        [body("a", joint=dl.Revolute(spring_reference=NAN))],
        "spring_reference is nan; it must be finite",
    ),
    "ball spring": (
        [body("a", joint=dl.Spherical(stiffness=1.0))],
        "a spherical joint has no spring",
    ),
    "rows": ([body("a", joint=dl.Universal(damping=(1, 2, 3)))], "one number, or 2"),
    "two joints": (
        [body("a", joint=dl.Revolute(name="j")), body("b", joint=dl.Revolute(name="j"))],
        "two joints named 'j'",
    ),
    "mimic of nothing": (
        [body("a"), body("b", joint=dl.Revolute(mimic=dl.Mimic("aa")))],
        "'aa', which does not exist; did you mean 'a'",
    ),
    "mimic of itself": ([body("a", joint=dl.Revolute(mimic=dl.Mimic("a")))], "mimics a joint"),
    "mimic of many": (
        [body("a", joint=dl.Universal()), body("b", joint=dl.Revolute(mimic=dl.Mimic("a")))],
        "must have one degree of freedom",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake):
    bodies, words = MISTAKES[mistake]
    with pytest.raises(dl.ModelError, match=words):
        dl.tree(bodies)


def test_gravity_is_checked():
    with pytest.raises(dl.ModelError, match="gravity must be three finite numbers"):
        dl.chain([body("a")], gravity=(0.0, 9.81))


def test_doubtful_numbers_warn():
    with pytest.warns(UserWarning, match="triangle inequality"):
        dl.chain([body("a", inertia=np.diag([0.1, 0.1, 0.3]))])
    with pytest.warns(UserWarning, match="joint 'a' moves no mass"):
        dl.chain([body("a", mass=0.0, inertia=np.zeros((3, 3)))])


TURNS, POINT = dl.Revolute(), {"mass": 1.0, "com": (0.0, 0.0, 0.3), "inertia": np.zeros((3, 3))}
UNDETERMINED = {
    "a point mass on its axis": ([body("a", joint=TURNS, **POINT)], "a"),
    "a rod about its own axis": (
        [body("a", joint=TURNS, com=(0, 0, 0.5), inertia=np.diag((0.1, 0.1, 0)))],
        "a",
    ),
    "a free point mass": ([body("a", joint=dl.Free(), **POINT)], "a"),
    "parallel axes of a universal joint": (
        [body("a", joint=dl.Universal(second_axis=(1, 0, 0)))],
        "a",
    ),
    "one axis behind the other": (
        [dl.Body(name="a", joint=TURNS), body("b", joint=TURNS, parent="a", position=(0, 0, 1))],
        "ab",
    ),
    "inertia without mass": ([body("a", joint=TURNS, mass=0.0)], ""),
    "a light end of a heavy machine": (
        [body("a", joint=dl.Free(), mass=1e3), body("b", parent="a", mass=1e-9)],
        "",
    ),
    "a massless body in between": (
        [dl.Body(name="a", joint=dl.Revolute(axis=(1, 0, 0))), body("b", parent="a")],
        "",
    ),
    "one that follows": (
        [
            dl.Body(name="a", joint=TURNS),
            body("b", joint=dl.Helical(pitch=0.1, mimic=dl.Mimic("a", 2.0)), **POINT),
        ],
        "",
    ),
    "an armature": ([dl.Body(name="a", joint=dl.Universal(armature=(0.1, 0.2)))], ""),
}


@pytest.mark.parametrize("machine", UNDETERMINED)
def test_accelerations_that_nothing_determines_are_warned_of(machine):
    """Wherever the mass matrix is singular in every configuration, and nowhere else."""
    bodies, joints = UNDETERMINED[machine]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dl.tree(bodies)
    told = [str(w.message) for w in caught if "moves no mass" in str(w.message)]
    assert len(told) == len(joints)
    assert all(f"joint {name!r}" in message for name, message in zip(joints, told, strict=True))


def test_replace():
    system = dl.chain([body("a"), body("b")])
    heavy = system.replace(mass=[2.0, 3.0], gravity=(0.0, 0.0, -1.62), damping=jnp.ones(2))
    np.testing.assert_array_equal(heavy.bodies.mass, [2.0, 3.0])
    np.testing.assert_array_equal(heavy.gravity, [0.0, 0.0, -1.62])
    np.testing.assert_array_equal(system.bodies.mass, [1.0, 1.0])
    with pytest.raises(TypeError, match="no leaf 'masss'; did you mean 'mass'"):
        system.replace(masss=1.0)
    with pytest.raises(ValueError, match=r"mass has shape \(2,\), got \(3,\)"):
        system.replace(mass=jnp.ones(3))
    for change, words in (
        ({"mass": [1.0, -1.0]}, "mass is .*must not be negative"),
        ({"com": np.full((2, 3), NAN)}, "com is .*must be finite"),
        ({"upper": [0.0, NAN]}, "upper is not a number"),
        ({"axis": np.zeros((2, 3))}, "axis is zero"),
    ):
        with pytest.raises(dl.ModelError, match=words):
            system.replace(**change)
    with pytest.raises(TypeError, match="mass is complex128; give real numbers"):
        system.replace(mass=[1.0, 1j])


def test_passive_force():
    joint = dl.Revolute(damping=0.5, friction=0.2)
    follower = dl.Revolute(damping=0.1, mimic=dl.Mimic("a", multiplier=-2.0))
    system = dl.tree([body("a", joint=joint), body("b", joint=follower)])
    v = 0.3
    expected = -(0.5 * v + 0.2 * np.tanh(v / 0.01)) - 0.1 * 4.0 * v
    np.testing.assert_allclose(dl.passive_force(system, [0.0], [v]), [expected], rtol=1e-14)


def test_springs():
    system = dl.tree(
        [
            body("a", joint=dl.Revolute(stiffness=3.0, spring_reference=0.2)),
            body("b", joint=dl.Revolute(stiffness=2.0, mimic=dl.Mimic("a", -2.0, 0.1))),
            body("c", joint=dl.Free()),
            body("d", joint=dl.Universal(stiffness=(1.0, 4.0), spring_reference=(0.0, -1.0))),
        ]
    )
    q = system.neutral().at[0].set(0.5).at[-2:].set(jnp.array([0.3, 0.7]))
    follower = 2.0 * 2.0 * (-2.0 * 0.5 + 0.1)
    expected = [-3.0 * 0.3 + follower, *np.zeros(6), -0.3, -4.0 * 1.7]
    found = dl.passive_force(system, q, jnp.zeros(system.nv))
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_system_without_joints_has_no_passive_force():
    assert dl.passive_force(dl.chain([body("a", joint=dl.Fixed())]), [], []).shape == (0,)


def test_a_machine_on_which_nothing_moves():
    system = dl.chain([dl.Body(name="block", mass=1.0, inertia=jnp.eye(3))])
    none = jnp.zeros(0)
    assert dl.mass_matrix(system, none).shape == (0, 0)
    assert dl.inverse_dynamics(system, none, none, none).shape == (0,)
    assert dl.forward_dynamics(system, none, none, none).shape == (0,)
    with pytest.raises(ValueError, match="needs a joint that moves"):
        dl.closed_form(system, none, none)
    assert dl.mass_factorisation(system, none).solve(none).shape == (0,)
    assert dl.body_poses(system, none).shape == (1, 4, 4)
    assert dl.simulate(system, none, none, dt=0.1, steps=3).result.ok


@pytest.mark.parametrize(
    "built",
    [
        lambda x: dl.chain([body("a", mass=x)]),
        lambda x: dl.chain([body("a", com=(0, 0, x))]),
        lambda x: dl.chain([body("a", joint=dl.Revolute(axis=(x, 0, 1)))]),
        lambda x: dl.chain([body("a", joint=dl.Revolute(damping=x))]),
        lambda x: dl.from_screws([[0, 0, 1, 0, 0, x]]),
    ],
)
def test_a_traced_number_of_a_body_names_the_way(built):
    """Guards that jax.grad through a builder says what to do in place of it."""
    with pytest.raises(dl.ModelError, match=r"traced by jax; build the system once.*with_values"):
        jax.grad(lambda x: built(x).gravity[0])(1.0)


def test_replace_names_what_it_does_not_take():
    """Guards the way from a path, and from parts that are no numbers, to what takes them."""
    system = dl.chain([body("a")])
    with pytest.raises(TypeError, match=r"dl\.Parameters\(system, \['a/mass'\]\)\.with_values"):
        system.replace(**{"a/mass": 2.0})
    with pytest.raises(TypeError, match=r"dl\.Parameters\(system, \['a/mass'\]\)\.with_values"):
        system.replace(a=2.0)
    with pytest.raises(TypeError, match=r"import dataclasses.*replace\(system, actuators=\.\.\.\)"):
        system.replace(actuators=())


def test_text_is_no_number():
    """Guards against numbers in quotes, which numpy reads."""
    with pytest.raises(dl.ModelError, match="stiffness: '60' was given where a number is needed"):
        dl.Spring([(None, (0, 0, 1)), ("a", (0, 0, 0))], "60", 0.1)
    with pytest.raises(dl.ModelError, match=r"damping is '0\.1'; numbers are needed"):
        dl.chain([body("a", joint=dl.Revolute(damping="0.1"))])
    with pytest.raises(dl.ModelError, match=r"position is .*; give numbers"):
        dl.Frame("a", position=("0", "0", "1"))


def test_what_is_given_in_place_of_parts_is_answered():
    """Guards one sentence for a body without a list, a list of parts, and a swapped order."""
    a = body("a")
    system, spring = dl.chain([a]), dl.Spring([(None, (0, 0, 1)), ("a", (0, 0, 0))], 60.0, 0.1)
    for build in (dl.chain, dl.tree):
        with pytest.raises(dl.ModelError, match=r"one body was given, 'a'; give a list"):
            build(a)
        with pytest.raises(dl.ModelError, match=r"hold a System; give a list of dl\.Body"):
            build([system])
    with pytest.raises(dl.ModelError, match=r"a list cannot be attached.*\(system, \*parts\)"):
        dl.attach(system, [spring])
    with pytest.raises(TypeError, match=r"first argument is a Spring; give the system first"):
        dl.attach(spring, system)
    with pytest.raises(dl.ModelError, match="chain: a Body cannot be attached"):
        dl.attach(system, a)
    with pytest.raises(dl.ModelError, match=r"a list is no constraint.*\(system, \*parts\)"):
        dl.constrain(system, [])
    with pytest.raises(dl.ModelError, match="chain: a Spring is no FrameConstraint"):
        dl.constrain(system, spring)
    with pytest.raises(TypeError, match="first argument is a Spring"):
        dl.constrain(spring, system)


def test_a_state_by_the_names_of_joints_is_answered():
    """Guards how a start is written of which one entry was given by name."""
    system = dl.chain([body("a", joint=dl.Free()), body("b")])
    with pytest.raises(TypeError, match=r"such as system\.neutral\(\)\.at\[7\]\.set\(0\.1\)"):
        dl.simulate(system, {"b": 0.1}, jnp.zeros(7))
    with pytest.raises(TypeError, match=r"such as jnp\.zeros\(7\)\.at\[6\]\.set\(0\.1\)"):
        dl.simulate(system, system.neutral(), {"b": 0.1})
    with pytest.raises(TypeError, match=r"q0 is .*at\[7\]\.set\(0\.1\)"):
        dl.Motions(system, q0={"b": 0.1})({})


def test_degrees_are_warned_of_once():
    """Guards one warning of limits and rotations that look like degrees, and none of radians."""
    hinge = dl.Revolute(lower=-90.0, upper=90.0)
    with pytest.warns(UserWarning, match="look like degrees; radians are needed") as warned:
        dl.chain([body("a", joint=hinge), body("b", rotation=(90.0, 0.0, 0.0)), body("c")])
    assert [str(w.message).startswith("joint 'a'") for w in warned] == [True]
    assert "limit of size 90 lies beyond 4 pi (and 1 more)" in str(warned[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dl.chain([body("a", joint=dl.Revolute(lower=-6.0, upper=12.0))])
        dl.chain([body("a", joint=dl.Revolute(lower=-1e16, upper=1e16))])
        dl.chain([body("a", joint=dl.Prismatic(lower=-90.0, upper=90.0))])


@pytest.mark.parametrize("size", [3, 64])
def test_arrays_of_users_are_copied(size):
    """What a user writes into an array later changes no system, however it is aligned."""
    memory = np.zeros(size + 8)
    start = -memory.ctypes.data % 64 // 8
    given = memory[start : start + size]
    given[:] = 1.0
    made = as_array(given)
    given[:] = 2.0
    assert np.all(np.asarray(made) == 1.0)
