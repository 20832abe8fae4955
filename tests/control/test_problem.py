"""Problems: terms, inputs, limits, and one clear sentence for each fault, before compiling."""

import jax.numpy as jnp
import numpy as np
import pytest
from machines import pendulum, satellite, slider, swing

import difflie as dl
from difflie import control as dc


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda: swing(final=[dc.Reach("rod", [0.0, 0.0, 5.0])]), "out of reach: it is 5 m"),
        (lambda: swing(limits=dc.Limits(u_lower=3.0, u_upper=-3.0)), "contradict each other"),
        (lambda: swing(limits=dc.Limits(q_lower=jnp.array([0.5]))), "'rod' is 0, and it must be"),
        (lambda: swing(limits=dc.Limits(v=jnp.ones(3))), "limits.v has shape"),
        (lambda: swing(limits=dc.Limits(u_lower=0.0, u_upper=0.0)), "are both zero"),
        (lambda: swing(running=[dc.Effort(jnp.nan)]), "must be finite"),
        (lambda: swing(running=[dc.Effort(-1.0)]), "negative weight"),
        (lambda: swing(running=[lambda s, q, v, u, t: jnp.log(q)]), r"\[-inf\] at the start"),
        (lambda: swing(running=[dc.Effort(jnp.ones(3))]), "has 1 entries, and its weight"),
        (lambda: swing(running=[dc.Effort(1.0, [1.0, 2.0])]), r"goal of Effort .* \(2,\), needed"),
        (lambda: swing(running=[dc.Point("rodd", jnp.zeros(3))]), "did you mean 'rod'"),
        (lambda: swing(final=[dc.Effort(1.0)]), "at the end there is no control"),
        (
            lambda: swing(final=[dc.State([0.0, 0.0, 1.0])]),
            r"final: q of State has the shape \(3,\), needed is \(1,\), for 'rod'$",
        ),
        (
            lambda: swing(running=[dc.State([0.0], v=[0.0, 1.0])]),
            r"running: v of State has the shape \(2,\), needed is \(1,\), for 'rod'$",
        ),
        (
            lambda: swing(final=[dc.ReachState([0.0, 0.0])]),
            r"q of ReachState .* \(1,\), for 'rod'$",
        ),
        (lambda: swing(final=[dc.Velocity(1.0, [0.0] * 3)]), r"goal of Velocity .*, for 'rod'$"),
        (lambda: swing(final=[dc.Point("rod", [0.0])]), r"goal of Point .*, for 'x', 'y', 'z'$"),
        (lambda: swing(final=[lambda s, q, v, u, t: q @ jnp.ones(2)]), r"at the start: [^;]*$"),
        (lambda: swing(inputs=dc.Motors("elbow")), "no joint that moves by itself fits 'elbow'"),
        (lambda: swing(inputs=dc.Motors([])), "Motors has no joints"),
        (
            lambda: swing(inputs=dc.Map(lambda s, q, v, u, t: u, 1, upper=jnp.ones(3))),
            r"upper has the shape \(3,\)",
        ),
        (lambda: swing(steps=0), "steps is 0"),
        (lambda: swing(dt=-1.0), "dt is -1"),
        (lambda: swing(running=[], final=[]), "there is no cost"),
        (lambda: swing(running=[dc.Duration()]), "give it in final"),
        (lambda: swing(interpolation="cubic"), "'constant' or 'linear'"),
        (lambda: swing(duration=(2.0, 1.0)), "the least duration"),
        (lambda: swing(inputs=dc.Map(lambda s, q, v, u, t: jnp.zeros(4), 2)), r"shape \(4,\)"),
        (lambda: swing().replace(step=3), "'step' is no argument"),
        (lambda: swing().with_goal(jnp.zeros(9)), "no term has a goal"),
    ],
)
def test_faults(fault, words):
    with pytest.raises((ValueError, TypeError), match=words):
        dc.solve(fault())


def test_solvers_by_name():
    """As methods of `simulate`; the nearest name of an unknown one, and all there are."""
    assert str(dc.solve(swing(), "FDDP")) == str(dc.solve(swing()))
    with pytest.raises(ValueError, match=r"did you mean Ipopt\? known: FDDP, Inter.*, Ipopt$"):
        dc.solve(swing(), "ipopt")
    with pytest.raises(TypeError, match=r"solver is .*; give a solver such as FDDP\(\), or its"):
        dc.solve(swing(), dc.FDDP)


def test_guesses_of_another_size():
    with pytest.raises(ValueError, match="guess has shape"):
        dc.solve(swing(), guess=jnp.zeros((3, 1)))
    with pytest.raises(TypeError, match=r"guess is a tuple of 2; give .* \(q, v, u\)"):
        dc.solve(swing(), guess=(jnp.zeros((3, 1)), jnp.zeros((3, 1))))
    with pytest.raises(TypeError, match="guess is a function; give a plan"):
        dc.solve(swing(), guess=lambda system, t: (t, t))


def test_goals_are_checked_before_anything_is_traced():
    """Guards users from errors of shapes within their own quantities."""

    def never(system, q, v, u, t):
        raise AssertionError

    with pytest.raises(ValueError, match="goal of Effort has the shape"):
        dc.solve(swing(running=[never, dc.Effort(1.0, jnp.zeros(4))]))


def test_actuators_with_a_memory_are_refused():
    system = dl.attach(slider(), dl.Thruster("block", lag=0.1))
    with pytest.raises(ValueError, match="has a memory"):
        dc.Problem(system, [0.0], [0.0], dt=0.1, steps=3, running=[dc.Effort()])


def test_inputs_make_commands():
    """Motors by pattern, thrusters on their axes, and any map, one beside the other."""
    system = satellite()
    nose = dl.Axis("hull", (0.0, 0.5, 0.0), (1.0, 0.0, 0.0))
    both = dc.Concatenated([dc.Motors("hull[2]"), dc.Thrusters([nose], upper=3.0)])
    assert both.size(system) == 2 and both.labels(system)[0][0].endswith("[2]")
    lower, upper = both.bounds(system)
    np.testing.assert_array_equal(lower, [-np.inf, 0.0])
    np.testing.assert_array_equal(upper, [np.inf, 3.0])
    q = system.neutral()
    tau = both.command(system, q, jnp.zeros(6), jnp.array([0.2, 2.0]), 0.0)
    np.testing.assert_allclose(tau, [0.0, 0.0, 0.2 - 1.0, 2.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.slow
def test_motors_choose_among_actuators():
    """Commands by joint on a machine with actuators: their bounds, and zero for the others."""
    arm = dl.load("difflie/data/arm7.urdf")
    servo = dl.PositionServo("joint3", kp=10.0, kd=1.0)
    driven = dl.attach(arm, dl.Motor("joint2", max_torque=5.0), servo, dl.Drive("joint5"))
    chosen = dc.Motors(["joint5", "joint2"])
    assert chosen.labels(driven) == (("joint5", ""), ("joint2", ""))
    np.testing.assert_array_equal(chosen.bounds(driven)[1], [np.inf, 5.0])
    at = driven.neutral(), jnp.zeros(7)
    command = chosen.command(driven, *at, jnp.array([1.0, 2.0]), 0.0)
    np.testing.assert_array_equal(command, [2.0, 0.0, 1.0])
    assert dc.Motors("*").size(driven) == 3
    with pytest.raises(dl.ModelError, match="no actuator acts at a joint 'joint1' by itself"):
        dc.Motors("joint1").size(driven)
    with pytest.raises(dl.ModelError, match="attach each of the Thrusters as an actuator"):
        dc.Thrusters([dl.Axis("link7", (0, 0, 0), (1, 0, 0))]).size(driven)
    problem = dc.Problem(
        driven, *at, dt=0.05, steps=4, inputs=dc.Motors("joint2"), running=[dc.Effort(1.0)]
    )
    plan = dc.solve(problem, dc.FDDP())
    assert plan.u.shape == (4, 1)


@pytest.mark.slow
def test_thrusters_choose_among_actuators():
    """Those along axes by their names, within both bounds, beside motors; zero for the others."""
    hull = satellite()
    jets = [
        dl.Thruster(axis=dl.Axis("hull", (0, 0, 0), axis), max_thrust=most, name=f"jet{k}")
        for k, (axis, most) in enumerate((((1.0, 0, 0), 5.0), ((0, 1.0, 0), 2.0)))
    ]
    driven = dl.attach(hull, jets[0], dl.Drive("hull[2]"), jets[1])
    both = dc.Concatenated([dc.Thrusters(actuators="jet*", upper=3.0), dc.Motors("hull[2]")])
    assert [name for name, _ in both.labels(driven)] == ["jet0", "jet1", "hull[2]"]
    np.testing.assert_array_equal(both.bounds(driven)[0], [0.0, 0.0, -np.inf])
    np.testing.assert_array_equal(both.bounds(driven)[1], [3.0, 2.0, np.inf])
    at = driven.neutral(), jnp.zeros(6)
    command = both.command(driven, *at, jnp.array([1.0, 2.0, 3.0]), 0.0)
    np.testing.assert_array_equal(command, [1.0, 3.0, 2.0])
    with pytest.raises(dl.ModelError, match="no actuator along an axis fits 'jut0'; did you mean"):
        dc.Thrusters(actuators="jut0").size(driven)
    with pytest.raises(dl.ModelError, match="neither axes nor actuators"):
        dc.Thrusters().size(hull)
    problem = dc.Problem(*(driven, *at), dt=0.05, steps=4, inputs=both, running=[dc.Effort(1.0)])
    assert dc.solve(problem, dc.FDDP()).u.shape == (4, 3)


def test_limits_are_those_of_the_file():
    arm = dl.load("difflie/data/arm7.urdf")
    limits = dc.Limits.of(arm)
    np.testing.assert_array_equal(limits.q_upper, arm.joints.upper)
    np.testing.assert_array_equal(limits.u_upper, arm.joints.max_effort)
    positions, velocities = limits.of_states(arm)
    assert positions.lower.shape == (7,) and velocities.upper.shape == (7,)
    assert dc.Limits.of(pendulum()).of_states(pendulum()) == ()


@pytest.mark.slow
def test_limits_of_actuators():
    """A motor's own bound is one of the control, up to which it is linear."""
    system = dl.attach(slider(), dl.Motor("block", max_torque=2.0))
    lower, upper = dc.Limits.of(system).of_controls(system, dc.Commands())
    np.testing.assert_array_equal([lower, upper], [[-2.0], [2.0]])
    problem = dc.Problem(
        system,
        [0.0],
        [0.0],
        dt=0.1,
        steps=20,
        running=[dc.Effort(1e-3)],
        final=[dc.State([1.5], 100.0)],
    )
    plan = dc.solve(problem)
    assert plan.result.converged and np.abs(plan.u).max() == 2.0


def test_a_goal_may_be_a_frame():
    """Guards goals of poses: a frame in the world is its pose, one on a body is refused."""
    turned = dl.Frame(None, (0.1, 0.2, 0.3), (0.0, 0.0, np.pi / 2))
    pose = [[0.0, -1.0, 0.0, 0.1], [1.0, 0.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.0, 1.0]]
    for kind in (dc.Pose, dc.Reach):
        np.testing.assert_allclose(kind("rod", turned).quantity.goal, pose, atol=1e-15)
        with pytest.raises(dl.ModelError, match="a frame on 'rod'; leave out its body"):
            kind("rod", dl.Frame("rod"))
