"""Compliant contacts of shapes, against closed forms, older contacts and conservation laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie.forces.points import world_wrenches
from difflie.system.kinematic_tree import Tree

dq = dl.quantities


def free(name="body", mass=2.0, inertia=0.01, shape=None, ground=True, gravity=(0, 0, -9.81)):
    """A free body with a shape, and the ground."""
    body = dl.Body(name=name, joint=dl.Free(), mass=mass, inertia=np.eye(3) * inertia)
    system = dl.chain([body], gravity=gravity)
    shapes = {"shape": dl.Sphere(name, 0.1) if shape is None else shape}
    return system.with_shapes(shapes | ({"ground": dl.Plane()} if ground else {}))


def at(system, *positions):
    """The configuration with the free bodies at these positions."""
    q = np.array(system.neutral())
    for k, position in enumerate(positions):
        q[7 * k + 4 : 7 * k + 7] = position
    return jnp.asarray(q)


@pytest.mark.slow
def test_two_spheres_are_those_of_sphere_contact():
    """Guards forces and energy in motion, with friction, against `SphereContact`."""
    bodies = [
        dl.Body(name=n, joint=dl.Free(), parent=None, mass=1.0, inertia=np.eye(3) * 0.02)
        for n in "ab"
    ]
    system = dl.tree(bodies, gravity=(0, 0, 0))
    numbers = {"dissipation": 0.3, "friction": 0.4}
    old = dl.SphereContact(
        [("a", (0.1, 0, 0)), ("b", (0, 0, 0.2))], 1e3, (0.2, 0.3), slip_velocity=0.02, **numbers
    )
    shapes = {
        "one": dl.Sphere(dl.Frame("a", (0.1, 0, 0)), 0.2),
        "two": dl.Sphere(dl.Frame("b", (0, 0, 0.2)), 0.3),
    }
    new = dl.touching(
        system.with_shapes(shapes), "one", "two", stiffness=1e3, slip_velocity=0.02, **numbers
    )
    old = dl.attach(system, old)
    q = at(system, (0, 0, 0), (0.3, 0.2, 0.1))
    v = jnp.arange(12.0) / 7 - 0.6
    np.testing.assert_allclose(
        dl.passive_force(new, q, v), dl.passive_force(old, q, v), rtol=1e-12, atol=1e-11
    )
    assert abs(dl.passive_force(new, q, v)).max() > 1
    np.testing.assert_allclose(dl.elastic_energy(new, q), dl.elastic_energy(old, q), rtol=1e-13)


@pytest.mark.slow
def test_at_rest_the_ground_carries_the_weight():
    """Guards depth, force, place and clearance of a box on the ground, and the report of a run."""
    system = free(shape=dl.Box("body", (0.1, 0.2, 0.05)))
    system = dl.touching(system, "ground", "shape", stiffness=5e3)
    depth = 2 * 9.81 / 4 / 5e3
    run = dl.simulate(system, at(system, (0, 0, 0.05)), np.zeros(6), dt=1e-3, steps=2000)
    np.testing.assert_allclose(run.q[-1, 6], 0.05 - depth, rtol=1e-6)
    report = run.contacts(system)
    assert report.pairs == (("ground", "shape"),)
    np.testing.assert_allclose(report.pressure[-1], 2 * 9.81, rtol=1e-4)
    np.testing.assert_allclose(report.gap[-1], -depth, rtol=1e-4)
    np.testing.assert_allclose(report.place[-1], [[0, 0, -depth / 2]], atol=1e-8)
    np.testing.assert_allclose(
        dq.along(dq.ContactForce("body"), system, run)[-1], [0, 0, 2 * 9.81], atol=1e-3
    )
    np.testing.assert_allclose(dq.along(dq.Clearance(), system, run)[-1], -depth, rtol=1e-4)


@pytest.mark.slow
def test_a_sliding_ball_rolls_in_the_end():
    """Guards friction: a ball ends with 5/7 of its speed, after 2 v / (7 mu g)."""
    ball = free(inertia=0.4 * 2 * 0.1**2)
    ball = dl.touching(ball, "ground", "shape", friction=0.3, slip_velocity=1e-3)
    depth = 1e-3
    v = np.array([0, 0, 0, 1.0, 0, 0])
    run = dl.simulate(ball, at(ball, (0, 0, 0.1 - depth)), v, dt=2e-4, steps=5000)
    speed = np.diff(run.q[:, 4]) / 2e-4
    np.testing.assert_allclose(speed[-1], 5 / 7, atol=6e-3)  # by the depth over the radius
    rolling = run.t[np.argmax(speed < 5 / 7 + 0.01)]
    np.testing.assert_allclose(rolling, 2 / (7 * 0.3 * 9.81), rtol=0.05)


@pytest.mark.slow
def test_a_block_slides_until_it_stops():
    """Guards Coulomb's friction of four corners: v^2 / (2 mu g), and that it creeps no more."""
    block = free(shape=dl.Box("body", (0.2, 0.2, 0.02)))
    block = dl.touching(block, "ground", "shape", friction=0.5, slip_velocity=1e-3)
    run = dl.simulate(block, at(block, (0, 0, 0.02)), [0, 0, 0, 1.0, 0, 0], dt=1e-4, steps=6000)
    np.testing.assert_allclose(run.q[-1, 4], 1 / (2 * 0.5 * 9.81), rtol=5e-3)
    assert abs(run.v[-1, 3]) < 1e-6


@pytest.mark.slow
def test_the_creep_of_what_overhangs():
    """Guards creep on a tilted face, vs tan(tilt) / mu, and less than 0.1 mm a minute if asked."""
    body = dl.Body(
        name="body", joint=dl.Free(), mass=2.0, com=(0.02, 0, 0), inertia=np.eye(3) * 0.01
    )
    shapes = {"upper": dl.Box("body", (0.1, 0.07, 0.05)), "lower": dl.Box(None, (0.06, 0.05, 0.05))}
    drifts = {}
    for slip, time in ((1e-2, 6), (1e-4, 60)):
        system = dl.chain([body]).with_shapes(shapes)
        system = dl.touching(system, "lower", "upper", slip_velocity=slip, friction=0.8)
        run = dl.simulate(
            *(system, at(system, (0, 0, 0.0998)), np.zeros(6)),
            dt=1e-3,
            steps=1000 * (time + 1),
            save_every=1000,
            method=dl.GeneralizedAlpha(),
        )
        assert run.result.ok
        drifts[slip] = (run.q[-1, 4] - run.q[1, 4]) / time
        tilt = 2 * run.q[1, 2]
        assert tilt > 1e-4
        np.testing.assert_allclose(drifts[slip], slip * tilt / 0.8, rtol=0.02)
    assert 60 * drifts[1e-4] < 1e-4


@pytest.mark.slow("spin0-0.002")
@pytest.mark.parametrize(("spin", "arm"), [([3.0, 0, 0], 0.002), ([0, 0, 5.0], 0.01)])
def test_spinning_and_rolling_friction(spin, arm):
    """Guards the moments: a rolling and a spinning ball lose speed as their arms say."""
    ball = free(inertia=0.008)
    numbers = {"spinning": 0.01, "rolling": 0.002, "friction": 0.0, "spin_velocity": 1e-3}
    ball = dl.touching(ball, "ground", "shape", **numbers)
    run = dl.simulate(ball, at(ball, (0, 0, 0.099)), [*spin, 0, 0, 0], dt=1e-3, steps=100)
    lost = arm * 2 * 9.81 / 0.008 * 0.1
    np.testing.assert_allclose(np.linalg.norm(run.v[-1, :3]), max(spin) - lost, rtol=1e-3)


@pytest.mark.slow("second0")
@pytest.mark.parametrize("second", [dl.Capsule("b", 0.1, 0.2), dl.Sphere("b", 0.15)])
def test_forces_are_opposite(second):
    """Guards that forces and moments of what touches only each other sum to rounding to zero."""
    bodies = [
        dl.Body(name=n, joint=dl.Free(), parent=None, mass=1.0, inertia=np.eye(3) * 0.02)
        for n in "ab"
    ]
    system = dl.tree(bodies, gravity=(0, 0, 0)).with_shapes(
        {"one": dl.Capsule("a", 0.1, 0.3), "two": second}
    )
    system = dl.touching(system, stiffness=1e4, spinning=0.02, rolling=0.01)
    v = jnp.array([0.3, 2.0, -1, 0, 0, 0.2, 0.5, -1.0, 2, 0.1, -1.0, 0])
    q = at(system, (0, 0, 0), (0.02, 0.15, 0.1))
    _, wrench = world_wrenches(Tree.of(system), system.couplings, q, v)
    each = wrench.to_array()
    assert np.abs(each).min(axis=0).max() > 10
    np.testing.assert_allclose(each.sum(axis=0), 0, atol=1e-12)


@pytest.mark.slow("0.0")
@pytest.mark.parametrize("smoothing", [0.0, 1e-3])
def test_a_bounce_keeps_its_energy_to_the_order_of_the_method(smoothing):
    """Guards the potential of a contact without friction and dissipation, and its force."""
    ball = dl.touching(
        free(), "ground", "shape", stiffness=2e3, dissipation=0.0, friction=0.0, smoothing=smoothing
    )
    lost = []
    for dt in (2e-3, 1e-3):
        q, v = at(ball, (0, 0, 0.13)), jnp.zeros(6)
        run = dl.simulate(ball, q, v, dt=dt, steps=round(0.4 / dt), method=dl.RKMK4())
        energy = [sum(dl.energy(ball, run.q[k], run.v[k])) for k in (0, -1)]
        lost.append(abs(energy[1] - energy[0]))
    assert lost[1] < (1e-6 if smoothing else 1e-3)
    assert smoothing == 0 or lost[1] < lost[0] / 8


@pytest.mark.slow
@pytest.mark.thorough("float32")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_through_make_and_break(dtype):
    """Guards the derivatives of a bounce by sizes, numbers and places, in both modes."""
    capsule = dl.Capsule(dl.Frame("body", (0, 0, 0.01)), 0.05, 0.1)
    system = dl.touching(free(shape=capsule), "ground", "shape", stiffness=1e3, dissipation=1.0)
    system = system.astype(dtype)
    parameters = dl.Parameters(
        system,
        ["shape/radius", "shape/half_length", "shape/position_z", "contacts/friction[0]"],
    )
    quarter = np.sqrt(0.5)
    q = jnp.asarray([quarter, 0, quarter * 0.9, 0.1, 0, 0, 0.1], dtype)
    q = q.at[:4].divide(jnp.linalg.norm(q[:4]))
    v = jnp.asarray([0.5, 0.1, 0.3, 0.2, 0.1, 0], dtype)

    def end(values):
        moved = parameters.with_values(values)
        return jnp.sum(dl.simulate(moved, q, v, dt=1e-3, steps=300).q[-1])

    values = parameters.values_of(system)
    reverse, forward = jax.grad(end)(values), jax.jacfwd(end)(values)
    tolerance = 1e-9 if dtype == "float64" else 2e-3
    np.testing.assert_allclose(reverse, forward, rtol=tolerance, atol=tolerance)
    assert np.all(np.abs(reverse) > 1e-4)
    if dtype == "float64":
        for k in range(4):
            h = 1e-7 * np.eye(4)[k]
            slope = (end(values + h) - end(values - h)) / 2e-7
            np.testing.assert_allclose(reverse[k], slope, rtol=2e-5, atol=1e-6)


def test_what_may_touch():
    """Guards the pairs: not of one body, of two that a joint connects, of what stands still."""
    links = [dl.Body(name=n, joint=dl.Revolute(), mass=1.0, position=(0, 0.4, 0)) for n in "abc"]
    system = dl.chain(links).with_shapes(
        {f"{n}{k}": dl.Sphere(n, 0.1) for n in "abc" for k in (1, 2)}
        | {"floor": dl.Plane(), "wall": dl.Box(None, (1, 1, 1))}
    )
    pairs = dl.matching_pairs(system)
    assert ("a1", "c1") in pairs and ("a1", "floor") in pairs
    assert not {("a1", "a2"), ("a1", "b1"), ("floor", "wall"), ("wall", "floor")} & set(pairs)
    assert len(pairs) == 4 + 12
    fewer = dl.matching_pairs(system, "a*", "*", without=[("*", "wall"), ("floor", "a2")])
    assert set(fewer) == {("a1", "floor"), *((a, c) for a in ("a1", "a2") for c in ("c1", "c2"))}
    with pytest.raises(ValueError, match="no shape is named 'flor'; did you mean 'floor'"):
        dl.touching(system, "flor")
    with pytest.raises(ValueError, match="no two of the shapes 'a1' and 'a2' may touch"):
        dl.touching(system, "a1", "a2")


def test_all_contacts_are_one_coupling():
    """Guards that a second call adds pairs, keeps the numbers of others, and replaces its own."""
    links = [dl.Body(name=n, joint=dl.Free(), parent=None, mass=1.0) for n in "ab"]
    system = dl.tree(links).with_shapes(
        {"a": dl.Sphere("a", 0.1), "b": dl.Sphere("b", 0.1), "floor": dl.Plane()}
    )
    system = dl.touching(system, "floor", "*", friction=0.3, stiffness=1e3, slip_velocity=0.02)
    assert list(system.idle_shapes) == [] and set(system.shapes) == {"a", "b", "floor"}
    system = dl.touching(system, "b", "a", friction=0.5, stiffness=[2e3])
    system = dl.touching(system, "floor", "b", friction=0.7)
    (contact,) = system.couplings
    assert contact.pairs == (("floor", "a"), ("b", "a"), ("floor", "b"))
    np.testing.assert_allclose(contact.friction, [0.3, 0.5, 0.7])
    np.testing.assert_allclose(contact.stiffness, [1e3, 2e3, 9.81e3])
    np.testing.assert_allclose(contact.slip_velocity, 0.02)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"": dl.Plane()}, "has no name"),
        ({"a": dl.Sphere("body", -1.0)}, "radius is -1.0 m; it must be positive"),
        ({"a": dl.Sphere("bdy", 1.0)}, "no body is named 'bdy'; did you mean 'body'"),
        ({"shape": dl.Plane()}, "is there already"),
        ({"a": dl.ConvexHull("body", np.eye(3))}, r"vertices has shape \(3, 3\); give"),
        ({"a": 3.0}, "give a shape, such as"),
    ],
)
def test_faults_of_shapes(shapes, message):
    """Guards one clear sentence for each fault."""
    with pytest.raises(dl.ModelError, match=message):
        free().with_shapes(shapes)


def test_numbers_have_paths():
    """Guards 'SHAPE/radius', and that the names of bodies and joints go first."""
    system = free(name="shape", shape=dl.Sphere("shape", 0.1))
    system = system.with_shapes({"idle": dl.Box(None, (1, 1, 1))})
    system = dl.touching(system, "shape", "ground")
    assert dl.Parameters(system, ["shapes/shape/radius"]).names == ("shape/radius",)
    places = dl.Parameters(system, ["shape/position", "shapes/shape/position"])
    assert len(places.names) == 6 and places.names[3] == "shapes/shape/position_x"
    assert "ground/position_z" in dl.Parameters(system, ["ground/*"]).names
    assert not any("idle" in name for name in dl.Parameters(system, ["*"]).names)
    assert len(dl.Parameters(system, ["idle/half_sizes"]).names) == 3


def test_shapes_on_frames():
    """Guards that a shape on a named frame is on the body of that."""
    tip = {"tip": dl.Frame("body", (0, 0, 1), (0, 0.5, 0))}
    system = free(ground=False).with_frames(tip)
    system = system.with_shapes({"on tip": dl.Sphere(dl.Frame("tip", (1, 0, 0)), 0.1)})
    frame = system.shapes["on tip"].frame
    assert frame.body == "body"
    np.testing.assert_allclose(frame.position, [np.cos(0.5), 0, 1 - np.sin(0.5)], atol=1e-15)
