"""Arms from their file and a log: simulated ones against what made the log, and what is wrong."""

import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import difflie as dl
from difflie import identify as di
from difflie.identify.arm_equations import Logs, chosen, weights_and_solution
from difflie.identify.fitting import judged
from difflie.identify.least_squares import Outcome
from difflie.identify.remarks import doubts, too_short
from difflie.identify.samples import bandwidth, samples
from difflie.identify.torque_rows import Friction, TorqueModel
from difflie.view.estimates import Estimated

DT, NOISE = 0.002, np.array((0.05, 0.04, 0.02))
DAMPING, FRICTION, ARMATURE = (0.8, 0.6, 0.3), (0.9, 0.7, 0.4), (0.1, 0.08, 0.03)
OFFSET = np.array((0.3, -0.2, 0.0))


def link(name, mass, length):
    inertia = mass * length**2 / 12 * np.diag((1.0, 1.0, 0.05)) + 1e-4 * mass * np.eye(3)
    return {"mass": mass, "com": (0.01, 0.0, length / 2), "inertia": inertia, "name": name}


def arm(masses=(2.0, 1.5, 0.8), **joints):
    """A shoulder of two axes and an elbow."""
    axes = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 1.0, 0.0))
    bodies, parent = [], None
    for k, (mass, axis) in enumerate(zip(masses, axes, strict=True)):
        own = {key: values[k] for key, values in joints.items()}
        joint = dl.Revolute(name=f"j{k + 1}", axis=axis, **own)
        place = 0.0, 0.0, 0.1 + 0.2 * min(k, 1)
        own = link(f"link{k + 1}", mass, 0.3)
        bodies.append(dl.Body(joint=joint, parent=parent, position=place, **own))
        parent = f"link{k + 1}"
    return dl.tree([*bodies], name="arm")


TRUE = arm(damping=DAMPING, friction=FRICTION, armature=ARMATURE, friction_velocity=(0.02,) * 3)
FILE = arm((2.6, 1.1, 1.0))


def motion(seconds=16.0, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(0, seconds, DT)
    q = np.zeros((len(t), 3))
    for hertz in (0.2, 0.33, 0.47, 0.71):
        q += rng.uniform(0.2, 0.6, 3) * np.sin(
            2 * np.pi * (hertz * t[:, None] + rng.uniform(size=3))
        )
    return t, q


def recording(system=TRUE, offset=OFFSET, noise=1.0, seed=0, name="run", **more):
    """The torques of a motion, with white noise, an offset and rounded positions."""
    t, q = motion(seed=seed, **more)
    v, a = np.gradient(q, DT, axis=0), np.gradient(np.gradient(q, DT, axis=0), DT, axis=0)
    silent = di.Recording(name, t, q, v, a, np.zeros_like(q))
    tau = np.asarray(di.InverseDynamics.of(system, [silent]).torques(system)).reshape(q.shape)
    tau = tau + offset + noise * NOISE * np.random.default_rng(seed + 9).normal(size=q.shape)
    return di.Recording(name, t, np.round(q, 6), None, None, tau)


@pytest.fixture(scope="module")
def fit():
    return di.identify_arm(FILE, recording(), recording(seed=5, name="other"))


def test_torques_are_drawn_beside_what_is_left(fit):
    """Of the first recording, or of one by its number."""
    axes = fit.plot(1).axes
    above, _, below = axes[:3]
    assert fit.plot(0).get_suptitle() == "arm: measured and predicted torques, run"
    assert above.get_title(loc="left") == "j1" and above.get_ylabel() == "[N m]"
    assert below.get_ylabel() == "residual"
    with pytest.raises(ValueError, match="there is no recording 2; give a number from 0 to 1"):
        fit.plot(2)


def test_joints_have_the_numbers_that_made_the_log(fit):
    """Damping, friction and offset; what armature has, links could have as well."""
    rows = zip(fit.names, fit.values, fit.standard_errors, strict=True)
    found = {name: (x, error) for name, x, error in rows}
    for k in range(3):
        for leaf, true in (
            ("damping", DAMPING[k]),
            ("friction", FRICTION[k]),
            ("torque_bias", -OFFSET[k]),
        ):
            value, error = found[f"j{k + 1}/{leaf}"]
            assert abs(value - true) < max(4 * error, 0.04), (k, leaf, value, error)


def test_rows_that_were_not_fitted_are_predicted_down_to_the_noise(fit):
    rows = [s for s in fit.assessment.scores if s.use == "validation"]
    assert fit.converged
    assert all(s.r2 > 0.995 for s in rows)
    assert all(s.nominal_r2 < s.r2 for s in rows)
    # Averages over the window leave less than the noise of single rows.
    assert all(s.rmse < deviation for s, deviation in zip(rows, NOISE, strict=True))
    assert "all joints are predicted well" in fit.assessment.verdict[0]


def test_base_parameters_are_those_of_the_true_machine(fit):
    """Within four standard errors, whatever links have them."""
    model = TorqueModel.of(TRUE)
    true = model.file_numbers()
    true[[model.names.index(f"j{k + 1}/offset") for k in range(3)]] = OFFSET
    base = fit.assessment.base
    off = np.abs(base.values - base.base.matrix @ true) / base.standard_errors
    assert np.median(off) < 2 and off.max() < 6


@pytest.mark.slow
def test_the_machine_has_these_torques(fit):
    """Its residuals of measured torques, with drives for the offsets, are small."""
    log = recording(noise=0.0).smoothed(21, 4)
    own = di.InverseDynamics.of(fit.system, [log])
    off = np.asarray(own.residual(fit.system, own.own)).reshape(log.q.shape)[200:-200]
    assert np.sqrt(np.mean(off**2, axis=0)).max() < 0.06


def test_bodies_are_consistent_and_results_are_plain(fit):
    system = fit.system
    inertia = np.linalg.eigvalsh(np.asarray(system.bodies.inertia))
    assert (np.asarray(system.bodies.mass) > 0).all() and (inertia[:, 0] > 0).all()
    assert (inertia[:, 2] <= inertia[:, 0] + inertia[:, 1] + 1e-12).all()
    assert set(fit.results.parameters) <= set(fit.names)
    assert fit.results.parameters["j1/damping"].interval[0] < DAMPING[0]


def test_what_the_log_tells_best_is_printed(fit):
    """Guards a screen that shows R2 and friction, not the masses that only the file holds."""
    text = str(fit)
    assert "R2 (validation) of j1 to j3: " in text
    assert "j1/friction " in text and "link1/mass" not in text
    sections = {section.title: section.parts for section in fit.as_report().sections}
    (row,) = (row for row in sections["Numbers"][0].rows if row[0] == "link1/mass")
    assert "from the file" in row


def test_a_terminal_has_room_for_the_joints_and_the_best_known_numbers(fit):
    """Guards a verdict that does not scroll off: narrow tables, and a word on where all is."""
    joints, _, numbers = fit.as_report(whole=False).sections
    assert joints.title == "Torques of each joint (validation)" and len(joints.parts[0].rows) == 3
    table, note = numbers.parts
    assert len(table.rows) == 16 and "report.html" in note.text


def test_a_name_that_is_no_estimate_is_answered_with_the_nearest(fit):
    with pytest.raises(KeyError, match="did you mean 'j1/damping'"):
        fit.estimates["joint1/damping"]


def test_an_assessment_is_printed_on_a_screen(fit):
    """Guards against all of its arrays: the verdict and the table of joints."""
    text = repr(fit.assessment)
    assert text.count("\n") < 12 and "all joints are predicted well" in text and "j3" in text


def test_what_only_the_file_tells_is_named(fit):
    """Nothing but the turning about its axis moves the first link: its mass is the file's."""
    k = fit.names.index("link1/mass")
    assert fit.prior_share[k] > 0.99
    assert np.isclose(fit.values[k], 2.6, rtol=0.05)
    notes = fit.assessment.notes
    assert any("held by the nominal" in note and "link1/mass" in note for note in notes)


@pytest.mark.slow
def test_a_weight_counts_as_so_many_recordings():
    """Given twice or with the weight 2, a recording gives the same numbers and deviations."""
    first, second = recording(seconds=8.0), recording(seed=4, name="other", seconds=8.0)
    model, friction = TorqueModel.of(FILE), Friction(np.full(3, 0.02), np.full(3, np.nan))

    def solution(*logs):
        used = Logs.of(model, [samples(FILE, log, 1.0) for log in logs])
        return weights_and_solution(used.equations(model, friction))

    weighted = solution(dataclasses.replace(first, weight=2.0), second)
    for one, other, once in zip(
        weighted, solution(first, first, second), solution(first, second), strict=True
    ):
        assert np.allclose(one, other, rtol=1e-6, atol=1e-9)
        assert not np.allclose(one, once, rtol=1e-3)


@pytest.mark.slow
def test_a_motor_that_turns_with_a_sum_of_rates():
    """Its damping and friction act on both joints; without them the fit is worse."""
    log = recording(noise=0.1)
    rate = np.gradient(log.q, DT, axis=0) @ (0.0, 1.0, 1.0)
    more = 0.5 * rate + 0.4 * np.tanh(rate / 0.02)
    log = dataclasses.replace(log, tau=log.tau + more[:, None] * np.array((0.0, 1.0, 1.0)))
    settings = di.ArmSettings(stribeck=False, couplings=(di.RateCoupling(("j2", "j3")),))
    found = di.identify_arm(FILE, log, settings=settings)
    values = dict(zip(found.names, found.values, strict=True))
    assert found.names[-3:] == ("j2+j3/armature", "j2+j3/damping", "j2+j3/friction")
    assert found.results.parameters["j2+j3/damping"].of_log
    assert np.isclose(values["j2+j3/damping"], 0.5, atol=0.03)
    assert np.isclose(values["j2+j3/friction"], 0.4, atol=0.04)
    assert np.isclose(values["j2/damping"], DAMPING[1], atol=0.05)


@pytest.mark.slow
def test_friction_that_grows_with_the_load():
    """As of drives that lose a part of the torque; linear equations are found about the last."""
    log = recording(offset=0.0, noise=0.0)
    slip = np.sign(log.tau) * np.tanh(np.gradient(log.q, DT, axis=0) / 0.02)
    lossy = log.tau / (1 - np.array((0.0, 0.15, 0.0)) * slip)
    noise = 0.2 * NOISE * np.random.default_rng(1).normal(size=lossy.shape)
    log = dataclasses.replace(log, tau=lossy + noise)
    found = di.identify_arm(FILE, log, settings=di.ArmSettings(stribeck=False, load_friction=True))
    values = dict(zip(found.names, found.values, strict=True))
    assert np.isclose(values["j2/load_friction"], 0.15, atol=0.03)
    assert values["j3/load_friction"] < 0.03


@pytest.mark.slow
def test_bodies_that_no_mass_has_start_at_the_nearest():
    """With a note; frames without mass stay as they are."""
    wrong = np.array(FILE.bodies.inertia)
    wrong[2] = 0.0
    found = di.identify_arm(FILE.replace(inertia=jnp.asarray(wrong)), recording())
    assert any("link3: no rigid body has" in note for note in found.assessment.notes)
    assert all(s.r2 > 0.99 for s in found.assessment.scores if s.use == "held out")


def test_a_joint_that_nothing_predicts_does_not_choose_the_weight():
    """R2 far below 0 at one joint, best at the largest weight, hides nothing of the others."""
    good, bad = np.array((0.6, 0.2, 0.01, 0.02)), np.array((3.0, 30.0, 500.0, 200.0))
    without, both = chosen(good[:, None]), chosen(np.stack((good, bad), axis=1))
    assert without[1] == both[1] == 2 and np.allclose(without[0], both[0])
    assert chosen(bad[:, None])[0].max() < 1 and chosen(bad[:, None])[1] == 0


@pytest.mark.slow
def test_the_rise_of_friction_is_estimated_and_enters_its_errors():
    """Where most of the motion is within the rise, which is between those that are tried."""
    true = arm(damping=DAMPING, friction=FRICTION, armature=ARMATURE, friction_velocity=(0.37,) * 3)
    log, z = recording(true), []
    found = di.identify_arm(FILE, log, settings=di.ArmSettings(stribeck=False))
    true = dict(zip(("friction", "damping"), (FRICTION, DAMPING), strict=True))
    for leaf, values in {**true, "friction_velocity": (0.37,) * 3}.items():
        for k, value in enumerate(values):
            at = found.names.index(f"j{k + 1}/{leaf}")
            assert 0 < found.standard_errors[at] < 0.2 * value
            z.append((found.values[at] - value) / found.standard_errors[at])
    assert np.abs(z).max() < 3.5
    at = [found.names.index(f"j2/{leaf}") for leaf in ("friction", "friction_velocity")]
    assert abs(found.correlations[at[0], at[1]]) > 0.5


def test_numbers_that_are_not_converged_have_no_errors(fit):
    """Neither errors nor intervals, as the search ended anywhere."""
    x, states = jnp.asarray(fit.x), tuple(jnp.asarray(o) for o in fit.own)
    stopped = Outcome((x, states), 3, False, "not converged after 3 steps")
    none = judged(fit.parameters, fit.problems, fit.loss, False, x, stopped)
    assert np.isnan(none.standard_errors).all() and np.isnan(none.intervals).all()
    assert not none.converged and none.results.parameters["j1/damping"].interval is None


def test_bandwidths_of_motions():
    """A sine of 2 Hz with the noise of an encoder has the bandwidth 2 Hz."""
    t = np.arange(0, 10, 1e-3)
    q = np.sin(4 * np.pi * t)[:, None] + 1e-4 * np.random.default_rng(0).normal(size=(len(t), 1))
    assert abs(bandwidth(di.Recording("", t, q, None, None, q)) - 2.0) < 0.2


def test_joints_that_stand_still_do_not_choose_the_filter():
    """With an encoder's noise, whatever it is, the others keep their filters; vibrations count."""
    log, cutoffs = recording(seconds=8.0), []
    t = np.arange(len(log.q)) * DT
    for seed in (None, 0, 1, 2):
        q = log.q.copy()
        q[:, 0] = 0.0 if seed is None else 1e-4 * np.random.default_rng(seed).normal(size=len(t))
        still = dataclasses.replace(log, q=q)
        assert bandwidth(still)[0] == 0
        cutoffs.append(samples(FILE, still).cutoffs)
    q[:, 0] += 1e-3 * np.sin(2 * np.pi * 60 * t)
    assert bandwidth(dataclasses.replace(log, q=q))[0] > 50
    positions, both = cutoffs[0]
    assert np.allclose(positions, (both, 2 * both, 2 * both))
    assert all(np.array_equal(own[0], positions) and own[1] == both for own in cutoffs)


def test_rows_across_missing_rows_do_not_count():
    """Where a log stops for a second, no straight line is taken for its motion."""
    log = recording(seconds=8.0)
    kept = (log.t < 3.0) | (log.t > 4.0)
    cut = di.Recording("run", log.t[kept], log.q[kept], tau=log.tau[kept])
    with pytest.warns(UserWarning, match="rows are missing from 2.998|empty cells"):
        own = samples(FILE, cut, 1.0)
    assert not own.there[(own.t > 2.98) & (own.t < 4.02)].any()
    at = own.t[own.rows]
    assert own.counts[(at > 0.5) & (at < 2.4)].all() and own.counts[(at > 4.6) & (at < 7)].all()
    assert not own.counts[(at > 3.2) & (at < 3.8)].any()


def test_scale_and_offsets_of_torques_are_said():
    """Torques in mN m, and a sensor that was not set to zero; nothing of a plain log."""
    log, model = recording(seconds=8.0), TorqueModel.of(FILE)
    logs = Logs.of(model, [samples(FILE, log, 1.0)])
    equations = logs.equations(model, Friction(np.full(3, 0.02), np.full(3, np.nan)))
    names = [f"j{k + 1}/torque_bias" for k in range(3)]
    told = dict.fromkeys(names, Estimated("N m", 0.0, 0.0, 0.1))
    assert not [*doubts(model, equations, told)]
    told["j2/torque_bias"] = Estimated("N m", 0.0, -20.0, 0.1)
    large = equations._replace(torque=1e3 * equations.torque)
    said = [*doubts(model, large, told)]
    assert len(said) == 1 and "times those that the nominal bodies need" in said[0]
    said = [*doubts(model, equations, told)]
    assert len(said) == 1 and "the torque of j2 has the offset 20 N m" in said[0]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.5, "one period"), (2.0, "one period"), (16.0, None)]
)
def test_logs_that_are_too_short_to_judge_by(seconds, said):
    """Guards that blocks of one period, which are all alike, do not count as a judgement."""
    log = recording(seconds=seconds)
    logs = Logs.of(TorqueModel.of(FILE), [samples(FILE, log)])
    found = too_short(logs, bandwidth(log))
    assert found is None if said is None else said in found


def test_joints_that_move_one_way_only_tell_no_other_motion():
    """Guards against a motion with noise of many periods on joints that move on and on."""
    log = recording(seconds=8.0)
    t, q = log.t, np.asarray(log.q) * (1.0, 0.0, 0.0)
    q[:, 1:] = 0.3 * t[:, None] + 0.01 * np.sin(5 * t)[:, None]
    log = dataclasses.replace(log, q=q)
    logs = Logs.of(TorqueModel.of(FILE), [samples(FILE, log)])
    assert "2 of 3 joints move one way only" in str(too_short(logs, bandwidth(log)))


def test_the_verdict_on_a_short_log_is_that_it_cannot_be_judged(fit):
    """Guards that its scores, however good, are not called good."""
    short = dataclasses.replace(fit.assessment, too_short="the log is too short to judge by")
    assert short.verdict[0] == "the log is too short to judge by" and not short.well_predicted
    assert not any("predicted well" in sentence for sentence in short.verdict)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda log: di.identify_arm("ur10.urdf", log), "'ur10.urdf' is no System; give what diff"),
        (lambda log: di.identify_arm(FILE, "run.csv"), "'run.csv' is no Recording; give what di.r"),
        (lambda log: di.log_warnings(FILE, [log]), "is no Recording; give what di.read_recording"),
        (lambda log: di.rate_warnings(["run.csv"]), "'run.csv' is no Recording"),
        (lambda log: di.Trial.of(FILE, "run.csv"), "'run.csv' is no Recording"),
        (lambda log: di.fit(FILE, log), "System is no Parameters; give dl.Parameters"),
        (lambda log: di.fit(dl.Parameters(FILE, ["j1/damping"]), log), "Recording is no Problem"),
    ],
)
def test_paths_instead_of_machines_and_recordings(call, said):
    """Guards one sentence on what to call, for what a newcomer gives first."""
    with pytest.raises(TypeError, match=said):
        call(recording(seconds=1.0))


@pytest.mark.slow
def test_mixed_columns_are_said():
    """By the identification of an arm, too, where torques have another sign than motions."""
    log = recording(seconds=8.0)
    turned = dataclasses.replace(log, tau=log.tau * (1.0, -1.0, 1.0))
    found = di.identify_arm(FILE, turned, settings=di.ArmSettings(stribeck=False, weight=1.0))
    assert any("tau[1] turned round" in note for note in found.assessment.notes)


def test_unsuitable_inputs_are_refused():
    log = recording()
    with pytest.raises(di.DataError, match="no recordings"):
        di.identify_arm(FILE, [])
    with pytest.raises(di.DataError, match="q has 2 columns, the machine 3 joints"):
        di.identify_arm(FILE, dataclasses.replace(log, q=log.q[:, :2]))
    with pytest.raises(di.DataError, match="tau is not measured"):
        di.identify_arm(FILE, dataclasses.replace(log, tau=None))
    with pytest.raises(di.DataError, match="no joint moves"):
        di.identify_arm(FILE, dataclasses.replace(log, q=np.zeros_like(log.q)))
    with pytest.raises(di.DataError, match="fewer than the"):
        di.identify_arm(FILE, log.between(0.0, 2.0).thinned(150))
    with pytest.raises(di.DataError, match="the joint 'j9'"):
        di.identify_arm(
            FILE, log, settings=di.ArmSettings(couplings=(di.RateCoupling(("j1", "j9")),))
        )
    with pytest.raises(di.DataError, match="double precision"):
        di.identify_arm(FILE.astype(jnp.float32), log)
    with pytest.raises(ValueError, match="distance is 'near'"):
        di.ArmSettings(distance="near")
    with pytest.raises(ValueError, match="weight is -1"):
        di.ArmSettings(weight=-1.0)
    loose = dl.tree([dl.Body(joint=dl.Free(), mass=1.0, inertia=np.eye(3), name="box")])
    with pytest.raises(di.DataError, match="free base"):
        di.identify_arm(loose, log)


@pytest.mark.thorough
def test_intervals_contain_what_made_the_log():
    """With coloured noise, and a file that is 30 % off, which moves offsets by gravity."""
    rng, base, inside = np.random.default_rng(5), recording(noise=0.0), []
    true = np.concatenate((DAMPING, FRICTION, -np.asarray(OFFSET)))
    for _ in range(30):
        white = rng.normal(size=base.q.shape)
        colour = NOISE * lfilter([np.sqrt(1 - 0.95**2)], [1, -0.95], white, axis=0)
        log = dataclasses.replace(base, tau=base.tau + colour)
        found = di.identify_arm(FILE, log, settings=di.ArmSettings(stribeck=False))
        leaves = ("damping", "friction", "torque_bias")
        at = [found.names.index(f"j{k}/{leaf}") for leaf in leaves for k in (1, 2, 3)]
        lower, upper = found.intervals[at].T
        inside.append((lower <= true) & (true <= upper))
    assert 0.92 < np.mean(inside) <= 1
    assert np.mean(inside, axis=0).min() > 0.8


@pytest.mark.slow
def test_the_report_is_written(fit, tmp_path):
    page = fit.report(tmp_path / "arm").read_text()
    assert "All joints are predicted well" in page and "link1/mass" in page
    assert {p.name for p in (tmp_path / "arm").glob("*.png")} == {
        *("run_0.png", "run_1.png", "spectra.png", "nearness.png")
    }


def test_old_names_of_the_fit_of_an_arm(fit):
    """Guards scripts written for the fit of arms that was another class."""
    with pytest.warns(DeprecationWarning, match="ArmFit is now difflie.identify.Fit"):
        assert di.ArmFit is di.Fit
    with pytest.warns(DeprecationWarning, match=r"Fit.scores is now Fit.assessment.scores"):
        assert fit.scores == fit.assessment.scores
    with pytest.warns(DeprecationWarning, match=r"Fit.weight is now Fit.assessment.held_out.best"):
        assert fit.weight == fit.assessment.held_out.best
    score, (entry, *_) = fit.assessment.scores[0], fit.results.joints
    for old, new in (("floor_r2", "baseline_r2"), ("file_r2", "nominal_r2")):
        with pytest.warns(DeprecationWarning, match=rf"{old} is now JointScore.{new}"):
            assert getattr(score, old) == getattr(score, new)
        with pytest.warns(DeprecationWarning, match=rf"'{old}'\] is now results.{new}"):
            assert entry[old] == getattr(entry, new)
    with pytest.warns(DeprecationWarning, match="is now results"):
        assert fit.results["parameters"]["j1/damping"]["value"] == fit.estimates["j1/damping"].value
    with pytest.raises(AttributeError, match="Fit has no attribute 'verdit'"):
        _ = fit.verdit


@pytest.mark.slow
def test_the_fit_of_an_arm_is_saved_validated_and_drawn(fit, tmp_path):
    """Guards that arms have what fits have: the folder of the command, validations, a figure."""
    folder = fit.save(tmp_path / "out")
    names = {path.name for path in folder.iterdir()}
    assert {"identification.json", "report.html", "arm.urdf"} <= names
    found = json.loads((folder / "identification.json").read_text())
    assert set(found["parameters"]) == set(fit.names) and found["joints"][0]["unit"] == "N m"
    (validation,) = fit.validate(recording(seed=7).smoothed(21, 4))
    assert (validation.torque_r2 > 0.99).all()
    page = fit.report(tmp_path / "more", [validation]).read_text()
    assert "Run 1: other" in page and "Run 2: run (held out, not fitted)" in page
    assert "Errors of each run" in page and (tmp_path / "more" / "run_2.png").exists()
    assert "estimates" in fit.plot().get_suptitle()


def test_the_verdict_begins_with_a_doubt_about_units(fit):
    """Guards that degrees are named before other reasons where a joint is predicted poorly."""
    scores = tuple(dataclasses.replace(s, r2=0.1, baseline_r2=0.1) for s in fit.assessment.scores)
    doubt = "run: outside of its limits is q1 of 'j1'; is its q in degrees?"
    doubted = dataclasses.replace(fit.assessment, units=(doubt,))
    assert doubted.verdict == fit.assessment.verdict
    bad = dataclasses.replace(doubted, scores=scores)
    assert bad.verdict[0] == doubt and not any("another kind" in said for said in bad.verdict)


@pytest.mark.slow
def test_actuators_are_left_aside_or_deliver_for_commands():
    """What is done with actuators: torques at joints need none, commands all; the notes say it."""
    log = recording(seconds=8.0)
    plain = di.identify_arm(FILE, log)
    geared = dl.JointTransmission("j3", gear=40.0)
    servo = dl.PositionServo("j1", kp=200.0, kd=5.0)
    driven = dl.attach(FILE, servo, dl.Drive("j2"), dl.Motor(transmission=geared, max_torque=1e6))
    aside = di.identify_arm(driven, log)
    np.testing.assert_allclose(aside.values, plain.values, rtol=1e-9)
    assert any("j1, j2, j3 are left aside" in note for note in aside.assessment.notes)
    assert [type(a) for a in aside.system.actuators] == [dl.Drive] * 3  # those of offsets

    v = np.gradient(log.q, log.t, axis=0)
    u = log.tau / (200.0, 1.0, 40.0)
    u[:, 0] += log.q[:, 0] + v[:, 0] * 5.0 / 200.0
    commanded = dataclasses.replace(log, tau=u)
    found = di.identify_arm(driven, commanded, settings=di.ArmSettings(commands=True))
    np.testing.assert_allclose(found.values, plain.values, rtol=1e-6, atol=1e-9)
    assert any("deliver for the commands" in note for note in found.assessment.notes)


def test_commands_and_torques_are_not_mixed_up():
    """One sentence for commands of no actuators, and for columns of commands taken for torques."""
    log = recording(seconds=1.0)
    with pytest.raises(di.DataError, match="tau cannot be commands, as it has no actuators"):
        di.identify_arm(FILE, log, settings=di.ArmSettings(commands=True))
    driven = dl.attach(FILE, dl.Drive("j1"), dl.Drive("j2"))
    two = dataclasses.replace(log, tau=log.tau[:, :2])
    with pytest.raises(di.DataError, match="tau has 2 columns, as many as arm has actuators"):
        di.identify_arm(driven, two)
    with pytest.raises(di.DataError, match="3 joints and 2 commands, j1, j2"):
        di.identify_arm(driven, log, settings=di.ArmSettings(commands=True))
