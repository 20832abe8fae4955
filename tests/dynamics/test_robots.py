"""Real robots, fixed and free, against Pinocchio."""

import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

import difflie as dl

pin = pytest.importorskip("pinocchio", reason="needs Pinocchio: pip install pin")

ROBOTS = (
    "panda_description/urdf/panda.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "kinova_description/robots/kinova.urdf",
    "z1_description/urdf/z1.urdf",
    "solo_description/robots/solo12.urdf",
    "anymal_b_simple_description/robots/anymal.urdf",
    "hyq_description/robots/hyq_no_sensors.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "tiago_description/robots/tiago_no_hand.urdf",
    "baxter_description/urdf/baxter.urdf",
    "icub_description/robots/icub_reduced.urdf",
    "simple_humanoid_description/urdf/simple_humanoid.urdf",
)


def folder() -> Path:
    """The robots of example-robot-data, which has no module of its own."""
    try:
        package = distribution("example-robot-data")
    except PackageNotFoundError:
        pytest.skip("needs the robots: pip install example-robot-data")
    return Path(str(package.locate_file("cmeel.prefix/share/example-robot-data/robots")))


class Pair:
    """One robot in both libraries, with the maps between their orders."""

    def __init__(self, path: Path, base: str):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.ours = dl.load(path, base=base)
        free = base == "free"
        self.theirs = (
            pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
            if free
            else pin.buildModelFromUrdf(str(path))
        )
        self.data = self.theirs.createData()
        t = self.ours.topology
        self.joints = [
            (self.theirs.joints[self.theirs.getJointId(t.joints[b])], b)
            for b, kinds in enumerate(t.kinds)
            if kinds
        ]

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Ours (nq,) as theirs: (position, xyzw), and cosine and sine of continuous joints."""
        t, theirs = self.ours.topology, pin.neutral(self.theirs)
        source = {b: t.mimics[b] if t.mimics[b] is not None else b for _, b in self.joints}
        for joint, b in self.joints:
            i = int(t.coordinate_start[source[b]])
            if joint.nq == 7:
                theirs[joint.idx_q : joint.idx_q + 3] = q[i + 4 : i + 7]
                theirs[joint.idx_q + 3 : joint.idx_q + 7] = q[[i + 1, i + 2, i + 3, i]]
                continue
            x = q[i] * self.ratio(b) + self.shift(b)
            if joint.nq == 2:
                theirs[joint.idx_q : joint.idx_q + 2] = np.cos(x), np.sin(x)
            else:
                theirs[joint.idx_q] = x
        return theirs

    def ratio(self, b: int) -> float:
        t = self.ours.topology
        if t.mimics[b] is None:
            return 1.0
        return float(self.ours.joints.multiplier[list(t.mimic_rows).index(t.row_start[b])])

    def shift(self, b: int) -> float:
        t = self.ours.topology
        if t.mimics[b] is None:
            return 0.0
        return float(self.ours.joints.offset[list(t.mimic_rows).index(t.row_start[b])])

    def expansion(self) -> np.ndarray:
        """(their nv, our nv): their velocity = expansion @ ours, mimic joints included."""
        t = self.ours.topology
        g = np.zeros((self.theirs.nv, self.ours.nv))
        for joint, b in self.joints:
            source = t.mimics[b] if t.mimics[b] is not None else b
            i = int(t.velocity_start[source])
            if joint.nv == 6:
                g[joint.idx_v : joint.idx_v + 3, i + 3 : i + 6] = np.eye(3)
                g[joint.idx_v + 3 : joint.idx_v + 6, i : i + 3] = np.eye(3)
            else:
                g[joint.idx_v, i] = self.ratio(b)
        return g


def close(ours, theirs, tolerance=1e-12) -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    worst = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-300)
    assert worst <= tolerance, worst


@pytest.mark.slow
@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: Path(r).stem)
def test_robot(robot, base):
    pair = Pair(folder() / robot, base)
    ours, theirs, data = pair.ours, pair.theirs, pair.data
    rng = np.random.default_rng(0)
    q = np.array(dl.integrate(ours, ours.neutral(), rng.uniform(-1, 1, ours.nv)))
    v, a = rng.normal(size=(2, ours.nv))
    g, q_pin = pair.expansion(), pair.configuration(q)

    pin.framesForwardKinematics(theirs, data, q_pin)
    poses = np.asarray(dl.body_poses(ours, q))
    for name, pose in zip(ours.body_names, poses, strict=True):
        close(pose, data.oMf[theirs.getFrameId(name, pin.FrameType.BODY)].homogeneous)

    pin.crba(theirs, data, q_pin)
    mass = np.triu(data.M) + np.triu(data.M, 1).T
    mass = g.T @ mass @ g
    close(dl.mass_matrix(ours, q), mass)
    tau = g.T @ pin.rnea(theirs, data, q_pin, g @ v, g @ a)
    close(dl.inverse_dynamics(ours, q, v, a), tau)
    bias = g.T @ pin.nonLinearEffects(theirs, data, q_pin, g @ v)
    close(dl.bias_force(ours, q, v), bias)
    kinetic, potential = dl.energy(ours, q, v)
    close(kinetic, pin.computeKineticEnergy(theirs, data, q_pin, g @ v))
    close(potential, pin.computePotentialEnergy(theirs, data, q_pin))

    pin.computeCentroidalMomentum(theirs, data, q_pin, g @ v)
    linear, angular = data.hg.linear, data.hg.angular
    com = pin.centerOfMass(theirs, data, q_pin)
    close(dl.momentum(ours, q, v), np.concatenate((angular + np.cross(com, linear), linear)))

    if np.linalg.cond(mass) < 1e12:
        tolerance = max(1e-12, 1e-14 * np.linalg.cond(mass))
        close(dl.forward_dynamics(ours, q, v, tau), np.linalg.solve(mass, tau - bias), tolerance)
        close(dl.inverse_dynamics(ours, q, v, dl.forward_dynamics(ours, q, v, tau)), tau, 1e-11)
        if not ours.topology.mimic_rows.size:
            acceleration = pin.aba(theirs, data, q_pin, g @ v, np.linalg.pinv(g.T) @ tau)
            close(g @ np.asarray(dl.forward_dynamics(ours, q, v, tau)), acceleration, tolerance)

    body = ours.body_names[-1]
    frame = theirs.getFrameId(body, pin.FrameType.BODY)
    jacobian = pin.computeFrameJacobian(theirs, data, q_pin, frame, pin.ReferenceFrame.LOCAL) @ g
    close(dl.body_jacobian(ours, q, body), jacobian[[3, 4, 5, 0, 1, 2]])
    assert poses.shape == (len(ours.body_names), 4, 4)
