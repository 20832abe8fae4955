"""What does an identification cost here, and in MuJoCo's `mujoco.sysid`, on the same cores?

    python experiments/bench_identification.py --json bench_identification.json
    python experiments/bench_identification.py --counts 20 --runs 2 --samples 100

The 7-joint arm of `bench_dynamics.py`; some runs with known torques, held from sample to sample,
from known states; measured are the positions at all samples, with noise. Free are, in this order,
the armatures and the dampings of all joints, the masses of links 2 to 7 (20 numbers so far), and
two coordinates of the centres of mass of links 3 to 7. Both engines take the same steps of
semi-implicit Euler, start up to 30 % off, and minimise the same residuals with Levenberg's and
Marquardt's steps, each with its own parametrisation (logarithms here, bounds there) and damping.

`mujoco.sysid` (`pip install "mujoco[sysid]"`) differences its rollouts, which run on all cores, one
for each column of the Jacobian and run; `mujoco.rollout` is what these alone cost, with the models
made beforehand. Errors of Jacobians are in columns relative to their length, by the numbers of the
tables, against differences of order 6 of MuJoCo's rollouts.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The options of XLA, which that file chooses, come before jax.
from bench_dynamics import best, difflie_model, mujoco_spec  # isort: split

import jax
import jax.numpy as jnp
import mujoco
import mujoco.minimize
import mujoco.rollout
import numpy as np
import tyro
from mujoco import sysid
from numpy.typing import NDArray

import difflie as dl
from difflie import identify as di
from difflie.identify.elimination import residuals_and_jacobian
from difflie.identify.search import Residual
from difflie.integrators import SemiImplicitEuler
from difflie.io.results import machine, save_json

NOISE = 1e-3  # rad
JOINTS, LINKS = [f"joint{i}" for i in range(1, 8)], [f"link{i}" for i in range(2, 8)]
ARMATURE, DAMPING = np.linspace(0.3, 0.06, 7), np.linspace(0.8, 0.2, 7)
PATHS = [
    *(f"{joint}/{leaf}" for leaf in ("armature", "damping") for joint in JOINTS),
    *(f"{link}/mass" for link in LINKS),
    *(f"{link}/com_{axis}" for link in LINKS[1:] for axis in "xy"),
]


@dataclass
class Options:
    """counts: of free numbers; runs, each of so many samples every dt (s)."""

    counts: list[int] = field(default_factory=lambda: [5, 10, 20, 30])
    runs: int = 8
    samples: int = 500
    dt: float = 2e-3
    json: Path | None = None


Row = dict[str, Any]


def spec_of_arm(dt: float) -> mujoco.MjSpec:
    spec = mujoco_spec("arm")
    spec.option.timestep = dt
    for joint, armature, damping in zip(JOINTS, ARMATURE, DAMPING, strict=True):
        spec.joint(joint).armature = armature
        write(spec, f"{joint}/damping", damping)
        motor = spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.set_to_motor()
        # As many sensors as measurements; the residual takes the positions from the state.
        spec.add_sensor(
            name=joint,
            type=mujoco.mjtSensor.mjSENS_JOINTPOS,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            objname=joint,
        )
    return spec


def write(spec: mujoco.MjSpec, path: str, value: float) -> None:
    owner, leaf = path.split("/")
    if leaf == "armature":
        spec.joint(owner).armature = value
    elif leaf == "damping":
        spec.joint(owner).damping[0] = value
    elif leaf == "mass":
        spec.body(owner).mass = value
    else:
        spec.body(owner).ipos["xyz".index(leaf[-1])] = value


@dataclass(frozen=True)
class Measured:
    """t (s + 1,), states at the start (w, 1 + nq + nv) with the time, tau and q (w, s + 1, 7)."""

    t: NDArray
    start: NDArray
    tau: NDArray
    q: NDArray


def measured(options: Options) -> Measured:
    """Runs of the true arm in MuJoCo: some sines in every joint, with noise on the positions."""
    rng = np.random.default_rng(0)
    model = spec_of_arm(options.dt).compile()
    t = options.dt * np.arange(options.samples + 1)
    shape = (options.runs, 1, 7)
    tau = sum(
        rng.uniform(1, 4, shape) * np.sin(2 * np.pi * f * t[:, None] + rng.uniform(0, 6, shape))
        for f in (0.7, 1.9, 4.3)
    )
    start = np.zeros((options.runs, 15))
    start[:, 1:8] = rng.uniform(-1, 1, (options.runs, 7))
    state, _ = mujoco.rollout.rollout(model, mujoco.MjData(model), start, tau[:, :-1])
    q = np.concatenate((start[:, None, 1:8], state[..., 1:8]), axis=1)
    q[:, 1:] += NOISE * rng.normal(size=q[:, 1:].shape)
    return Measured(t, start, tau, q)


class InMujoco:
    """The residual of `mujoco.sysid`, with x (n,) the numbers of tables."""

    def __init__(self, data: Measured, start: NDArray) -> None:
        self.data, self.spec = data, spec_of_arm(data.t[1])
        self.parameters = sysid.ParameterDict()
        for path, x in zip(PATHS, start, strict=False):
            lower, upper = (x - 0.2, x + 0.2) if "com" in path else (x / 10, x * 10)
            self.parameters.add(
                sysid.Parameter(
                    path,
                    *(x, lower, upper),
                    modifier=lambda spec, p: write(spec, p.name, p.value[0]),
                )
            )
        model = self.spec.compile()
        names = [f"run{k}" for k in range(len(data.q))]
        q = [sysid.TimeSeries(data.t, q) for q in data.q]
        tau = [sysid.TimeSeries(data.t, tau) for tau in data.tau]
        sequences = sysid.ModelSequences("arm", self.spec, names, list(data.start), tau, q)
        self.residual_fn = sysid.build_residual_fn(
            models_sequences=[sequences], modify_residual=self._differences, resample_true=False
        )
        self.workers = [mujoco.MjData(model) for _ in range(os.cpu_count() or 1)]

    def _differences(self, params, predicted, measured, model, return_all, state, **_):
        return (state[:, 1:8] - measured.data[1:]) / NOISE, measured, measured

    def residual(self, x: NDArray) -> NDArray:
        """(k,) or, of columns x (n, c), (k, c)."""
        return np.concatenate(self.residual_fn(x, self.parameters)[0])

    def jacobian(self, x: NDArray) -> NDArray:
        bounds = [b[:, None] for b in self.parameters.get_bounds()]
        r, column = self.residual(x)[:, None], x[:, None]
        step = np.finfo(float).eps ** 0.5
        return mujoco.minimize.jacobian_fd(self.residual, column, r, step, 0, bounds)[0]

    def rollouts(self, count: int) -> float:
        """Seconds for all runs of `count` models and of one more, on all cores."""
        models, runs = [self.spec.compile() for _ in range(count + 1)], len(self.data.q)
        each = [model for model in models for _ in range(runs)]
        start, tau = (
            np.tile(self.data.start, (count + 1, 1)),
            np.tile(self.data.tau, (count + 1, 1, 1)),
        )
        with mujoco.rollout.Rollout(nthread=len(self.workers)) as pool:
            return best(lambda: pool.rollout(each, self.workers, start, tau[:, :-1]))

    def fit(self, **how: Any) -> tuple[NDArray, int]:
        """From the start, which is nominal; the residual leaves its last x in the parameters."""
        self.parameters.reset()
        found, result = sysid.optimize(
            self.parameters, self.residual_fn, "mujoco", output=io.StringIO(), **how
        )
        return found.as_vector(), len(result.extras["objective"]) - 1


class InDifflie:
    """The same residual of `difflie.identify`, with x (n,) its free numbers."""

    def __init__(self, data: Measured, start: NDArray) -> None:
        arm = difflie_model("arm")
        arm = arm.replace(armature=jnp.asarray(ARMATURE), damping=jnp.asarray(DAMPING))
        self.parameters = dl.Parameters(
            arm, [dl.Parameter(path, start=x) for path, x in zip(PATHS, start, strict=False)]
        )
        recordings = [
            di.Recording(f"run{k}", data.t, q, np.zeros_like(q) + start[8:], tau=tau)
            for k, (q, tau, start) in enumerate(zip(data.q, data.tau, data.start, strict=True))
        ]
        self.problem = di.Shooting.of(arm, recordings, position=NOISE, method=SemiImplicitEuler())
        self.shape = (*self.problem.dt.shape, 2, 7)

    def positions(self, rows: Any) -> NDArray:
        """Of the residuals those that MuJoCo has: without the velocities, not measured."""
        rows = np.asarray(rows)
        return rows.reshape(*self.shape, *rows.shape[1:])[:, :, 0].reshape(-1, *rows.shape[1:])

    def linearised(self) -> tuple[Any, float]:
        """As `fit` does it: a function of x with residuals and Jacobian; seconds to compile it."""
        arguments = Residual(di.Squares()), (self.parameters.start, (self.problem.own,))
        begin = time.perf_counter()
        others = self.parameters, (self.problem,)
        compiled = residuals_and_jacobian.lower(*arguments, others).compile()
        seconds = time.perf_counter() - begin
        own = arguments[1][1]
        return lambda x: jax.block_until_ready(compiled(arguments[0], (x, own), others)), seconds


def start_of(count: int) -> tuple[NDArray, NDArray]:
    """The true numbers and those to begin with."""
    rng, truth = np.random.default_rng(1), []
    spec = spec_of_arm(1.0)
    for path in PATHS[:count]:
        owner, leaf = path.split("/")
        k = int(owner[-1]) - 1
        joint = {"armature": ARMATURE[k], "damping": DAMPING[k]}
        body = spec.body(owner)
        truth.append(
            body.ipos["xyz".index(leaf[-1])] if "com" in leaf else joint.get(leaf) or body.mass
        )
    truth = np.array(truth)
    com = np.array(["com" in path for path in PATHS[:count]])
    off = rng.uniform(-1, 1, count)
    return truth, np.where(com, truth + 0.02 * off, truth * np.exp(0.26 * off))


def reference(residual: Any, x: NDArray) -> NDArray:
    """The Jacobian by differences of order 6."""
    steps = 2e-3 * np.maximum(np.abs(x), 0.1)

    def moved(k: int) -> NDArray:
        return residual(x[:, None] + k * np.diag(steps))

    terms = [c * (moved(k) - moved(-k)) for k, c in ((1, 45), (2, -9), (3, 1))]
    return sum(terms) / (60 * steps)


def errors(found: NDArray, exact: NDArray) -> float:
    return float((np.linalg.norm(found - exact, axis=0) / np.linalg.norm(exact, axis=0)).max())


def compared(options: Options, data: Measured, count: int) -> Iterator[Row]:
    truth, start = start_of(count)
    theirs, ours = InMujoco(data, start), InDifflie(data, start)
    names = [str(n) for n in ours.parameters.names]
    assert names == PATHS[:count], names
    linearised, compile_s = ours.linearised()
    x = ours.parameters.start
    r, jacobian = linearised(x)
    expected = theirs.residual(start)
    apart = float(np.abs(ours.positions(r) - expected).max() / np.abs(expected).max())

    # By the numbers of tables, as MuJoCo has them.
    by_x = np.asarray(jax.jacfwd(ours.parameters.values)(x))
    exact = reference(theirs.residual, start)
    mine = np.linalg.solve(by_x.T, ours.positions(jacobian).T).T
    about = {"parameters": count, "residuals": len(expected), "residuals_apart": apart}

    def figures(values: NDArray, steps: int, seconds: float) -> Row:
        return {
            "steps": steps,
            "fit_s": seconds,
            "cost": float(np.sum(theirs.residual(values) ** 2) / 2),
            "error": float(np.abs(values / truth - 1).max()),
        }

    # Compiled before it is timed.
    di.fit(ours.parameters, ours.problem)
    begin = time.perf_counter()
    found = di.fit(ours.parameters, ours.problem)
    seconds = time.perf_counter() - begin
    yield {
        "library": "difflie",
        **about,
        "jacobian_ms": best(lambda: linearised(x)) * 1e3,
        "compile_s": compile_s,
        "jacobian_error": errors(mine, exact),
        **figures(found.values, found.steps, seconds),
    }
    yield {"library": "mujoco.rollout", **about, "jacobian_ms": theirs.rollouts(count) * 1e3}
    jacobian_ms = best(lambda: theirs.jacobian(start)) * 1e3
    for scale in (None, "jac"):
        begin = time.perf_counter()
        values, steps = theirs.fit(x_scale=scale)
        seconds = time.perf_counter() - begin
        yield {
            "library": "mujoco.sysid" + (", scaled" if scale else ""),
            **about,
            "jacobian_ms": jacobian_ms,
            "jacobian_error": errors(theirs.jacobian(start), exact),
            **figures(values, steps, seconds),
        }


def main(options: Options) -> None:
    if not hasattr(sysid, "optimize"):
        raise SystemExit('mujoco.sysid needs packages of its own: pip install "mujoco[sysid]"')
    data = measured(options)
    print(f"{machine()}\nresiduals of both engines agree to residuals_apart of the largest")
    rows: list[Row] = []
    for count in options.counts:
        for row in compared(options, data, count):
            rows.append(row)
            shown = (f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
            print("  ".join(shown), flush=True)
            if options.json is not None:
                about = {"runs": options.runs, "samples": options.samples, "dt": options.dt}
                figures = {"name": "bench_identification", "machine": machine(), **about}
                save_json(options.json, figures | {"rows": rows})


if __name__ == "__main__":
    main(tyro.cli(Options))
