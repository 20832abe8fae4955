"""The problems of bench_control.py: their numbers, which crocoddyl reads too, and as difflie's."""

from __future__ import annotations

import importlib.metadata
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import difflie as dl
from difflie import control as dc

DT, STEPS = 1e-2, 100


def arm7(share: float | None) -> dict[str, Any]:
    """The arm to a pose of its payload; a share of the torque limits is a box."""
    angles = (0.0, -0.6, 0.0, -2.2, 0.0, 1.7, 0.8)
    c, s = np.cos(0.6), np.sin(0.6)
    pose = np.array(((c, s, 0, 0.35), (s, -c, 0, 0.45), (0, 0, -1, 0.25), (0, 0, 0, 1)))
    limit = None if share is None else [share * x for x in (87.0, 87, 87, 87, 12, 12, 12)]
    urdf = Path(dl.__file__).parent / "data" / "arm7.urdf"
    system = dl.load(urdf)
    # Crocoddyl's forward dynamics have none.
    system = system.replace(damping=0 * system.joints.damping, friction=0 * system.joints.friction)
    start = dict(zip(system.joint_names, angles, strict=True))
    return {
        "system": system,
        "urdf": str(urdf),
        "free": False,
        "gravity": [0.0, 0.0, -9.81],
        "start": start,
        "goal": start,
        "frame": "payload",
        "pose": pose.tolist(),
        "pose_weights": [1.0, 1e3],
        "weights": [0.1] * 14,
        "end_weights": [0.0] * 7 + [10.0] * 7,
        "effort": 1e-3,
        "limit": limit,
    }


def anymal() -> dict[str, Any]:
    """A floating quadruped without gravity to other angles of its legs, its attitude kept."""
    data = importlib.metadata.distribution("example-robot-data")
    folder = Path(str(data.locate_file("cmeel.prefix/share/example-robot-data/robots")))
    urdf = folder / "anymal_b_simple_description/robots/anymal.urdf"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = dl.load(urdf, base="free", gravity=(0.0, 0.0, 0.0))
    zero = 0 * system.joints.damping
    system = system.replace(damping=zero, friction=zero, armature=zero)
    start = {
        f"{leg}_{joint}": angle * side
        for leg in ("LF", "LH", "RF", "RH")
        for joint, angle, side in (
            ("HAA", -0.1, 1 if leg[0] == "L" else -1),
            ("HFE", 0.7, 1 if leg[1] == "F" else -1),
            ("KFE", -1.0, 1 if leg[1] == "F" else -1),
        )
    }
    goal = {name: x + 0.3 * np.sin(i) for i, (name, x) in enumerate(start.items())}
    # Position, attitude and joints, as crocoddyl orders them.
    weights = np.concatenate((np.zeros(3), np.full(3, 10.0), np.ones(12), np.full(18, 0.1)))
    return {
        "system": system,
        "urdf": str(urdf),
        "free": True,
        "gravity": [0.0, 0.0, 0.0],
        "start": start,
        "goal": goal,
        "frame": None,
        "pose": None,
        "pose_weights": [0.0, 0.0],
        "weights": (0.1 * weights).tolist(),
        "end_weights": (1e3 * weights).tolist(),
        "effort": 1e-2,
        "limit": None,
    }


PROBLEMS = {"arm7": lambda: arm7(None), "arm7-boxed": lambda: arm7(0.35), "anymal": anymal}


def difflie_problem(given: dict[str, Any]) -> dc.Problem:
    system = given["system"]
    free = given["free"]

    def angles(of: dict[str, float]) -> jax.Array:
        q = system.neutral()
        names = [name for name in system.joint_names if name in of]
        return q.at[q.shape[0] - len(names) :].set(jnp.array([of[name] for name in names]))

    def weights(of: list[float]) -> jax.Array:
        n, w = system.nv, np.array(of)
        # Angular parts first.
        swap = np.r_[3:6, 0:3, 6:n] if free else np.arange(n)
        return jnp.asarray(np.concatenate((w[:n][swap], w[n:][swap])))

    goal = angles(given["goal"])
    costs = [[dc.State(goal, weights(given[name]))] for name in ("weights", "end_weights")]
    if given["pose"] is not None:
        for terms, weight in zip(costs, given["pose_weights"], strict=True):
            terms.append(dc.Pose(given["frame"], np.array(given["pose"]), weight))
    limit = given["limit"]
    bounds = {} if limit is None else {"u_lower": -np.array(limit), "u_upper": np.array(limit)}
    return dc.Problem(
        *(system, angles(given["start"]), jnp.zeros(system.nv)),
        dt=DT,
        steps=STEPS,
        running=[*costs[0], dc.Effort(given["effort"])],
        final=costs[1],
        inputs=dc.Motors("[LR][FH]_*") if free else dc.Commands(),
        limits=dc.Limits(**bounds),
        method="BodyFixedEuler",  # as crocoddyl steps a free body
    )
