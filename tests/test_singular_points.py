"""Every public function of a system's state, at ordinary and at singular points, in one table.

A straight line through a point moves the configuration, the velocity, another vector and every
number of the machine at once. Along it the derivative in reverse mode is that of central
differences, and values and the derivative in forward mode are near it in single precision; all
points are one batch.
The maps of the groups are held against exact ones in tests/groups, at the same points.
"""

import dataclasses
import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import quantities as dq
from difflie.groups import Euclidean, Product, UnitQuaternion
from difflie.integrators import METHODS, VectorField

AXIS = (0.0, 1.0, 0.0)


def machine() -> dl.System:
    """A ball joint and two hinges, all axes along coordinate axes and in line when neutral."""

    def body(name, joint, **more):
        numbers = {"mass": 1.5, "com": (0.1, -0.05, 0.2), "inertia": np.diag((0.3, 0.4, 0.5))}
        return dl.Body(name=name, joint=joint, **numbers, **more)

    hinge = {"axis": AXIS, "damping": 0.1, "friction": 0.2, "friction_velocity": 0.4}
    arm = dl.Revolute(**hinge, lower=-1.0, upper=2.0, stiffness=1.5, spring_reference=0.2)
    hand = dl.Revolute(**hinge, armature=0.1)
    bodies = [
        body("hull", dl.Spherical()),
        body("arm", arm, position=(0.4, 0.0, 0.0)),
        body("hand", hand, position=(0.4, 0.0, 0.0)),
    ]
    return dl.chain(bodies)


def coupled() -> dl.System:
    """With every force there is: springs slack and taut, a plane pressed, actuators."""
    rope = [(None, (0.0, 0.3, 2.5)), ("hull", (0.1, 0.2, 0.3)), ("hand", (0.1, 0.2, 0.3))]
    plane = [(None, (0.0, 0.0, 3.0)), ("hand", (0.1, 0.2, 0.3)), ("hull", (0.1, 0.0, 0.3))]
    numbers = {"dissipation": 0.1, "friction": 0.4, "slip_velocity": 0.5}
    return dl.attach(
        MACHINE,
        dl.Spring(rope, 20.0, 0.4),
        dl.Rope(rope, 20.0, 0.4),
        dl.Rope(rope, 20.0, 50.0),
        dl.SmoothRope(rope, 20.0, 3.0, 2.5),
        dl.SmoothRope(rope, 20.0, 50.0, 0.1),
        dl.Damper(rope, 0.5),
        dl.SpringDamper(rope, 20.0, 0.4, 0.5),
        dl.TensionDamper(rope, 0.5, 50.0),
        dl.SmoothTensionDamper(rope, 0.5, 0.1, 0.4, 0.5),
        dl.PointForce([("hand", (0.1, 0.0, 0.0))], (1.0, 2.0, 3.0)),
        dl.PointFriction([("hand", (0.1, 0.0, 0.0))], 0.4, friction_velocity=0.5),
        dl.FollowerForce([("hand", (0.1, 0.0, 0.0))], (1.0, 2.0, 3.0)),
        dl.PlaneContact(plane, 5.0, (0.0, 0.0, 2.0), exponent=1.5, smoothing=0.2, **numbers),
        dl.SphereContact(rope[::2], 5.0, (2.0, 4.0), **numbers),
        dl.JointStop(5.0, smoothing=0.4, dissipation=0.1),
        dl.Stribeck("arm", 0.1, 0.7),
        dl.JointDrag("arm", 0.1),
        dl.Drive("arm", torque_scale=1.1, load_friction=0.1, slip_velocity=0.5),
    )


def commanded() -> dl.System:
    """With actuators of several kinds, within their limits, at joints and along an axis."""
    return dl.attach(
        MACHINE,
        dl.Drive("arm", torque_scale=1.1, load_friction=0.1, slip_velocity=0.5),
        dl.VoltageMotor("arm", torque_constant=0.1, resistance=2.0, gear_ratio=7.0, name="servo"),
        dl.PositionServo("arm", kp=3.0, kd=0.4, max_torque=50.0, name="hold"),
        dl.Thruster(axis=dl.Axis("hand", (0.1, 0.0, 0.2), (1.0, 2.0, 3.0))),
    )


def jointed() -> dl.System:
    """With constraints, which need not hold where their equations are evaluated."""
    given = dl.Frame(None, (0.1, 0.3, 0.2), axis=(0.0, 0.0, 1.0))
    moving = dl.Frame("hand", (0.2, 0.0, 0.0), axis=AXIS)
    ratio = constraints.Proportional(("hand", "arm"), (1.0, 0.5))
    return dl.constrain(
        MACHINE,
        constraints.FixedConstraint(given, moving),
        constraints.Distance(given, moving, 1.2),
        ratio,
    )


constraints = dl.constraints
MACHINE = machine()
COUPLED = coupled()
COMMANDED = commanded()
ROD = constraints.Distance(dl.Frame(None, (0.1, 0.9, 1.3)), dl.Frame("hand", (0.2, 0.1, 0.0)), 1.5)
CLOSED = dl.constrain(MACHINE, ROD)
JOINTED = jointed()

_RNG = np.random.default_rng(11)
NEUTRAL = np.asarray(MACHINE.neutral())
ANYWHERE = np.append(np.array((0.7, -0.1, 0.5, 0.5)), (0.6, -0.8))
TURNED = np.array((0.0, 1.0, 0.0, 0.0, 0.0, np.pi))
MOVING, STILL = _RNG.normal(size=MACHINE.nv), np.zeros(MACHINE.nv)
POINTS = {
    "anywhere": (ANYWHERE, MOVING),
    "at rest": (ANYWHERE, STILL),
    "zero rotation": (NEUTRAL, MOVING),
    "zero rotation, at rest": (NEUTRAL, STILL),
    "turned by pi": (TURNED, MOVING),
    "turned by pi, at rest": (TURNED, STILL),
}


def _closed(s, q, v, x):
    form = dl.closed_form(s, q, v)
    return form.M, form.C, form.phi, form.M_inverse, form.forward_dynamics(x)


def _moved(s, q, v, x):
    return dl.with_inertial_parameters(s, dl.inertial_parameters(s) * 1.1).bodies


def measured(quantity):
    return lambda s, q, v, x: quantity(s, q, v, x, jnp.zeros((), q.dtype))


# What is evaluated on which machine; x (nv,) is an acceleration, a force, or a step.
TABLE = {
    "places": (
        MACHINE,
        {
            "body_poses": lambda s, q, v, x: dl.body_poses(s, q),
            "pose": lambda s, q, v, x: dl.pose(s, q, "hand"),
            "body_twists": lambda s, q, v, x: dl.body_twists(s, q, v),
            "center_of_mass": lambda s, q, v, x: dl.center_of_mass(s, q),
            "center_of_mass_jacobian": lambda s, q, v, x: dl.center_of_mass_jacobian(s, q),
            "integrate": lambda s, q, v, x: dl.integrate(s, q, x),
            "integrate, standing": lambda s, q, v, x: dl.integrate(s, q, v),
            "difference": lambda s, q, v, x: dl.difference(s, q, dl.integrate(s, q, v)),
        },
    ),
    "jacobians": (
        MACHINE,
        {
            "jacobian": lambda s, q, v, x: dl.jacobian(s, q, "hand"),
            "body_jacobian": lambda s, q, v, x: dl.body_jacobian(s, q, 2),
            "spatial_jacobian": lambda s, q, v, x: dl.spatial_jacobian(s, q, 2),
            "geometric_jacobian": lambda s, q, v, x: dl.geometric_jacobian(s, q, 2),
            "body_jacobian_rate": lambda s, q, v, x: dl.body_jacobian_rate(s, q, v, 2),
            "spatial_jacobian_rate": lambda s, q, v, x: dl.spatial_jacobian_rate(s, q, v, 2),
            "geometric_jacobian_rate": lambda s, q, v, x: dl.geometric_jacobian_rate(s, q, v, 2),
            "operational_space": lambda s, q, v, x: (
                dl.operational_space(s, q, v, dl.Frame("hand", axis=AXIS)).inverse_inertia
            ),
        },
    ),
    "dynamics": (
        MACHINE,
        {
            "forward_dynamics": dl.forward_dynamics,
            "inverse_dynamics": dl.inverse_dynamics,
            "bias_force": lambda s, q, v, x: dl.bias_force(s, q, v),
            "gravity_force": lambda s, q, v, x: dl.gravity_force(s, q),
            "mass_matrix": lambda s, q, v, x: dl.mass_matrix(s, q),
            "mass_product": lambda s, q, v, x: dl.mass_product(s, q, x),
        },
    ),
    "solves": (
        MACHINE,
        {
            "inverse_mass_matrix": lambda s, q, v, x: dl.inverse_mass_matrix(s, q),
            "mass_solve": lambda s, q, v, x: dl.mass_solve(s, q, x),
            "mass_factorisation": lambda s, q, v, x: dl.mass_factorisation(s, q).solve(x),
            "coriolis_matrix": lambda s, q, v, x: dl.coriolis_matrix(s, q, v),
        },
    ),
    "derivatives": (
        MACHINE,
        {
            "forward_dynamics_derivatives": dl.forward_dynamics_derivatives,
            "inverse_dynamics_derivatives": dl.inverse_dynamics_derivatives,
        },
    ),
    "closed form": (MACHINE, {"closed_form": _closed}),
    "momenta": (
        MACHINE,
        {
            "momentum": lambda s, q, v, x: dl.momentum(s, q, v),
            "centroidal_momentum_matrix": lambda s, q, v, x: dl.centroidal_momentum_matrix(s, q),
            "total_mass": lambda s, q, v, x: dl.total_mass(s),
            "inertial_parameters": lambda s, q, v, x: dl.inertial_parameters(s),
            "with_inertial_parameters": _moved,
        },
    ),
    "regressors": (
        MACHINE,
        {
            "inverse_dynamics_regressor": dl.inverse_dynamics_regressor,
            "kinetic_energy_regressor": lambda s, q, v, x: dl.kinetic_energy_regressor(s, q, v),
            "potential_energy_regressor": lambda s, q, v, x: dl.potential_energy_regressor(s, q),
            "momentum_regressor": lambda s, q, v, x: dl.momentum_regressor(s, q, v),
        },
    ),
    "forces": (
        COUPLED,
        {
            "passive_force": lambda s, q, v, x: dl.passive_force(s, q, v),
        },
    ),
    "actuators": (
        COMMANDED,
        {
            "Effort": lambda s, q, v, x: measured(dq.Effort())(s, q, v, x[: s.nu] + 3),
        },
    ),
    "quantities": (
        MACHINE,
        {
            "Pose": measured(dq.Pose("hand", dl.Frame(rotation=(0.4, 0.3, -0.2)))),
            "Point": measured(dq.Point("hand", (0.1, 0.2, 0.3))),
            "Distance": measured(dq.Distance("hand", None)),
            "Distance, coincident": measured(dq.Distance("hand", "hand")),
            "CentroidalMomentum": measured(dq.CentroidalMomentum()),
            "Accelerometer": measured(dq.Accelerometer(dl.Frame("hand", (0.1, 0.2, 0.3)))),
            "Gyroscope": measured(dq.Gyroscope("hand")),
            "Power": measured(dq.Power()),
            "LimitMargin": lambda s, q, v, x: measured(dq.LimitMargin())(s, q, v, x)[3],
        },
    ),
    "energies": (
        COUPLED,
        {
            "energy": lambda s, q, v, x: dl.energy(s, q, v),
            "elastic_energy": lambda s, q, v, x: dl.elastic_energy(s, q),
        },
    ),
    "stiffness": (COUPLED, {"stiffness_matrix": lambda s, q, v, x: dl.stiffness_matrix(s, q)}),
    "constraints": (
        JOINTED,
        {
            "constraint_residual": lambda s, q, v, x: dl.constraint_residual(s, q),
            "constraint_jacobian": lambda s, q, v, x: dl.constraint_jacobian(s, q),
            "constraint_bias": lambda s, q, v, x: dl.constraint_bias(s, q, v),
        },
    ),
    "constrained": (CLOSED, {"constrained_dynamics": dl.constrained_dynamics}),
}
# What compiles fast enough for every run; the rest is slow.
QUICK = ("actuators",)
BUILT = "makes a machine of another structure"
DECIDED = "counts ranks of given numbers, outside of traces"
NOT_SWEPT = {
    **dict.fromkeys(("absolute", "attach", "chain", "constrain", "lock", "tree"), BUILT),
    "touching": BUILT,
    "matching_pairs": "names",
    "distance": "its singular positions are those of each pair of shapes, in tests/collision",
    **dict.fromkeys(("from_dh", "from_screws"), BUILT),
    **dict.fromkeys(("base_parameters", "mobility", "redundant_equations"), DECIDED),
    "inconsistent_parameters": DECIDED,
    "absolute_state": "the poses and twists of another function, of a machine made from the first",
    **dict.fromkeys(("load", "save"), "files"),
    **dict.fromkeys(("number", "as_path"), "declares a field of a class"),
    "simulate": "below, method by method",
    "step": "the step of simulate",
    "linearize": "the derivative of step, in tests/control/test_linearize.py",
    "register": "keeps a name",
    "smoothed": "of functions that users write, kinks and all, in tests/simulate/test_smoothed.py",
    "sweep": "a loop over compiled chunks, in tests/sweep",
    "assemble": "below, from states that keep the constraints",
}


def test_no_public_function_is_missing():
    named = {name for _, group in TABLE.values() for name in group}
    public = {name for name in dir(dl) if inspect.isroutine(getattr(dl, name))}
    assert public - named == set(NOT_SWEPT)


@dataclasses.dataclass
class Found:
    """Of one function at all points; the slope is of what has the weights cos(0, 1, ...)."""

    value: np.ndarray  # (points, size)
    slope: np.ndarray  # (points,)
    difference: np.ndarray  # (points,), central


H = 1e-3
STEPS = (0.0, H, -H, 2 * H, -2 * H)


def directions(machine, nq, nv):
    """How much of e is added to every number of a machine, to q, v and x."""
    rng = np.random.default_rng(5)

    def of(leaf):
        leaf = np.asarray(leaf)
        size = np.where(leaf == 0, 0.1, np.where(np.isfinite(leaf), leaf, 0))
        return rng.uniform(-0.5, 0.5, leaf.shape) * size

    return jax.tree.map(of, machine), rng.normal(size=nq), *rng.normal(size=(2, nv))


def lines(functions, machine, dtype, points, along_line):
    """All functions along a line through a point, f(e, given, q, v), and these, in a precision."""
    given = machine, *along_line(machine, *(len(a) for a in points[0]))
    given = jax.tree.map(lambda a: jnp.asarray(a, dtype), given)
    at = [jnp.asarray(np.stack(a), dtype) for a in zip(*points, strict=True)]

    def along(e, given, q, v):
        machine, by_leaf, by_q, by_v, x = given
        moved = jax.tree.map(lambda a, d: a + e * d, machine, by_leaf)
        state = moved, q + e * by_q, v + e * by_v, (0.3 + e) * x
        return {
            name: jnp.concatenate([jnp.ravel(a) for a in jax.tree.leaves(f(*state))])
            for name, f in functions.items()
        }

    return along, given, *at


def weights(size, dtype=float):
    return np.cos(np.arange(size)).astype(dtype)


def backwards(f, e):
    """The functions of f and their slopes, by name, in reverse mode."""
    y, pull = jax.vjp(f, e)
    chosen = [{k: weights(a.size, a.dtype) * (k == one) for k, a in y.items()} for one in y]
    slopes = jax.vmap(pull)(jax.tree.map(lambda *a: jnp.stack(a), *chosen))[0]
    return y, dict(zip(y, slopes, strict=True))


def forwards(f, e):
    """The same in forward mode."""
    y, along = jax.jvp(f, (e,), (jnp.ones_like(e),))
    return y, jax.tree.map(lambda a: a @ weights(a.size, a.dtype), along)


def found(slopes_of, functions, machine, dtype, points, along_line=directions):
    """Each function at all points, in one program."""
    along, given, q, v = lines(functions, machine, dtype, points, along_line)

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, 0, 0, None))
    def run(e, q, v, given):
        return slopes_of(lambda e: along(e, given, q, v), e)

    count = len(STEPS)
    e = jnp.tile(jnp.asarray(STEPS, dtype), len(points))
    y, slopes = run(e, *(jnp.repeat(a, count, axis=0) for a in (q, v)), given)
    assert all(a.dtype == dtype for a in jax.tree.leaves((y, slopes)))
    of = {}
    for name, value in y.items():
        value = np.asarray(value, float).reshape(-1, count, value.shape[1])
        near, far = (value[:, i] - value[:, i + 1] for i in (1, 3))
        of[name] = Found(
            value=value[:, 0],
            slope=np.asarray(slopes[name], float)[::count],
            difference=(8 * near - far) / (12 * H) @ weights(value.shape[2]),
        )
    return of


exactly = functools.partial(found, backwards)
# Reverse mode is the transpose of forward mode, which so is held to the same differences.
roughly = functools.partial(found, forwards)


@functools.cache
def of_group(group):
    machine, functions = TABLE[group]
    return exactly(functions, machine, jnp.float64, list(POINTS.values()))


def check_double(exact, rtol=1e-7, atol=1e-9):
    for function, f in exact.items():
        assert np.isfinite(f.value).all() and np.isfinite(f.slope).all(), function
        size = np.maximum(1, np.maximum(np.abs(f.slope), np.abs(f.value).max(axis=1)))
        error = np.abs(f.slope - f.difference)
        assert (error < (rtol + atol) * size).all(), (function, error / size)


def check_single(rough, exact):
    for function, f in rough.items():
        size = np.maximum(1, np.abs(exact[function].value).max(axis=1))
        error = np.abs(f.value - exact[function].value).max(axis=1)
        assert (error < 1e-3 * size).all(), (function, error / size)
        size = np.maximum(size, np.abs(exact[function].slope))
        error = np.abs(f.slope - exact[function].slope)
        assert (error < 1e-3 * size).all(), (function, error / size)


@pytest.mark.parametrize(
    "group", [pytest.param(g, marks=() if g in QUICK else pytest.mark.slow) for g in TABLE]
)
def test_functions(group):
    check_double(of_group(group))


@pytest.mark.slow
@pytest.mark.thorough(
    "derivatives", "places", "jacobians", "quantities", "solves", "stiffness", "regressors"
)
@pytest.mark.parametrize("group", TABLE)
def test_functions_in_single_precision(group):
    machine, functions = TABLE[group]
    rough = roughly(functions, machine, jnp.float32, list(POINTS.values()))
    check_single(rough, of_group(group))


# Methods for any field on the equations of a body; the others, formulation by formulation, on a
# ball joint and on one that a rod holds, from states that keep the rod's length.

BODY = Product((UnitQuaternion(), Euclidean(3)))
NUMBERS = {"inertia": np.array((1.0, 2.0, 2.5)), "stiffness": np.array(2.0), "dt": np.array(0.1)}
SWAYING = [
    (q[:4], v) for q in (ANYWHERE, NEUTRAL, TURNED) for v in (np.array((0.5, -0.8, 0.6)), STILL[:3])
]
TOP_BODY = dl.Body(
    name="top",
    joint=dl.Spherical(),
    mass=1.5,
    com=(0.1, -0.05, 0.2),
    inertia=np.diag((0.3, 0.4, 0.5)),
)
TOP = dl.chain([TOP_BODY])


def swayed(method):
    """Two steps of a body whose torque turns its axis upwards."""

    def reached(numbers, q, v, x):
        J, h, up = numbers["inertia"], numbers["dt"], jnp.asarray((0.0, 0.0, 1.0), q.dtype)

        def field(t, y):
            q, w = y
            pull = jnp.cross(dl.quaternion.to_matrix(q).T @ up, up)
            return w, (jnp.cross(J * w, w) - numbers["stiffness"] * jnp.cos(t) * pull) / J

        def step(carried, _):
            t, state = carried
            return (t + h, method.step(problem, t, state, h)[0]), None

        problem, t = VectorField(BODY, field), 0 * h
        start = t, method.init(problem, t, (q, v), h)
        return jax.lax.scan(step, start, length=2)[0][1].y

    return reached


TIP = np.array((0.3, 0.4, 0.2))


def on_a_rod():
    """The end of a rod that has one length at all attitudes, and the top held by it."""
    here, pi, zero = (np.asarray(dl.quaternion.to_matrix(SWAYING[k][0])) @ TIP for k in (0, 4, 2))
    end = np.cross(here - zero, pi - zero)
    end *= 0.8 / np.linalg.norm(end)
    rod = constraints.Distance(
        dl.Frame(None, end), dl.Frame("top", TIP), np.linalg.norm(zero - end)
    )
    return end, dl.constrain(TOP, rod)


END, HELD = on_a_rod()


def of_bodies(machine, nq, nv):
    """Directions that keep the rod's length: of what moves, not of where it is."""
    by_leaf, by_q, by_v, x = directions(machine, nq, nv)
    still = jax.tree.map(np.zeros_like, by_leaf)
    return dataclasses.replace(still, bodies=by_leaf.bodies), 0 * by_q, by_v, x


def tangent(q, v):
    """v without what would change the rod's length."""
    tip = jnp.asarray(TIP, q.dtype)
    a = jnp.cross(tip, tip - dl.quaternion.to_matrix(q).T @ jnp.asarray(END, q.dtype))
    return v - a * (a @ v) / (a @ a)


def simulated(method):
    def reached(system, q, v, x):
        if system.constraints:
            v = tangent(q, v)
        run = dl.simulate(system, q, v, dt=5e-3, steps=2, control=lambda t, q, v: x, method=method)
        return run.q[-1], run.v[-1]

    return reached


# The other explicit methods differ from these in their tableaux, and are held to 25 digits at such
# points in simulate/test_second_derivatives.py.
EXPLICIT = "SemiImplicitEuler StormerVerlet CG3 CF3 RKMK4 BogackiShampine32 RungeKutta43".split()
FIELD_METHODS = [
    m for m in METHODS if m.equations is VectorField and (m.implicit or m.name in EXPLICIT)
]
RUNS = [(NUMBERS, swayed, m, directions) for m in FIELD_METHODS]
RUNS += [(TOP, simulated, m, directions) for m in (dl.EnergyMomentum(), dl.VariationalMidpoint())]
RUNS += [
    (HELD, simulated, m, of_bodies)
    for m in (dl.GeneralizedAlpha(), dl.BDF2(), dl.Rattle(), dl.Moreau(), dl.SemiImplicitEuler())
]


# The lengths of sub-steps are not differentiated: where the body stands in balance no error is
# seen, and the derivative is that of one sub-step, whatever the tolerance. It shows in low orders.
SUB_STEPS = {
    "BogackiShampine32": {"rtol": 0, "atol": 1e-4},
    "RungeKutta43": {"rtol": 0, "atol": 2e-6},
}


@pytest.mark.slow
@pytest.mark.thorough("GaussLegendre6-swayed")
@pytest.mark.parametrize("run", RUNS, ids=lambda r: f"{r[2].name}-{r[1].__name__}")
def test_integrators(run):
    machine, motion, method, along_line = run
    named = {method.name: motion(method)}
    exact = exactly(named, machine, jnp.float64, SWAYING, along_line)
    check_double(exact, **SUB_STEPS.get(method.name, {}))
    # Formulations are held to single precision in their own tests.
    if motion is swayed:
        check_single(roughly(named, machine, jnp.float32, SWAYING), exact)


def of_leaves(machine, nq, nv):
    """The rod too. The guess stands still: `assemble` has no derivative by it."""
    by_leaf, by_q, by_v, x = directions(machine, nq, nv)
    return by_leaf, 0 * by_q, 0 * by_v, x


@pytest.mark.slow
def test_assembling():
    points = [(q, np.asarray(tangent(jnp.asarray(q), v))) for q, v in SWAYING]
    named = {"assemble": lambda system, q, v, x: dl.assemble(system, q, v)}
    exact = exactly(named, HELD, jnp.float64, points, of_leaves)
    check_double(exact)
    check_single(roughly(named, HELD, jnp.float32, points, of_leaves), exact)
