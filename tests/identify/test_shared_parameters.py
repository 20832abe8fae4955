"""Several machines in one fit: with and without a payload, and two robots of one kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.identify.elimination import Linearised, residuals_and_jacobian
from difflie.identify.search import Residual, evaluated


def link(name, mass, com=-0.2, joint=None):
    return dl.Body(
        name=name,
        joint=joint or dl.Revolute(name=f"{name} joint", axis=(0.0, 1.0, 0.0)),
        mass=mass,
        com=(0.02, 0.0, com),
        inertia=np.diag((0.01, 0.01, 0.001)),
        position=(0.0, 0.0, 0.0 if name == "upper" else -0.4),
    )


def arm(masses=(1.0, 1.0), friction=(0.1, 0.1), payload=None):
    load = [] if payload is None else [link("payload", payload, 0.0, dl.Fixed(name="flange"))]
    system = dl.chain([link("upper", masses[0]), link("lower", masses[1]), *load], name="arm")
    return system.replace(friction=np.array(friction))


def recording(truth, seed, noise=0.0):
    """Sines at both joints, and the torques that they need."""
    rng = np.random.default_rng(seed)
    t, w = np.linspace(0, 4, 201)[:, None], rng.uniform(2, 5, 2)
    q, v, a = 0.8 * np.sin(w * t), 0.8 * w * np.cos(w * t), -0.8 * w**2 * np.sin(w * t)

    def torque(q, v, a):
        return dl.inverse_dynamics(truth, q, v, a) - dl.passive_force(truth, q, v)

    tau = np.asarray(jax.vmap(torque)(q, v, a)) + noise * rng.normal(size=q.shape)
    return di.Recording(f"sines {seed}", t[:, 0], q, v, a, tau)


def torques(name, system, log):
    return di.OfMachine(name, di.InverseDynamics.of(system, [log], 0.01))


MASSES, FRICTION, LOAD = (1.3, 0.7), (0.4, 0.2), 0.5
SHARED = ["upper/mass", "lower/mass", "*/friction"]


@pytest.fixture(scope="module")
def loaded():
    """The arm with and without a payload, as it is before the fit."""
    systems = {"light": arm(), "loaded": arm(payload=0.1)}
    parameters = dl.SharedParameters(systems, SHARED, own={"loaded": ["payload/mass"]})
    truths = arm(MASSES, FRICTION), arm(MASSES, FRICTION, LOAD)
    logs = [recording(truth, k, 0.01) for k, truth in enumerate(truths)]
    named = zip(systems.items(), logs, strict=True)
    return parameters, [torques(name, system, log) for (name, system), log in named], logs


@pytest.mark.slow
def test_a_payload_and_the_links_that_carry_it(loaded):
    """Noise aside both are found, with right errors and as the profile likelihood says."""
    parameters, problems, logs = loaded
    assert parameters.names[4:] == ("loaded: payload/mass",)
    assert parameters.units == ("kg", "kg", "N m", "N m", "kg")
    found = di.fit(parameters, problems)
    assert found.converged, found.message
    off = (found.values - np.array((*MASSES, *FRICTION, LOAD))) / found.standard_errors
    assert np.abs(off).max() < 4
    assert found.standard_errors.max() < 0.01
    assert found.variance == pytest.approx(1, abs=0.15)
    np.testing.assert_allclose(found.systems["loaded"].bodies.mass[2], found.values[4], rtol=1e-12)
    for name, log in zip(("light", "loaded"), logs, strict=True):
        (judged,) = found.validate(log.between(0, 1), machine=name)
        assert max(judged.torque_rmse) < 0.015
    assert di.profile(found, "loaded: payload/mass").interval == pytest.approx(
        found.intervals[4], abs=0.2 * found.standard_errors[4]
    )
    with pytest.raises(ValueError, match=r"light and loaded; take one of them from fit.systems"):
        _ = found.system
    with pytest.raises(ValueError, match="no machine is named 'heavy'; there are light, loaded"):
        found.validate(logs[0], machine="heavy")


@pytest.mark.slow
def test_two_robots_of_one_kind():
    """Links in common, friction and a scatter of recordings of their own."""
    frictions = {"red": (0.4, 0.2), "blue": (0.1, 0.5)}
    systems = {name: arm() for name in frictions}
    own = {name: ["*/friction"] for name in frictions}
    parameters = dl.SharedParameters(systems, ["*/mass"], own)
    assert parameters.names == (
        *("upper/mass", "lower/mass"),
        *(f"{robot}: {joint} joint/friction" for robot in systems for joint in ("upper", "lower")),
    )
    problems = [
        torques(name, systems[name], recording(arm(MASSES, friction), k))
        for k, (name, friction) in enumerate(frictions.items())
    ]
    found = di.fit(parameters, problems)
    assert found.converged, found.message
    truth = (*MASSES, *frictions["red"], *frictions["blue"])
    np.testing.assert_allclose(found.values, truth, rtol=1e-8)


@pytest.mark.slow
def test_jacobians_are_those_of_differences():
    """Of torques, and of motions whose windows have states of their own."""
    systems = {"light": arm(), "loaded": arm(payload=0.1)}
    prior = dl.Parameter("lower/mass", prior=(0.9, 0.1))
    own = {"loaded": ["payload/mass"]}
    parameters = dl.SharedParameters(systems, ["*r/mass", "*/friction", prior], own)
    logs = [recording(arm(MASSES, FRICTION), 0), recording(arm(MASSES, FRICTION, LOAD), 1)]
    motion = di.Shooting.of(systems["light"], [logs[0].between(0, 0.6)], window=10, free=True)
    problems = di.OfMachine("light", motion), torques("loaded", systems["loaded"], logs[1])
    residual, args = Residual(di.Squares()), (parameters, problems)
    own_start = tuple(problem.own for problem in problems)
    unknown = parameters.start, own_start
    r, jacobian = residuals_and_jacobian(residual, unknown, args)
    assert len(r) == motion.measured.size + problems[1].measured.size + 1
    h, columns = 1e-6, []
    for k in range(parameters.start.size):
        step = h * jnp.eye(parameters.start.size)[k]
        moved = (parameters.start + step, own_start), (parameters.start - step, own_start)
        up, down = (evaluated(residual, unknown, args) for unknown in moved)
        columns.append((up - down) / (2 * h))
    differences = np.stack(columns, axis=1)
    shared = np.asarray(jacobian)[:, : parameters.start.size]
    np.testing.assert_allclose(shared, differences, atol=1e-6 * np.abs(shared).max())
    # The step of the search, with states eliminated, is that of all unknowns at once.
    damping = np.full(jacobian.shape[1], 0.1)
    step, _ = Linearised.of(residual, unknown, args).minimum(damping)
    rows = np.concatenate((jacobian, np.diag(damping)))
    whole = np.linalg.lstsq(rows, -np.append(r, 0 * damping), rcond=None)[0]
    np.testing.assert_allclose(step, whole, rtol=1e-6, atol=1e-9)


def test_one_vector_for_all_machines(loaded):
    parameters, *_ = loaded
    x = parameters.start + 0.1
    values = parameters.values(x)
    made, back = jax.jit(lambda x: parameters.system_at(x))(x), parameters.with_values(values)
    for name in ("light", "loaded"):
        np.testing.assert_allclose(made[name].bodies.mass, back[name].bodies.mass, rtol=1e-12)
    np.testing.assert_array_equal(made["light"].bodies.mass, made["loaded"].bodies.mass[:2])
    np.testing.assert_allclose(parameters.initial, (1, 1, 0.1, 0.1, 0.1))
    np.testing.assert_array_equal(parameters.limits[0], np.zeros(5))
    np.testing.assert_array_equal(parameters.bounded, [[True] * 5, [False] * 5])
    with pytest.raises(ValueError, match="5"):
        parameters.system_at(x[:3])


def test_a_shared_prior_counts_once():
    prior = dl.Parameter("lower/mass", prior=(0.9, 0.1))
    parameters = dl.SharedParameters({"a": arm(), "b": arm()}, [prior], {"b": ["*/friction"]})
    assert parameters.prior_names == ("lower/mass",)
    np.testing.assert_allclose(parameters.residual(parameters.start), [1.0])


@pytest.mark.slow
def test_a_function_may_write_what_is_shared():
    """One friction at two joints with a ratio, in two robots."""

    def wear(system, friction):
        return system.replace(friction=jnp.stack((friction, friction / 2)))

    worn = dl.Parameter("wear", of=wear, start=0.1, bounds=(0, None), unit="N m")
    systems = {"red": arm(), "blue": arm()}
    parameters = dl.SharedParameters(systems, ["upper/mass", worn], {"blue": ["lower/mass"]})
    assert parameters.names == ("upper/mass", "wear", "blue: lower/mass")
    truths = {"red": arm((1.3, 1.0), (0.4, 0.2)), "blue": arm((1.3, 0.7), (0.4, 0.2))}
    problems = [torques(n, systems[n], recording(truths[n], k)) for k, n in enumerate(truths)]
    found = di.fit(parameters, problems)
    np.testing.assert_allclose(found.values, (1.3, 0.4, 0.7), rtol=1e-8)


@pytest.mark.parametrize(
    ("systems", "shared", "own", "words"),
    [
        ({}, ["*/mass"], {"read": []}, "own: no machine is named 'read'; did you mean 'red'"),
        ({"blue": arm((1.0, 2.0))}, ["*/mass"], {}, "blue: 'lower/mass' has another start.*own"),
        ({}, ["*/mass"], {"red": ["*r/mass"]}, "share no number"),
        ({}, ["*/weight"], {}, "no parameter matches"),
        ({}, "*/mass", {}, "the string '\\*/mass'; give a list"),
        ({"blue": arm().astype("float32")}, ["*/mass"], {}, "unlike precisions"),
    ],
)
def test_machines_that_do_not_go_together(systems, shared, own, words):
    given = {"red": arm(), "blue": arm()} | systems
    if own == {"red": ["*r/mass"]}:
        shared, own = [], own | {"blue": ["*r/mass"]}
    with pytest.raises(ValueError, match=words):
        dl.SharedParameters(given, shared, own)


def test_one_machine_shares_nothing():
    with pytest.raises(ValueError, match="give two systems or more by name"):
        dl.SharedParameters({"red": arm()}, ["*/mass"])


def test_problems_say_of_which_machine_they_are(loaded):
    parameters, problems, _ = loaded
    with pytest.raises(di.DataError, match=r"InverseDynamics does not say .* OfMachine\('light'"):
        di.fit(parameters, problems[0].problem)
    with pytest.raises(di.DataError, match="no machine is named 'heavy'; there are light"):
        di.fit(parameters, di.OfMachine("heavy", problems[0].problem))
    with pytest.raises(di.DataError, match=r"arm is one machine; .* without OfMachine"):
        di.fit(dl.Parameters(arm(), ["*/mass"]), problems[:1])
