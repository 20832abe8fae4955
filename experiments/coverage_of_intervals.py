"""How many of the 95 % intervals of fits contain the true value?

    python experiments/coverage_of_intervals.py --json coverage_of_intervals.json
    python experiments/coverage_of_intervals.py --repeats 10

Arms of two and three joints, moved along sums of sines for 15 s at 200 Hz; the noise of the torques
is white, autoregressive (with the correlation 0.95 from row to row), or low-passed at 2 Hz. Where
it says so, positions with the noise of an encoder are smoothed by Savitzky-Golay (31 rows, order 4,
which hardly bends these motions), from which velocities and accelerations follow; a part of the
rows is missing; or a fiftieth of the torques have five times the noise, for Huber's loss. Fits find
damping, friction, armature and mass of each joint and link; `linear` the base parameters.

Arms are identified by `identify_arm` from a file whose bodies are off, each time by others, by a
fifth: their pseudo-inertias are L exp(Z) L^T of J = L L^T, with symmetric Z of this deviation. With
ripple, torques have besides the noise, of a third, a sine of the angles of five times its size,
which motions average: an error of the model without bias. With hysteresis, friction lags behind
the velocity, and numbers are biased: their coverage is reported only.

    python experiments/coverage_of_intervals.py --only arm --repeats 40

Each case is repeated with new noise. `white` is what the intervals of white noise would cover;
`bias` the part of the mean squared error that repeats do not average away, as of smoothing.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.linalg import expm
from scipy.signal import butter, sosfilt
from scipy.stats import binomtest

import difflie as dl
from difflie import identify as di
from difflie.io.results import machine, save_json
from difflie.parameters.pseudo_inertia import parameters_of, pseudo_inertias

RATE, ROWS, START = 200.0, 3000, 1000
DEVIATION = np.array((0.2, 0.1, 0.06))  # N m
ENCODER = 2e-5  # rad
WINDOW, ORDER = 31, 4
OFF = 0.2  # of the logarithms of pseudo-inertias in a file


@dataclass(frozen=True)
class Case:
    """One kind of measurement and estimate."""

    name: str
    joints: int = 2
    colour: str = "white"
    smoothed: bool = False
    gaps: bool = False
    huber: bool = False
    linear: bool = False
    arm: bool = False
    ripple: float = 0.0
    lag: float = 0.0


CASES = (
    Case("white"),
    Case("autoregressive", colour="autoregressive"),
    Case("low-passed", colour="low-passed", joints=3),
    Case("autoregressive, gaps", colour="autoregressive", gaps=True),
    Case("autoregressive, Huber", colour="autoregressive", huber=True),
    Case("white, smoothed", smoothed=True),
    Case("autoregressive, smoothed", colour="autoregressive", smoothed=True),
    Case("autoregressive, smoothed, Huber", 3, "autoregressive", smoothed=True, huber=True),
    Case("autoregressive, smoothed, linear", 3, "autoregressive", smoothed=True, linear=True),
    Case("arm, white", 3, arm=True),
    Case("arm, autoregressive", 3, "autoregressive", arm=True),
    Case("arm, low-passed", 3, "low-passed", arm=True),
    Case("arm, ripple", 3, arm=True, ripple=5.0),
    Case("arm, hysteresis", 3, arm=True, lag=0.05),
)


@dataclass
class Options:
    """Coverage of intervals."""

    repeats: int = 40
    """of each case, with new noise"""
    seed: int = 0
    only: str = ""
    """cases whose names begin so"""
    json: Path | None = None


def arm(joints: int) -> dl.System:
    """The true machine: the first of three axes is vertical, the last two are horizontal."""
    axes = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 1.0, 0.0))[-joints:]
    bodies = [
        dl.Body(
            name=f"link{k}",
            joint=dl.Revolute(name=f"joint{k}", axis=axis),
            mass=2.0 / k,
            com=(0.05, 0.0, -0.15),
            inertia=np.diag((0.03, 0.03, 0.01)) / k,
            position=(0.0, 0.0, -0.3 if k > 1 else 0.0),
        )
        for k, axis in enumerate(axes, start=1)
    ]
    size = 1 / np.arange(1, joints + 1)
    return dl.chain(bodies).replace(
        damping=0.5 * size,
        friction=0.8 * size,
        armature=0.1 * size,
        friction_velocity=np.full(joints, 0.05),
    )


def motion(joints: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """t (n,), and q, v and a (n, joints) along sums of sines from 0.15 to 1 Hz."""
    random, t = np.random.default_rng(7), np.arange(ROWS) / RATE
    w = 2 * np.pi * random.uniform(0.15, 1.0, (5, joints))
    phase, size = random.uniform(0, 2 * np.pi, (5, joints)), 0.4
    angle = w * t[:, None, None] + phase
    q, v, a = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    return t, q.sum(axis=1), v.sum(axis=1), a.sum(axis=1)


def noise(case: Case, random: np.random.Generator) -> NDArray:
    """The noise (n, joints) of the torques in N m, with a fiftieth of outliers for Huber's loss."""
    white = random.normal(size=(START + ROWS, case.joints))
    if case.colour == "autoregressive":
        white = sosfilt([[1.0, 0.0, 0.0, 1.0, -0.95, 0.0]], white, axis=0) * np.sqrt(1 - 0.95**2)
    elif case.colour == "low-passed":
        low = np.asarray(sosfilt(butter(2, 2.0, fs=RATE, output="sos"), white, axis=0))
        white = low / low.std()
    white = white[START:]
    if case.huber:
        white = white * np.where(random.random(white.shape) < 0.02, 5.0, 1.0)
    return white * DEVIATION[-case.joints :]


def nearby(system: dl.System, random: np.random.Generator) -> dl.System:
    """The system with other bodies near its own, and with nothing at its joints, as in a file."""
    pi = np.array(dl.inertial_parameters(system))
    bodies = []
    for pseudo in pseudo_inertias(pi):
        factor, z = np.linalg.cholesky(pseudo), OFF * random.normal(size=(4, 4))
        bodies.append(factor @ expm((z + z.T) / 2) @ factor.T)
    near = dl.with_inertial_parameters(system, parameters_of(np.array(bodies)))
    nothing = np.zeros(len(system.joints.damping))
    return near.replace(damping=nothing, friction=nothing, armature=nothing)


class Trials:
    """The estimates of a case for any noise."""

    def __init__(self, case: Case) -> None:
        self.case, self.true = case, arm(case.joints)
        t, q, v, a = motion(case.joints)
        silent = di.InverseDynamics.of(self.true, [di.Recording("", t, q, v, a, np.zeros_like(v))])
        tau = np.asarray(silent.torques(self.true))
        self.recording = di.Recording("sines", t, q, v, a, tau)
        # The first link of three turns about a vertical axis, where its mass is like armature.
        masses = [f"link{k}/mass" for k in range(max(case.joints - 1, 1), case.joints + 1)]
        free = ["*/damping", "*/friction", "*/armature", *masses]
        self.parameters = dl.Parameters(self.true, free)

    def recorded(self, random: np.random.Generator) -> di.Recording:
        """The recording with noise."""
        case, exact = self.case, self.recording
        assert exact.q is not None
        assert exact.tau is not None
        tau = exact.tau + noise(case, random)
        if case.smoothed:
            q = exact.q + ENCODER * random.normal(size=exact.q.shape)
            return di.Recording("sines", exact.t, q, tau=tau).smoothed(WINDOW, ORDER)
        if case.gaps:
            tau[random.random(len(tau)) < 0.1] = np.nan
            tau[1000:1200] = np.nan
        return dataclasses.replace(exact, tau=tau)

    def of_an_arm(self, random: np.random.Generator) -> tuple[NDArray, ...]:
        """As `estimated`, of an arm from a file that is off."""
        case, exact = self.case, self.recording
        assert exact.q is not None
        assert exact.v is not None
        assert exact.tau is not None
        scale = 1 / 3 if case.ripple else 1.0
        tau = exact.tau + scale * noise(case, random)
        phase = random.uniform(0, 2 * np.pi, case.joints)
        tau += case.ripple * scale * DEVIATION[-case.joints :] * np.sin(17 * exact.q + phase)
        if case.lag:
            rows, rise = round(case.lag * RATE), np.asarray(self.true.joints.friction_velocity)
            sign = np.tanh(exact.v / rise)
            late = np.concatenate((sign[:1].repeat(rows, axis=0), sign[:-rows]))
            tau += np.asarray(self.true.joints.friction) * (late - sign)
        q = exact.q + ENCODER * random.normal(size=exact.q.shape)
        log = di.Recording("sines", exact.t, q, tau=tau)
        settings = di.ArmSettings(stribeck=False)
        found = di.identify_arm(nearby(self.true, random), log, settings=settings)
        # Offsets are drives, which the true machine has not.
        zero = [dl.Drive(joint) for joint, _ in self.true.topology.velocity_labels]
        true = np.asarray(found.parameters.values_of(dl.attach(self.true, *zero)))
        off = found.intervals - true[:, None]
        return found.values - true, found.standard_errors, found.white_errors, off

    def estimated(self, random: np.random.Generator) -> tuple[NDArray, ...]:
        """The errors (p,), standard errors, white ones, and intervals (p, 2) less the truth."""
        case, deviation = self.case, DEVIATION[-self.case.joints :]
        if case.arm:
            return self.of_an_arm(random)
        problem = di.InverseDynamics.of(self.true, [self.recorded(random)], deviation)
        if case.linear:
            found = di.linear(self.true, problem)
            true = found.of(self.true)
        else:
            loss = di.Huber(1.5) if case.huber else di.Squares()
            found = di.fit(self.parameters, problem, loss=loss)
            assert found.converged, found.message
            true = np.asarray(self.parameters.initial)
        off = found.intervals - true[:, None]
        return found.values - true, found.standard_errors, found.white_errors, off


def coverage(case: Case, repeats: int, seed: int) -> dict[str, Any]:
    """The counts and shares of a case."""
    random, trials = np.random.default_rng((seed, CASES.index(case))), Trials(case)
    begin = time.perf_counter()
    rows = [trials.estimated(random) for _ in range(repeats)]
    error, robust, white, interval = (np.stack(x) for x in zip(*rows, strict=True))
    inside = (interval[..., 0] <= 0) & (interval[..., 1] >= 0)
    square, mean = np.mean(error**2, axis=0), np.mean(error, axis=0)
    # The mean of so many repeats has a part of the variance too.
    bias = np.maximum((repeats * mean**2 - square) / max(repeats - 1, 1), 0) / square
    return {
        "intervals": inside.size,
        "inside": int(inside.sum()),
        "coverage": float(inside.mean()),
        "coverage_white": float(np.mean(np.abs(error) <= 1.96 * white)),
        "least_covered": float(inside.mean(axis=0).min()),
        "robust_over_white": float(np.median(robust / white)),
        "half_width_over_error": float(np.median(np.ptp(interval, axis=-1) / 2 / robust)),
        "bias": float(bias.mean()),
        "seconds": time.perf_counter() - begin,
    }


def main(options: Options) -> None:
    jax.config.update("jax_enable_x64", True)
    cases = [case for case in CASES if case.name.startswith(options.only)]
    found = {case.name: coverage(case, options.repeats, options.seed) for case in cases}
    count, inside = (sum(row[key] for row in found.values()) for key in ("intervals", "inside"))
    limits = binomtest(inside, count).proportion_ci(method="wilson")
    columns = "intervals", "coverage", "coverage_white", "robust_over_white", "bias", "seconds"
    table = Table("case", *columns)
    for name, row in found.items():
        table.add_row(name, *(f"{row[key]:.3g}" for key in columns))
    console = Console()
    console.print(table)
    console.print(
        f"{inside} of {count} inside: {inside / count:.3f} ({limits.low:.3f} to {limits.high:.3f})"
    )
    if options.json is not None:
        whole = {"intervals": count, "coverage": inside / count, "limits": list(limits)}
        save_json(options.json, {**whole, "cases": found, "machine": machine()})


if __name__ == "__main__":
    main(tyro.cli(Options))
