"""The time loop: shapes, inputs, results and derivatives."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum

import difflie as dl
from difflie.cli.demo import START, arm

ARM = arm()
Q0 = jnp.asarray(START)
REST = jnp.zeros(7)


def free_chain() -> dl.System:
    """Three bodies in weightlessness, the first of them free."""
    inertia = np.diag([0.3, 0.4, 0.5])
    return dl.chain(
        [
            dl.Body(name="a", joint=dl.Free(), mass=2.0, com=(0.1, 0.0, 0.05), inertia=inertia),
            dl.Body(
                name="b",
                joint=dl.Revolute(axis=(0.0, 1.0, 1.0), damping=0.05, friction=0.02),
                position=(0.5, 0.1, 0.0),
                mass=1.0,
                com=(0.3, 0.0, 0.0),
                inertia=inertia / 3,
            ),
            dl.Body(
                name="c",
                joint=dl.Spherical(),
                position=(0.6, 0.0, 0.1),
                rotation=(0.1, -0.2, 0.3),
                mass=0.7,
                com=(0.0, 0.2, 0.0),
                inertia=inertia / 5,
            ),
        ],
        gravity=(0.0, 0.0, 0.0),
    )


CHAIN = free_chain()


PENDULUM = pendulum(lower=-2.0, upper=2.0, max_effort=5.0)


def test_shapes_and_times():
    run = dl.simulate(ARM, Q0, REST, dt=1e-3, steps=10, save_every=3, method="SemiImplicitEuler")
    assert run.q.shape == (4, 7)
    assert run.v.shape == (4, 7)
    np.testing.assert_allclose(run.t, [0.0, 3e-3, 6e-3, 9e-3])
    every = dl.simulate(ARM, Q0, REST, dt=1e-3, steps=9, method="SemiImplicitEuler")
    np.testing.assert_array_equal(run.q, every.q[::3])


def test_pendulum_follows_its_closed_form_for_small_swings():
    run = dl.simulate(PENDULUM, jnp.asarray([1e-4]), jnp.zeros(1), dt=1e-2, steps=300)
    np.testing.assert_allclose(run.q[:, 0], 1e-4 * np.cos(np.sqrt(9.81) * run.t), atol=2e-11)


@pytest.mark.slow
def test_free_chain_keeps_momentum_and_its_manifold():
    chain = CHAIN.replace(damping=jnp.zeros(10), friction=jnp.zeros(10))
    v0 = jnp.linspace(-1.0, 1.0, chain.nv)
    run = dl.simulate(chain, chain.neutral(), v0, dt=2e-3, steps=500, save_every=50)
    momentum = run.momentum(chain)
    np.testing.assert_allclose(momentum, jnp.broadcast_to(momentum[0], momentum.shape), atol=1e-9)
    total = sum(run.energy(chain))
    np.testing.assert_allclose(total, total[0], rtol=1e-10)
    assert float(jnp.max(run.constraint_error(chain))) < 1e-14


SATELLITE = dl.tree(
    [dl.Body(name="satellite", joint=dl.Free(), mass=1.0, inertia=np.diag([0.8, 1.0, 1.3]))],
    gravity=(0.0, 0.0, 0.0),
)
SPIN = (1.2, -1.0, 1.2, 0.0, 0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    ["SemiImplicitEuler", "RKMK4", "StormerVerlet", "VariationalMidpoint", "GeneralizedAlpha"],
)
def test_attitudes_stay_unit_quaternions_in_single_precision(method):
    """What rounding does in a step does not collect; the end is a start for the next motion."""
    body, spin = SATELLITE.astype("float32"), jnp.asarray(SPIN, jnp.float32)
    run = dl.simulate(
        *(body, body.neutral(), spin), dt=1e-3, steps=5000, save_every=5000, method=method
    )
    assert run.result.ok
    assert float(run.constraint_error(body)[-1]) <= 2e-7


def test_sampled_inputs():
    """An array is held over each step; interpolated samples of a linear function are exact."""
    steps, dt = 20, 1e-2
    times = dt * jnp.arange(steps + 1)
    ramp = times[:, None] * 3.0

    def run(control):
        return dl.simulate(PENDULUM, [0.1], [0.0], dt=dt, steps=steps, control=control).q

    by_function = run(lambda t, q, v: 3.0 * t[None])
    np.testing.assert_allclose(run(dl.FirstOrderHold(ramp)), by_function, atol=1e-15)
    np.testing.assert_allclose(run(dl.FirstOrderHold(ramp[::5], 5)), by_function, atol=1e-14)
    held = run(ramp[:-1])
    by_steps = run(lambda t, q, v: 3.0 * dt * jnp.floor(t[None] / dt + 1e-9))
    np.testing.assert_array_equal(held, run(dl.ZeroOrderHold(ramp[:-1])))
    assert float(jnp.max(jnp.abs(held - by_steps))) > 1e-6  # its stages see the next value
    coarse = jnp.repeat(ramp[:-1:4], 4, axis=0)
    np.testing.assert_array_equal(run(dl.ZeroOrderHold(ramp[:-1:4], 4)), run(coarse))


@pytest.mark.slow
def test_wrench_acts_in_the_body_frame():
    """A constant wrench on a free body about its centre of mass: a constant acceleration."""
    body = dl.Body(name="body", joint=dl.Free(), mass=2.0, inertia=np.diag([1.0, 2.0, 3.0]))
    system = dl.chain([body], gravity=(0.0, 0.0, 0.0))
    wrench = jnp.asarray([[0.0, 0.0, 0.0, 4.0, 0.0, 0.0]])
    start = system.neutral(), jnp.zeros(6)
    run = dl.simulate(system, *start, dt=1e-2, steps=50, wrench=lambda *_: wrench)
    np.testing.assert_allclose(run.q[:, 4], run.t**2, atol=1e-13)
    held = jnp.broadcast_to(wrench, (50, 1, 6))
    again = dl.simulate(system, *start, dt=1e-2, steps=50, wrench=held)
    np.testing.assert_allclose(again.q, run.q, atol=1e-15)


def test_result_reports_limits_and_failure():
    quiet = dl.simulate(PENDULUM, [0.1], [0.0], dt=1e-2, steps=10)
    assert bool(quiet.result.ok)
    assert bool(quiet.result.within_limits)
    assert str(quiet.result) == "completed: 10 steps, 0.1 s"
    far = dl.simulate(
        PENDULUM, [1.9], [2.0], dt=1e-2, steps=50, control=lambda t, q, v: 6.0 + 0 * q
    )
    assert bool(far.result.ok)
    assert not bool(far.result.within_limits)
    assert "joint 'bob' left its position limit first at t = 0.0" in str(far.result)
    assert "joint 'bob' left its effort limit first at t = 0 s" in str(far.result)
    lost = dl.simulate(
        PENDULUM,
        [0.1],
        [0.0],
        dt=1e-2,
        steps=50,
        control=lambda t, q, v: jnp.sqrt(0.255 - t) + 0 * q,
    )
    assert not bool(lost.result.ok)
    assert "not finite at t = 0.26 s (step 26 of 50)" in str(lost.result)
    assert np.all(lost.q[26:] == lost.q[25])


@pytest.mark.slow("EnergyMomentum", "VariationalMidpoint")
@pytest.mark.parametrize(
    "method",
    [
        *("SemiImplicitEuler", "DormandPrince54", "ImplicitMidpoint", "StormerVerlet"),
        *("VariationalMidpoint", "EnergyMomentum", "BDF1", "Moreau"),
    ],
)
def test_a_step_that_fails_is_not_made_nor_any_after_it(method):
    """Whatever the method, alone and in a batch, the state stays and the result names the step."""

    def run(push):
        return dl.simulate(
            *(PENDULUM, [0.1], [0.0]),
            dt=1e-2,
            steps=8,
            method=method,
            control=lambda t, q, v: jnp.where((t > 0.035) & (t < 0.065), push, 0 * q),
        )

    runs = jax.jit(jax.vmap(run))(jnp.asarray([0.0, jnp.inf]))
    assert list(runs.result.ok) == [True, False]
    failed = min(int(runs.result.nonfinite_step[1]), int(runs.result.unsolved_step[1]))
    assert failed in (4, 5)
    for x in (runs.q, runs.v):
        np.testing.assert_array_equal(x[1, :failed], x[0, :failed])
        assert np.all(x[1, failed:] == x[1, failed - 1])


@pytest.mark.parametrize("method", dl.integrators.METHODS, ids=lambda m: m.name)
def test_a_machine_that_cannot_move_stays(method):
    """A tree of fixed joints has empty states, which every method keeps."""
    frame = dl.tree([dl.Body(name="frame", joint=dl.Fixed(), mass=1.0)])
    run = dl.simulate(frame, jnp.zeros(0), jnp.zeros(0), dt=1e-2, steps=3, method=method)
    assert run.result.ok and run.q.shape == run.v.shape == (4, 0)


def test_many_limits_are_one_sentence():
    far = dl.simulate(ARM.replace(max_velocity=jnp.full(7, 1e-3)), Q0, REST + 1, steps=2)
    last = far.result.messages()[-1]
    assert last.startswith("7 joints left their velocity limits: 'joint1' (t = 0.001 s)")
    assert last.endswith("and 4 more")


def test_results_of_a_batch():
    """Limits are judged run by run, and the runs that failed are named."""

    def run(k):
        return dl.simulate(PENDULUM, [0.1], [0.0], steps=5, control=lambda t, q, v: k + 0 * q)

    result = jax.jit(jax.vmap(run))(jnp.asarray([0.0, 6.0, jnp.nan])).result
    np.testing.assert_array_equal(result.within_limits, (True, False, True))
    assert str(result).startswith("3 simulations, 1 failed: 2; the first of them failed: the state")


def test_a_traced_start_that_is_none_is_not_ok():
    """What a concrete start is refused for stands in the result of a traced one."""
    body = dl.Body(name="body", joint=dl.Free(), mass=1.0, inertia=np.eye(3))
    system = dl.chain([body])

    @jax.jit
    def run(q):
        return dl.simulate(system, q, jnp.zeros(6), steps=1, method="SemiImplicitEuler").result

    assert run(system.neutral()).ok
    result = run(2 * system.neutral())
    assert not result.ok and str(result).startswith("failed: the start breaks the constraints, or")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"dt": 0.0}, ValueError, "dt is 0.0"),
        ({"dt": -1e-3}, ValueError, "positive"),
        ({"dt": float("nan")}, ValueError, "dt is nan"),
        ({"dt": "0.1"}, TypeError, "dt is '0.1'; give real numbers"),
        ({"dt": True}, TypeError, "dt is bool"),
        ({"dt": jnp.ones(2)}, ValueError, r"dt has shape \(2,\), needed is \(\)"),
        ({"q0": jnp.asarray([1j])}, TypeError, "q0 is complex128; give real numbers"),
        ({"v0": [True]}, TypeError, "v0 is bool"),
        ({"control": "PD"}, TypeError, "control is 'PD'; give real numbers"),
        ({"save_every": 11}, ValueError, "save_every is 11 and there are 10 steps"),
        ({"steps": 2**31}, ValueError, "steps is 2147483648; it must be at most 2147483646"),
        ({"steps": 0}, ValueError, "steps is 0"),
        ({"steps": 1.5}, ValueError, "whole number"),
        ({"save_every": 0}, ValueError, "save_every"),
        ({"method": "RKMK44"}, ValueError, "did you mean RKMK4"),
        ({"q0": [float("nan")]}, ValueError, "q0"),
        ({"q0": [0.0, 0.0]}, ValueError, r"shape \(2,\), needed is \(1,\)"),
        ({"v0": jnp.zeros(1, jnp.float32)}, TypeError, "float32 and the system is float64"),
        ({"control": jnp.zeros((5, 1))}, ValueError, r"control has shape \(5, 1\)"),
        ({"control": jnp.zeros((10, 2))}, ValueError, r"needed is \(10, 1\), for 'bob' in this"),
        ({"control": [1.0, 2.0]}, ValueError, r"has shape \(2,\), needed is \(1,\), for 'bob'"),
        ({"control": PENDULUM}, TypeError, "is a System; give numbers, .*difflie.control.replay$"),
    ],
)
def test_bad_input_is_one_clear_error(change, error, words):
    arguments = {"q0": [0.1], "v0": [0.0], "dt": 1e-3, "steps": 10, **change}
    with pytest.raises(error, match=words):
        dl.simulate(PENDULUM, arguments.pop("q0"), arguments.pop("v0"), **arguments)


@pytest.mark.parametrize(
    ("dt", "duration", "steps"),
    [(1e-3, 2.0, 2000), (0.1, 0.3, 3), (1 / 240, 5, 1200), (np.float32(1e-3), 20.0, 20000)],
)
def test_a_duration_is_a_number_of_steps(dt, duration, steps):
    """Up to the rounding of what users write, and of single precision."""
    run = dl.simulate(PENDULUM, [0.1], [0.0], dt=dt, duration=duration, save_every=steps)
    assert int(run.result.steps) == steps
    np.testing.assert_allclose(run.t[-1], duration, rtol=1e-7)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"steps": 3}, ValueError, "simulate: steps is 3 and duration 1.0; give one of them"),
        (
            {"duration": 1.0005},
            ValueError,
            r"duration is 1\.0005 s, which is 1000\.5 steps of dt = 0\.001 s; give 1 \(1000 steps\)"
            r" or 1\.001 \(1001 steps\), or dt = 0\.0009995005$",
        ),
        ({"duration": 4e-4}, ValueError, r"give 0\.001 \(1 step\), or dt = 0\.0004$"),
        ({"duration": 0}, ValueError, "duration is 0 s; it must be positive"),
        ({"duration": "1"}, TypeError, "simulate: duration is '1'; give one number, in s"),
        ({"duration": [1.0]}, TypeError, "give one number"),
        ({"duration": 1e7}, ValueError, "steps is 10000000000; it must be at most"),
    ],
)
def test_a_duration_that_is_no_number_of_steps_is_refused(change, error, words):
    """With the nearest ones, and the dt that fits; also where the steps cannot be known."""
    with pytest.raises(error, match=words):
        dl.simulate(PENDULUM, [0.1], [0.0], **{"duration": 1.0, **change})
    with pytest.raises(TypeError, match=r"dt is traced, and a duration must .*; give steps"):
        jax.jit(lambda dt: dl.simulate(PENDULUM, [0.1], [0.0], dt=dt, duration=1.0).q)(1e-3)


def test_adaptive_methods_take_a_duration():
    """Its steps are divided, and end where the duration ends."""
    run = dl.simulate(PENDULUM, [0.1], [0.0], dt=0.1, duration=0.3, method=dl.BogackiShampine32())
    np.testing.assert_allclose(run.t, [0.0, 0.1, 0.2, 0.3], rtol=0, atol=1e-15)


def test_controls_of_some_joints_say_how_they_are_given():
    """Those of a plan have the width of its inputs, and so have those of a `Receding`."""
    controls = jnp.zeros((3, 2)), lambda t, q, v: q[:2], dl.Sampled(lambda t, q, v: q[:2], 1000)
    for control in controls:
        words = r"for 'joint1', .* and 1 more in this order; .*Drive\('joint1'\), and a plan is"
        with pytest.raises(ValueError, match=words):
            dl.simulate(ARM, Q0, REST, steps=3, control=control)


RETURNED = {
    "one entry": (lambda t, q, v: q[:1], ValueError, r"has shape \(1,\), needed is \(7,\)"),
    "a scalar": (lambda t, q, v: 5.0, ValueError, r"has shape \(\), needed is \(7,\)"),
    "nothing": (lambda t, q, v: None, TypeError, "control returns is None; give real numbers"),
    "a dictionary": (lambda t, q, v: {"a": q}, TypeError, "give real numbers"),
    "complex numbers": (lambda t, q, v: 1j * q, TypeError, "is complex128; give real numbers"),
    "booleans": (lambda t, q, v: q > 0, TypeError, "is bool; give real numbers"),
}


@pytest.mark.parametrize("kind", RETURNED)
def test_what_a_function_returns_is_checked(kind):
    """No control or wrench of another shape or kind is broadcast or cut, also in a batch."""
    function, error, words = RETURNED[kind]
    with pytest.raises(error, match=words):
        dl.simulate(ARM, Q0, REST, steps=3, control=function)
    if kind == "one entry":
        words = r"function wrench returns has shape \(1,\), needed is \(9, 6\)"
        with pytest.raises(error, match=words):
            jax.vmap(lambda v: dl.simulate(ARM, Q0, v, steps=3, wrench=function))(REST[None])


def test_what_is_no_single_system_is_refused():
    two = jax.tree.map(lambda a: jnp.stack((a, a)), PENDULUM)
    with pytest.raises(ValueError, match=r"a batch of systems; call this .* by jax\.vmap"):
        dl.simulate(two, [0.0], [0.0])
    with pytest.raises(TypeError, match="None is no System; give what difflie"):
        dl.simulate(None, [0.0], [0.0])
    with pytest.raises(TypeError, match="is no System"):
        dl.mass_matrix(PENDULUM.bodies, [0.0])


def test_more_states_than_memory_are_refused(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: 2**17)
    with pytest.raises(ValueError, match=r"000 saved states of arm7 take 120 GB, .* 17\.18 GB "):
        dl.simulate(ARM, Q0, REST, steps=10**9)


def test_a_function_is_evaluated_once_a_step():
    """By a method of one stage; the effort in the result is that of the same evaluation."""
    calls = []

    def control(t, q, v):
        jax.debug.callback(lambda: calls.append(0))
        return 6.0 + 0 * q

    run = dl.simulate(PENDULUM, [0.1], [0.0], steps=5, method="SemiImplicitEuler", control=control)
    jax.effects_barrier()
    assert len(calls) == 5
    assert int(run.result.effort_step[0]) == 0


@pytest.mark.slow("42-3")
@pytest.mark.parametrize(("steps", "every"), [(42, 3), (35, 35)])
def test_a_run_in_pieces_has_the_same_numbers(monkeypatch, steps, every):
    """Bit by bit; it can be stopped between two pieces, and is not cut where it is traced."""
    wrench = dl.FirstOrderHold(jnp.sin(jnp.arange(6.0 * 43)).reshape(43, 1, 6))
    gain = jnp.asarray(-0.3)

    def run(gain, progress=None):
        given = {"control": lambda t, q, v: gain * v + t, "wrench": wrench}
        given |= {"steps": steps, "save_every": every, "method": "SemiImplicitEuler"}
        return dl.simulate(PENDULUM, [1.9], [2.0], dt=1e-2, progress=progress, **given)

    whole, told = run(gain), []
    monkeypatch.setattr(importlib.import_module("difflie.simulate.loop"), "_PIECE", 10)
    pieces = run(gain, lambda *done: told.append(done))
    assert told[-1] == (steps, steps) and len(told) >= 4
    jax.tree.map(np.testing.assert_array_equal, pieces, whole)
    assert str(pieces.result) == str(whole.result)

    def stop(done, steps):
        told.append(done)
        raise KeyboardInterrupt

    told.clear()
    with pytest.raises(KeyboardInterrupt):
        run(gain, stop)
    assert len(told) == 1
    told.clear()
    jax.jvp(lambda k: run(k, stop).q, (gain,), (gain,))
    assert not told


def test_single_precision_stays_single():
    single = PENDULUM.astype(jnp.float32)
    q = jnp.asarray([0.1], jnp.float32)
    run = dl.simulate(single, q, jnp.zeros(1, jnp.float32), dt=1e-2, steps=10, method="CG3")
    assert {a.dtype for a in (run.t, run.q, run.v)} == {np.dtype("float32")}


def test_a_second_call_does_not_trace_again():
    count = 0

    def control(t, q, v):
        nonlocal count
        count += 1
        return -q

    for start in (0.1, 0.2):
        dl.simulate(PENDULUM, [start], [0.0], steps=5, control=control)
        if start == 0.1:
            first = count
    assert count == first


# Derivatives against central differences, to 1e-7 relative.


def arm_loss(system, q0, v0, control, dt):
    run = dl.simulate(system, q0, v0, dt=dt, steps=20, save_every=20, control=control)
    return jnp.sum(run.q[-1] * jnp.arange(1.0, 8.0)) + jnp.sum(run.v[-1] ** 2) / 10


def chain_loss(system, q0, v0, control, dt):
    run = dl.simulate(system, q0, v0, dt=dt, steps=20, save_every=20, control=control)
    weights = jnp.linspace(-1.0, 1.0, run.q.shape[1])
    return jnp.sum(run.q[-1] * weights) + jnp.sum(run.v[-1] ** 2) / 10


def arm_case():
    rng = np.random.default_rng(1)
    system = ARM.replace(friction=jnp.full(7, 0.3), damping=jnp.full(7, 0.2))
    control = jnp.asarray(rng.normal(size=(20, 7)))
    return arm_loss, (system, Q0, jnp.asarray(rng.normal(size=7)), control, jnp.asarray(5e-3))


def chain_case():
    rng = np.random.default_rng(2)
    q0 = CHAIN.neutral()
    control = jnp.asarray(rng.normal(size=(20, CHAIN.nv)))
    v0 = jnp.asarray(rng.normal(size=CHAIN.nv))
    # Springs on the joints; there are none on the free base.
    sprung = CHAIN.replace(stiffness=jnp.where(jnp.arange(CHAIN.nv) < 6, 0.0, 2.0))
    return chain_loss, (sprung, q0, v0, control, jnp.asarray(1e-2))


@pytest.mark.slow
@pytest.mark.thorough("arm_case")
@pytest.mark.parametrize("case", [arm_case, chain_case])
def test_every_derivative_against_central_differences(case):
    """Along random directions of every leaf: reverse mode, forward mode, and under vmap."""
    loss, point = case()
    compiled = jax.jit(loss)
    gradient = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3, 4)))(*point)
    leaves, structure = jax.tree.flatten(point)
    slopes = jax.tree.leaves(gradient)
    rng = np.random.default_rng(3)
    forward = jax.jit(lambda p, d: jax.jvp(loss, p, d)[1])
    checked = 0
    for i, (leaf, slope) in enumerate(zip(leaves, slopes, strict=True)):
        assert np.all(np.isfinite(slope)), jax.tree_util.tree_leaves_with_path(point)[i][0]
        if leaf.size == 0 or not np.all(np.isfinite(leaf)):
            continue
        direction = rng.normal(size=leaf.shape)
        scale = float(np.max(np.abs(leaf))) or 0.03
        # the inertias of one machine differ by orders of magnitude
        step = (3e-6 if np.ndim(leaf) == 3 else 3e-5) * scale / float(np.max(np.abs(direction)))

        def at(h, i=i, direction=direction):
            moved = [x + h * direction if j == i else x for j, x in enumerate(leaves)]
            return float(compiled(*jax.tree.unflatten(structure, moved)))

        # Richardson's extrapolation of central differences
        rough, fine = ((at(h) - at(-h)) / (2 * h) for h in (step, step / 2))
        difference = (4 * fine - rough) / 3
        reverse = float(np.sum(slope * direction))
        tolerance = 1e-7 * max(abs(difference), 1e-3)
        assert abs(reverse - difference) <= tolerance, (i, reverse, difference)
        tangents = [
            jnp.asarray(direction) if j == i else jnp.zeros_like(x) for j, x in enumerate(leaves)
        ]
        ahead = float(forward(point, jax.tree.unflatten(structure, tangents)))
        assert abs(ahead - reverse) <= 1e-9 * max(abs(reverse), 1e-3), i
        checked += 1
    assert checked >= 15


@pytest.mark.slow
def test_gradients_under_vmap():
    loss, (system, q0, v0, control, dt) = arm_case()
    gradient = jax.grad(lambda m, v: loss(system.replace(mass=m), q0, v, control, dt), (0, 1))
    masses = system.bodies.mass * jnp.asarray([[1.0], [1.1]])
    speeds = jnp.stack((v0, -v0))
    together = jax.jit(jax.vmap(gradient))(masses, speeds)
    for i in range(2):
        alone = jax.jit(gradient)(masses[i], speeds[i])
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_allclose(b[i], a, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RKMK4", "Moreau"])
def test_no_ranks_are_promoted_in_silence(method):
    """A program that forbids automatic promotion of ranks can use difflie."""
    with jax.numpy_rank_promotion("raise"):
        free = dl.Parameters(CHAIN, ["*/inertia", "*/mass"])

        def end(x):
            system = free.system_at(x)
            run = dl.simulate(
                system, CHAIN.neutral(), jnp.ones(CHAIN.nv), dt=1e-3, steps=2, method=method
            )
            return run.q[-1].sum() + dl.energy(system, run.q[-1], run.v[-1])[0]

        assert np.isfinite(jax.grad(end)(free.start)).all()
        assert np.isfinite(dl.mass_matrix(CHAIN, CHAIN.neutral())).all()
