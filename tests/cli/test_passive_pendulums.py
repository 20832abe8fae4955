"""`difflie identify` with measured free swings of a single and a double pendulum."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import savgol_filter
from test_identify import call

import difflie as dl

CONFIGS = Path(__file__).parent.parent.parent / "configs"
DATA = CONFIGS.parent.parent / "shared" / "data"
SWINGS = DATA / "passive_pendulums"
BODY = "mass", "com", "inertia"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SWINGS.is_dir(), reason=f"{SWINGS} is absent"),
]


def found(name, out):
    """The results of a configuration, and the identified machine."""
    config = CONFIGS / f"{name}.toml"
    assert call("identify", config, "--data", DATA, "--out", out) == 0
    results = json.loads((out / "identification.json").read_text())
    assert results["converged"] and results["fit"]["steps"] < 40
    friction = [p for n, p in results["parameters"].items() if n.endswith(("friction", "drag"))]
    assert friction and all(p["interval"][0] > 0 for p in friction)
    return results, dl.load(out / f"{name}.urdf")


def largest_error(results):
    """Of the motions that are predicted over 10 s, which were not fitted; in rad."""
    return max(row["position_rmse"] for row in results["validation"])


def smoothed(angle):
    """An angle from hanging, its rate and its acceleration, at 500 Hz; from 0.1 s to 13.9 s."""
    return [savgol_filter(angle - np.pi, 41, 4, deriv=k, delta=0.002)[50:6950] for k in (0, 1, 2)]


def moments(system, name):
    """The mass moment of a link about its joint, and its moment of inertia."""
    b = system.body_names.index(name)
    mass, com, inertia = (np.asarray(getattr(system.bodies, n)[b]) for n in BODY)
    return -mass * com[2], inertia[1, 1] + mass * com[2] ** 2


def test_a_single_pendulum(tmp_path):
    """m a g / J as from accelerations of smoothed angles, by least squares."""
    results, system = found("passive_pendulum", tmp_path)
    assert largest_error(results) < 0.002
    log = np.genfromtxt(SWINGS / "single.csv", delimiter=",", names=True)
    x, v, a = smoothed(log["th"])
    terms = np.stack((-np.sin(x), np.cos(x), -np.tanh(v / 0.05), -v * np.abs(v)), axis=1)
    wanted = np.linalg.lstsq(terms, a)[0][0]
    moment, inertia = moments(system, "arm")
    np.testing.assert_allclose(9.81 * moment / inertia, wanted, rtol=0.002)


def test_a_double_pendulum(tmp_path):
    """J1, h, J2 and G1 over G2 as from accelerations of smoothed angles, by least squares."""
    results, system = found("passive_double_pendulum", tmp_path)
    assert largest_error(results) < 0.07
    log = np.genfromtxt(SWINGS / "double.csv", delimiter=",", names=True)
    (x1, v1, a1), (x2, v2, a2) = smoothed(log["th1"]), smoothed(log["th2"])
    c, s, r, zero = np.cos(x1 - x2), np.sin(x1 - x2), v2 - v1, 0 * x1
    rubs = [f(v) for f in (lambda v: np.tanh(v / 0.05), lambda v: v * np.abs(v)) for v in (v1, r)]
    first = a1, c * a2 + s * v2**2, zero, np.sin(x1), rubs[0], -rubs[1], rubs[2], -rubs[3]
    second = zero, c * a1 - s * v1**2, a2, zero, zero, rubs[1], zero, rubs[3]
    terms = np.concatenate((np.stack(first, axis=1), np.stack(second, axis=1)))
    wanted = np.linalg.lstsq(terms, np.concatenate((zero, -np.sin(x2))))[0][:4]
    lower, inertia2 = moments(system, "lower")
    upper, inertia1 = moments(system, "upper")
    k = system.body_names.index("lower")
    mass, length = float(system.bodies.mass[k]), -float(system.joints.position[k, 2])
    j1, h, g1 = inertia1 + mass * length**2, lower * length, upper + mass * length
    ratios = np.array((j1, h, inertia2, g1 * 9.81)) / (lower * 9.81)
    np.testing.assert_allclose(ratios, wanted, rtol=0.01)
