"""Joint types defined outside the package, through every algorithm and method."""

from dataclasses import dataclass, replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from foreign_joints import Ball, Roller, Sledge, Sphere, Turntable, Wheel
from slow_dynamics import SlowSystem
from trees import error, random_body

import difflie as dl
from difflie.groups import Euclidean


def bodies():
    """All of them, between joints of the package, on the world and on each other."""
    rng = np.random.default_rng(3)
    made = [
        ("sledge", Sledge(armature=(0.1, 0.2, 0.3)), None),
        ("arm", dl.Revolute(axis=(1.0, -2.0, -0.5), armature=0.1), "sledge"),
        ("wheel", Wheel(radius=0.4, armature=0.2), "arm"),
        ("ball", Ball(armature=(0.3, 0.1, 0.2)), "wheel"),
        ("screw", dl.Helical(axis=(0.0, 1.0, 1.0), pitch=0.2), "ball"),
        ("sphere", Sphere(armature=(0.2, 0.1, 0.3)), "screw"),
        ("lid", dl.Fixed(), "sphere"),
        ("other wheel", Wheel(radius=0.7), "lid"),
        ("base", dl.Spherical(), "arm"),
        ("track", Wheel(radius=0.2), None),
    ]
    return [random_body(rng, *each) for each in made]


def states(system, count, seed=0):
    rng = np.random.default_rng(seed)
    xi, v, a, tau = rng.normal(size=(4, count, system.nv))
    q = jax.jit(jax.vmap(lambda x: dl.integrate(system, system.neutral(), x)))(xi)
    return np.array(q), v, a, tau, rng.normal(size=(count, len(system.body_names), 6))


def few():
    """A chain of the three, with a joint of the package at its end."""
    rng = np.random.default_rng(4)
    kinds = ("sledge", Sledge(armature=0.1)), ("wheel", Wheel(radius=0.4)), ("ball", Ball())
    names = [None, "sledge", "wheel", "ball"]
    made = zip((*kinds, ("arm", dl.Revolute(axis=(1.0, -2.0, -0.5)))), names, strict=True)
    return [random_body(rng, name, joint, parent) for (name, joint), parent in made]


def quantities(system, far, q, v, a, tau, wrench):
    """Every algorithm, and what it must agree with; far: the body whose Jacobian is taken."""

    def along(f, q, v):
        """The derivative of f(q) along the velocity v."""
        return jax.jvp(lambda h: f(dl.integrate(system, q, h * v)), (0.0,), (1.0,))[1]

    unit, zero = jnp.eye(system.nv), jnp.zeros(system.nv)
    coriolis = dl.coriolis_matrix(system, q, v)
    efforts = dl.inverse_dynamics(system, q, v, a)

    def inverse(xi, v):
        return dl.inverse_dynamics(system, dl.integrate(system, q, xi), v, a, wrench)

    pairs = {
        "M from M^-1": (dl.inverse_mass_matrix(system, q) @ dl.mass_matrix(system, q), unit),
        "C v": (coriolis @ v, dl.bias_force(system, q, v) - dl.bias_force(system, q, zero)),
        "C + C^T": (coriolis + coriolis.T, along(lambda q: dl.mass_matrix(system, q), q, v)),
        "regressor": (
            dl.inverse_dynamics_regressor(system, q, v, a) @ dl.inertial_parameters(system).ravel(),
            efforts - system.joints.armature * a,
        ),
        "derivatives": (
            jnp.stack(dl.inverse_dynamics_derivatives(system, q, v, a, wrench)[:2]),
            jnp.stack(jax.jacfwd(inverse, (0, 1))(zero, v)),
        ),
        "reverse mode": (
            jax.grad(lambda xi: inverse(xi, v) @ tau)(zero),
            jax.jacfwd(lambda xi: inverse(xi, v) @ tau)(zero),
        ),
        "rate of the Jacobian": (
            dl.body_jacobian_rate(system, q, v, far),
            along(lambda q: dl.body_jacobian(system, q, far), q, v),
        ),
        "center of mass": (
            dl.center_of_mass_jacobian(system, q) @ v,
            along(lambda q: dl.center_of_mass(system, q), q, v),
        ),
        "closed form": (
            dl.closed_form(system, q, v).forward_dynamics(tau, wrench),
            dl.forward_dynamics(system, q, v, tau, wrench),
        ),
    }
    found = {
        "inverse dynamics": dl.inverse_dynamics(system, q, v, a, wrench),
        "forward dynamics": dl.forward_dynamics(system, q, v, tau, wrench),
        "mass matrix": dl.mass_matrix(system, q),
        "body poses": dl.body_poses(system, q),
        "body twists": dl.body_twists(system, q, v),
        "body jacobian": dl.body_jacobian(system, q, far),
        "energy": jnp.stack(dl.energy(system, q, v)),
        "momentum": dl.momentum(system, q, v),
    }
    return found, pairs


CASES = [
    *((few, "unrolled"), (few, "scanned"), (bodies, "unrolled")),
    pytest.param(bodies, "scanned", marks=pytest.mark.thorough),
]


@pytest.mark.slow
@pytest.mark.thorough("bodies-unrolled", "few-scanned")
@pytest.mark.parametrize(("machine", "traversal"), CASES, indirect=["traversal"])
def test_every_algorithm_takes_them(machine, traversal):
    """Against the slow dynamics, which knows them by itself, and against each other."""
    made, far = machine(), len(machine()) - 3 if machine is bodies else 3
    system, slow = dl.tree(made), SlowSystem(made)
    q, v, a, tau, wrench = given = states(system, 2)
    found, pairs = jax.jit(jax.vmap(partial(quantities, system, far)))(*given)
    masses = np.array([slow.mass_matrix(x) for x in q])
    expected = {
        "inverse dynamics": map(slow.inverse_dynamics, q, v, a, wrench),
        "forward dynamics": map(slow.forward_dynamics, q, v, tau, wrench),
        "mass matrix": masses,
        "body poses": map(slow.poses, q),
        "body twists": map(slow.twists, q, v),
        "body jacobian": (slow.jacobians(x)[far] for x in q),
        "energy": map(slow.energy, q, v),
        "momentum": map(slow.momentum, q, v),
    }
    condition = np.linalg.cond(masses).max()
    for name, values in expected.items():
        tolerance = 1e-14 * condition if name == "forward dynamics" else 1e-12
        assert error(found[name], np.array(list(values))) < tolerance, name
    for name, (one, other) in pairs.items():
        solved = name in ("M from M^-1", "closed form")
        assert error(one, other) < (1e-14 * condition if solved else 1e-11), name


@pytest.mark.slow
def test_single_precision_stays_single():
    """Shapes and precision of what joints return are those of the state."""
    system = dl.tree(few())
    single = system.astype(jnp.float32)
    q, v, _, tau, _ = (jnp.asarray(x[0], jnp.float32) for x in states(system, 1))
    a = dl.forward_dynamics(single, q, v, tau)
    assert a.dtype == jnp.float32
    expected = dl.forward_dynamics(system, *(x.astype(float) for x in (q, v, tau)))
    assert error(a[None], expected[None]) < 1e-3


def test_own_numbers_are_leaves_with_paths():
    """The radius is differentiable, and found by its path."""
    made = [dl.Body(name=n, joint=Wheel(radius=r), mass=1.0, inertia=np.eye(3)) for n, r in RADII]
    system = dl.chain(made)
    q, v = jnp.array([0.3, -0.4]), jnp.array([1.0, 2.0])

    @jax.jit
    def energy(radius):
        changed = eqx.tree_at(lambda s: s.joints.numbers["wheel"]["radius"], system, radius)
        return dl.energy(changed, q, v)[0]

    radius, step = system.joints.numbers["wheel"]["radius"], np.array([0, 1e-6])
    np.testing.assert_allclose(radius, [0.4, 0.7])
    slope = jax.grad(energy)(radius)[1]
    quotient = (energy(radius + step) - energy(radius - step)) / 2e-6
    np.testing.assert_allclose(slope, quotient, rtol=1e-6)
    parameters = dl.Parameters(system, ["*/radius"])
    assert "far/radius" in str(parameters)


def test_numbers_of_two_types_go_with_their_names():
    """In the order of the bodies, with what each type declares of its field."""
    rolling = (Wheel(radius=0.1), Roller(radius=0.2), Wheel(radius=0.3))
    made = [
        dl.Body(name=f"b{i}", joint=joint, mass=1.0, inertia=np.eye(3))
        for i, joint in enumerate(rolling)
    ]
    parameters = dl.Parameters(dl.chain(made), ["*/radius"])
    values = dict(zip(parameters.names, parameters.initial.tolist(), strict=True))
    assert values == {f"b{i}/radius": (i + 1) / 10 for i in range(3)}
    assert parameters.units == ("m",) * 3
    lowest = parameters.values(jnp.full(3, -30.0))
    assert (lowest > 0).all()


RADII = ("near", 0.4), ("far", 0.7)
METHODS = (dl.RKMK4(), dl.CG3(), dl.CF4(), dl.SemiImplicitEuler(), dl.GaussLegendre4())
METHODS += (dl.GeneralizedAlpha(), dl.BDF2(), dl.Moreau())


@pytest.fixture(scope="module")
def cart():
    """A light system with each of them."""
    rng = np.random.default_rng(5)
    made = [("wheel", Wheel(), None), ("sledge", Sledge(), "wheel"), ("ball", Ball(), "sledge")]
    system = dl.tree([random_body(rng, *each) for each in made])
    q, v = (x[0] for x in states(system, 1)[:2])
    return system, q, v


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_methods_of_every_kind_move_them(cart, method):
    """To the same place as many small steps."""
    system, q, v = cart
    fine = dl.simulate(system, q, v, dt=1e-3, steps=100, method=dl.RKMK4())
    found = dl.simulate(system, q, v, dt=1e-3, steps=100, method=method)
    far = dl.difference(system, fine.q[-1], found.q[-1])
    assert np.abs(far).max() < (2e-2 if method.order == 1 else 1e-4)


@pytest.mark.slow
def test_a_gradient_through_a_motion(cart):
    """Reverse mode through a rollout, against a difference quotient."""
    system, q, v = cart

    def reached(v):
        motion = dl.simulate(system, q, v, dt=1e-2, steps=5, method=dl.RKMK4())
        return jnp.sum(dl.body_poses(system, motion.q[-1])[:, :3, 3])

    push = np.random.default_rng(1).normal(size=system.nv)
    slope = jax.grad(reached)(v) @ push
    quotient = (reached(v + 1e-6 * push) - reached(v - 1e-6 * push)) / 2e-6
    np.testing.assert_allclose(slope, quotient, rtol=1e-6)


def on_groups():
    rng = np.random.default_rng(6)
    made = [("sledge", Sledge(), None), ("ball", Ball(), "sledge")]
    return dl.tree([random_body(rng, *each) for each in made])


@pytest.mark.slow
@pytest.mark.parametrize("method", [dl.VariationalMidpoint()], ids=lambda m: m.name)
def test_variational_methods_take_joints_on_groups(method):
    """They keep the energy of a motion, and follow it to their order."""
    system = on_groups()
    q, v = (x[0] for x in states(system, 1)[:2])
    fine = dl.simulate(system, q, v, dt=1e-3, steps=200, method=dl.RKMK4())
    found = dl.simulate(system, q, v, dt=1e-3, steps=200, method=method)
    assert np.abs(dl.difference(system, fine.q[-1], found.q[-1])).max() < 1e-4


@pytest.mark.parametrize("method", [dl.VariationalMidpoint(), dl.EnergyMomentum()])
def test_other_families_refuse_in_one_sentence(cart, method):
    """Naming the joint and the method."""
    system, q, v = cart
    with pytest.raises(ValueError, match=rf"{method.name} .*'wheel'.*; use another method"):
        dl.simulate(system, q, v, dt=1e-3, steps=1, method=method)


@dataclass(frozen=True, kw_only=True)
class Skidding(Wheel):
    def motion_subspace(self, q):
        return super().motion_subspace(q).at[3].mul(0.5)


@dataclass(frozen=True, kw_only=True)
class Flat(Wheel):
    def transform(self, q):
        return super().transform(q)[:3]


@dataclass(frozen=True, kw_only=True)
class Listed(Wheel):
    spokes: object = ()


@dataclass(frozen=True, kw_only=True)
class Lazy(Wheel):
    def bias(self, q, v):
        return jnp.zeros(6, q.dtype)


@dataclass(frozen=True, kw_only=True)
class TwoPlaces(Wheel):
    manifold = Euclidean(2)


@dataclass(frozen=True, kw_only=True)
class Nowhere(dl.Joint):
    """Without numbers of its own, and with nothing that depends on q."""

    manifold = Euclidean(1)

    def transform(self, q):
        return jnp.full((4, 4), jnp.nan)


class Undecorated(Wheel):
    width: float = eqx.field(default=1.0, converter=dl.number(unit="m"))


@dataclass(frozen=True, kw_only=True)
class Leaning(dl.Revolute):
    lean: float = eqx.field(default=0.1, converter=dl.number(unit="rad"))


@dataclass(frozen=True, kw_only=True)
class Sloping(Wheel):
    slope: float = eqx.field(default=0.1, converter=dl.number(unit="rad"))

    def dofs(self):
        return (dl.Dof("prismatic", (np.cos(self.slope), 0.0, np.sin(self.slope))),)


WRONG = {
    "Undecorated has fields and is no dataclass; write @dataclass": Undecorated(),
    "Leaning is a joint in series, .* and lean is none of them": Leaning(),
    "the dofs of Sloping depend on its numbers": Sloping(),
    "not the derivative of transform: they differ by 0.0": Skidding(),
    r"transform has shape \(3, 4\), needed is \(4, 4\)": Flat(),
    "field spokes of Listed cannot be hashed": Listed(spokes=[1]),
    "bias is not the derivative of motion_subspace": Lazy(),
    r"motion_subspace has shape \(6, 1\), needed is \(6, 2\)": TwoPlaces(),
    "the transform has no rotation matrix: they differ by nan": Nowhere(),
    "radius is -1.0 m; it must be positive": Wheel(radius=-1.0),
    "radius is 'big'; numbers are needed": Wheel(radius="big"),
}


@pytest.mark.slow("the transform has no rotation matrix: they differ by nan")
@pytest.mark.parametrize("message", WRONG)
def test_wrong_joints_are_refused_in_one_sentence(message):
    """When the system is built, naming the joint."""
    body = dl.Body(name="b", joint=replace(WRONG[message], name="j"), mass=1.0, inertia=np.eye(3))
    with pytest.raises(dl.ModelError, match=f"joint 'j': .*{message}"):
        dl.chain([body])


def by_transform(kind):
    """A joint of this type that has no more than its manifold and its transform."""

    @dataclass(frozen=True, kw_only=True)
    class Own(dl.Joint):
        @property
        def manifold(self):
            return kind.manifold

        def transform(self, q):
            return kind.transform(q)

    return Own()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "constant"),
    [
        (dl.Revolute(axis=(0.0, 0.6, 0.8)), True),
        (dl.Prismatic(axis=(1.0, 0.0, 0.0)), True),
        (dl.Helical(axis=(0.0, 0.0, 1.0), pitch=0.3), True),
        (dl.Spherical(), True),
        (dl.Free(), True),
        (dl.Universal(), False),
    ],
    ids=lambda x: type(x).__name__,
)
def test_constant_subspaces_are_found_out(kind, constant):
    """Without dofs, a constant subspace gives the code of the package's own joints."""
    dofs = by_transform(kind).dofs()
    assert all(dof.axial for dof in dofs) == constant
    if constant:
        for own, given in zip(dofs, kind.dofs(), strict=True):
            assert own.kind == given.kind
            np.testing.assert_allclose(own.screw, given.screw, atol=1e-15)


def turntable(**numbers):
    return dl.Body(name="b", joint=Turntable(name="t", **numbers), mass=1.0, inertia=np.eye(3))


def test_a_joint_may_be_built_while_something_is_traced():
    """Its checks see known numbers; what it computes in float64 arrives as precise as the state."""

    def forces(mass, q, v):
        system = dl.chain([turntable()]).replace(mass=mass).astype(jnp.float32)
        return dl.inverse_dynamics(system, q, v, v), dl.body_poses(system, q)

    given = (jax.ShapeDtypeStruct((n,), jnp.float32) for n in (1, 2, 1))
    assert {a.dtype for a in jax.eval_shape(forces, *given)} == {jnp.dtype("float32")}


class Return(dl.JointForce):
    joint: str = eqx.field(static=True)

    def effort(self, x, v):
        return -x


def test_what_needs_a_plain_coordinate_is_refused_elsewhere():
    """Forces, encoders and mimic joints; they would read a zero."""
    system, words = dl.chain([turntable()]), "a coordinate that is a plain number"
    with pytest.raises(dl.ModelError, match=r"Return \('t'\): the joint has no coordinate that is"):
        dl.attach(system, Return("t"))
    with pytest.raises(dl.ModelError, match="the joint has no coordinate that is a plain number"):
        dl.identify.with_sensors(system, dl.identify.Encoder("t"))
    for joints in (
        (Turntable(name="t"), dl.Revolute(mimic=dl.Mimic("t"))),
        (dl.Revolute(name="t"), Turntable(mimic=dl.Mimic("t"))),
    ):
        made = [dl.Body(name=f"b{i}", joint=joint, mass=1.0) for i, joint in enumerate(joints)]
        with pytest.raises(dl.ModelError, match=f"joint 'b1': a joint that .* must have {words}"):
            dl.chain(made)


def test_a_type_name_is_taken_once():
    """As numbers go by the names of types."""
    other = type("Wheel", (Wheel,), {"__doc__": "Another."})
    pair = [
        dl.Body(name=cls.__module__ + str(i), joint=cls(), mass=1.0, inertia=np.eye(3))
        for i, cls in enumerate((Wheel, other))
    ]
    with pytest.raises(dl.ModelError, match="two joint types named Wheel; rename one"):
        dl.chain(pair)


def test_files_say_what_they_cannot_hold(tmp_path, cart):
    """URDF has no words for a joint type of one's own."""
    with pytest.raises(dl.ModelError, match=r"joint 'wheel': a URDF file cannot hold .* Wheel"):
        dl.save(cart[0], tmp_path / "cart.urdf")
