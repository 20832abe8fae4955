"""Robots as Pinocchio has them, in the conventions of the package.

Pinocchio sorts the joints, puts linear parts and positions first, quaternions as (x, y, z, w),
keeps the cosine and sine of continuous and planar joints instead of the angle, and the body-fixed
velocity of planar joints instead of the derivatives of their coordinates. `Twin` converts.
Quantities with the inverse of the mass matrix M agree to 1e-14 cond(M) where that is more than
1e-12: the rounding errors of either library are amplified so much.
"""

import importlib.metadata
import warnings
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from slow_dynamics import rotation_matrix
from trees import error, random_states

import difflie as dl
from difflie import io

pin = pytest.importorskip("pinocchio")
try:
    ROBOTS = importlib.metadata.distribution("example-robot-data").locate_file(
        "cmeel.prefix/share/example-robot-data/robots"
    )
except importlib.metadata.PackageNotFoundError:
    pytest.skip("the robots are not installed", allow_module_level=True)


class Twin:
    """A robot as both libraries read it.

    Pinocchio moves mimic joints by themselves; the laws are read from the file once more, and its
    results are reduced by the matrix of `rates`.
    """

    def __init__(self, system, model, laws):
        self.system, self.model, self.data, self.laws = system, model, model.createData(), laws
        t = system.topology
        starts = zip(t.coordinate_start[:-1], t.velocity_start[:-1], strict=True)
        entries = dict(zip(t.joints, starts, strict=True))
        self.joints = []
        for joint, name in zip(t.types, t.joints, strict=True):
            kind = joint.type_name()
            if kind == "fixed":
                continue
            source, ratio, offset = laws.get(name, (name, 1.0, 0.0))
            joint = model.joints[model.getJointId(name)]
            self.joints.append((kind, joint, *map(int, entries[source]), ratio, offset))
        assert len(self.joints) == model.njoints - 1
        self.frame_ids = [model.getFrameId(name, pin.BODY) for name in system.body_names]
        self.frames = [model.frames[f] for f in self.frame_ids]

    def coordinates(self, q):
        """Pinocchio's configuration."""
        theirs = np.zeros(self.model.nq)
        for kind, joint, i, _, ratio, offset in self.joints:
            if kind == "free":
                new = np.r_[q[i + 4 : i + 7], q[i + 1 : i + 4], q[i]]
            elif kind == "spherical":
                new = np.r_[q[i + 1 : i + 4], q[i]]
            elif kind == "planar":
                new = [q[i], q[i + 1], np.cos(q[i + 2]), np.sin(q[i + 2])]
            elif kind == "continuous":
                new = [np.cos(q[i]), np.sin(q[i])]
            else:
                new = ratio * q[i : i + joint.nq] + offset
            theirs[joint.idx_q : joint.idx_q + joint.nq] = new
        return theirs

    def rates(self, q):
        """The matrix that takes our velocities to Pinocchio's."""
        theirs = np.zeros((self.model.nv, self.system.nv))
        for kind, joint, i, j, ratio, _ in self.joints:
            block = ratio * np.eye(joint.nv)
            if kind == "free":
                block = np.roll(block, 3, axis=0)
            elif kind == "planar":
                c, s = np.cos(q[i + 2]), np.sin(q[i + 2])
                block[:2, :2] = [[c, s], [-s, c]]
            theirs[joint.idx_v : joint.idx_v + joint.nv, j : j + joint.nv] = block
        return theirs

    def rate_changes(self, q, v):
        """The derivative of the matrix of `rates` times v; only planar joints have one."""
        theirs = np.zeros(self.model.nv)
        for kind, joint, i, j, _, _ in self.joints:
            if kind == "planar":
                c, s = np.cos(q[i + 2]), np.sin(q[i + 2])
                turned = np.array([[-s, c], [-c, -s]]) @ v[j : j + 2] * v[j + 2]
                theirs[joint.idx_v : joint.idx_v + 2] = turned
        return theirs

    def wrenches(self, wrench):
        """Wrenches on the bodies (nb, 6) as Pinocchio takes them, one for each of its joints."""
        total = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for frame, (moment, force) in zip(self.frames, wrench.reshape(-1, 2, 3), strict=True):
            total[frame.parentJoint] += frame.placement.act(pin.Force(force, moment))
        return pin.StdVec_Force(total)

    def expected(self, q, v, a, tau, wrench=None):
        """What Pinocchio says, in our conventions."""
        model, data, g = self.model, self.data, self.rates(q)
        x, rate, change = self.coordinates(q), g @ v, self.rate_changes(q, v)
        external = self.wrenches(np.zeros((len(self.frames), 6)) if wrench is None else wrench)
        mass = symmetric(pin.crba(model, data, x))
        mass = g.T @ mass @ g
        found = {
            "inverse dynamics": g.T @ pin.rnea(model, data, x, rate, g @ a + change, external),
            "bias force": g.T @ pin.rnea(model, data, x, rate, change),
            "mass matrix": mass,
        }
        if self.laws:
            bias = g.T @ pin.rnea(model, data, x, rate, change, external)
            found["forward dynamics"] = solve(mass, tau - bias)
        else:
            effort = np.linalg.solve(g.T, tau)
            acceleration = pin.aba(model, data, x, rate, effort, external)
            found["forward dynamics"] = np.linalg.solve(g, acceleration - change)
        pin.framesForwardKinematics(model, data, x)
        found["body poses"] = np.array([data.oMf[f].homogeneous for f in self.frame_ids])
        found["kinetic energy"] = pin.computeKineticEnergy(model, data, x, rate)
        found["potential energy"] = pin.computePotentialEnergy(model, data, x)
        central = pin.computeCentroidalMomentum(model, data, x, rate)
        centre = pin.centerOfMass(model, data, x)
        about_origin = central.angular + np.cross(centre, central.linear)
        moving = np.r_[about_origin, central.linear]
        found["momentum"] = moving if model.nv else np.zeros(6)  # theirs is not a number
        return found

    def all_expected(self, q, v, a, tau, wrench):
        """And all else it knows, for robots that move and have no planar joints."""
        found = self.expected(q, v, a, tau, wrench)
        model, data, g = self.model, self.data, self.rates(q)
        x, rate, external = self.coordinates(q), g @ v, self.wrenches(wrench)
        pin.forwardKinematics(model, data, x, rate)
        pin.computeJointJacobiansTimeVariation(model, data, x, rate)
        pin.updateFramePlacements(model, data)
        kinds = (pin.LOCAL, pin.WORLD, pin.LOCAL_WORLD_ALIGNED)

        def of_bodies(jacobian):
            each = [[jacobian(model, data, f, k) for k in kinds] for f in self.frame_ids]
            return np.roll(each, 3, axis=2) @ g

        found |= {
            "body twists": np.roll(
                [pin.getFrameVelocity(model, data, f, pin.LOCAL).vector for f in self.frame_ids],
                3,
                axis=1,
            ),
            "jacobians": of_bodies(pin.getFrameJacobian),
            "jacobian rates": of_bodies(pin.getFrameJacobianTimeVariation),
            "total mass": pin.computeTotalMass(model),
            "centre of mass": pin.centerOfMass(model, data, x).copy(),
            "its jacobian": pin.jacobianCenterOfMass(model, data, x) @ g,
            "centroidal matrix": np.roll(pin.computeCentroidalMap(model, data, x), 3, axis=0) @ g,
            "gravity force": g.T @ pin.computeGeneralizedGravity(model, data, x),
            "coriolis matrix": g.T @ pin.computeCoriolisMatrix(model, data, x, rate) @ g,
        }
        found["coriolis force"] = found["coriolis matrix"] @ v
        regressor = pin.computeJointTorqueRegressor(model, data, x, rate, g @ a)
        found["regressor"] = g.T @ self.of_bodies(regressor)
        kinetic = pin.computeKineticEnergyRegressor(model, data, x, rate)
        found["kinetic regressor"] = self.of_bodies(kinetic)
        potential = pin.computePotentialEnergyRegressor(model, data, x)
        found["potential regressor"] = self.of_bodies(potential)

        pin.computeRNEADerivatives(model, data, x, rate, g @ a, external)
        mass = g.T @ symmetric(data.M) @ g
        found["inverse by q"] = g.T @ data.dtau_dq @ g
        found["inverse by v"] = g.T @ data.dtau_dv @ g
        found["inverse by a"] = mass
        if self.laws:
            there = g @ found["forward dynamics"]
            pin.computeRNEADerivatives(model, data, x, rate, there, external)
            found["forward by q"] = -solve(mass, g.T @ data.dtau_dq @ g)
            found["forward by v"] = -solve(mass, g.T @ data.dtau_dv @ g)
            found["inverse mass"] = solve(mass, np.eye(len(mass)))
        else:
            back = np.linalg.inv(g)
            pin.computeABADerivatives(model, data, x, rate, back.T @ tau, external)
            found["forward by q"] = back @ data.ddq_dq @ g
            found["forward by v"] = back @ data.ddq_dv @ g
            found["inverse mass"] = back @ symmetric(pin.computeMinverse(model, data, x)) @ back.T
        found["forward by tau"] = found["inverse mass"]
        return found

    def of_bodies(self, regressor):
        """Columns for the joints (.., 10 njoints) as columns for the bodies (.., 10 nb).

        Pinocchio keeps of a body what it adds to the inertia of the joint that carries it.
        """
        columns = np.asarray(regressor).reshape(*np.shape(regressor)[:-1], -1, 10)
        found = np.zeros((*columns.shape[:-2], len(self.frames), 10))
        for b, frame in enumerate(self.frames):
            if frame.parentJoint:
                moved = columns[..., frame.parentJoint - 1, :] @ carried(frame.placement)
                found[..., b, :] = moved
        return found.reshape(*columns.shape[:-2], -1)


def symmetric(upper):
    upper = np.triu(upper)
    return upper + np.triu(upper, 1).T


def solve(mass, x):
    """M^-1 x; not a number where M is singular."""
    try:
        return np.linalg.solve(mass, x)
    except np.linalg.LinAlgError:
        return np.full_like(x, np.nan)


def carried(placement):
    """The matrix (10, 10) from inertial parameters of ours to Pinocchio's in a frame around it."""
    order = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]  # theirs are (.., xx, xy, yy, xz, yz, zz)
    some = pin.Inertia(1.0, np.zeros(3), np.eye(3)).toDynamicParameters()

    def moved(parameters):
        inertia = pin.Inertia.FromDynamicParameters(parameters)
        return inertia.se3Action(placement).toDynamicParameters()

    return np.stack([moved(some + e) - moved(some) for e in np.eye(10)[order]], axis=1)


def read(path, base):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # masses and inertias of some files are doubtful
        system = io.load(path, base=base)
    root = () if base == "fixed" else (pin.JointModelFreeFlyer(), "root_joint")
    laws = {
        j.get("name"): (m.get("joint"), float(m.get("multiplier", 1)), float(m.get("offset", 0)))
        for j in ElementTree.parse(path).iter("joint")
        if (m := j.find("mimic")) is not None
    }
    return Twin(system, pin.buildModelFromUrdf(str(path), *root), laws)


def their_joint(joint):
    """A joint as Pinocchio has it, None if fixed; of planar joints only those with the normal z."""
    axes = [np.array(d.axis) / np.linalg.norm(d.axis) for d in joint.dofs()]
    match joint:
        case dl.Fixed():
            return None
        case dl.Revolute():
            return pin.JointModelRevoluteUnaligned(*axes)
        case dl.Prismatic():
            return pin.JointModelPrismaticUnaligned(*axes)
        case dl.Helical():
            return pin.JointModelHelicalUnaligned(*axes, joint.pitch)
        case dl.Universal():
            return pin.JointModelUniversal(*axes)
        case dl.Planar(normal=(0.0, 0.0, 1.0)):
            return pin.JointModelPlanar()
        case dl.Translation():
            return pin.JointModelTranslation()
        case dl.Spherical():
            return pin.JointModelSpherical()
        case dl.Free():
            return pin.JointModelFreeFlyer()


def built(bodies):
    """The twin of bodies in order."""
    model, placed = pin.Model(), {None: (0, pin.SE3.Identity())}
    for b in bodies:
        parent, offset = placed[b.parent]
        placement = offset * pin.SE3(rotation_matrix(b.rotation), np.array(b.position))
        joint = their_joint(b.joint)
        if joint is not None:
            parent = model.addJoint(parent, joint, placement, b.name)
            placement = pin.SE3.Identity()
        inertia = pin.Inertia(b.mass, np.array(b.com), np.array(b.inertia))
        model.appendBodyToJoint(parent, inertia, placement)
        model.addFrame(pin.Frame(b.name, parent, 0, placement, pin.BODY))
        placed[b.name] = parent, placement
    return Twin(dl.tree(bodies), model, {})


def check(twin):
    system = twin.system
    q, v, a, tau, _ = random_states(system, 3, seed=0)

    @jax.jit
    @jax.vmap
    def ours(q, v, a, tau):
        kinetic, potential = dl.energy(system, q, v)
        return {
            "inverse dynamics": dl.inverse_dynamics(system, q, v, a),
            "forward dynamics": dl.forward_dynamics(system, q, v, tau),
            "mass matrix": dl.mass_matrix(system, q),
            "body poses": dl.body_poses(system, q),
            "kinetic energy": kinetic,
            "potential energy": potential,
            "momentum": dl.momentum(system, q, v),
        }

    twice = [np.concatenate((x, x)) for x in (q, v, tau)]
    found = ours(twice[0], twice[1], np.concatenate((a, 0 * a)), twice[2])
    bias = found["inverse dynamics"][len(q) :]
    found = {name: value[: len(q)] for name, value in found.items()} | {"bias force": bias}
    samples = [twin.expected(*s) for s in zip(q, v, a, tau, strict=True)]
    condition = max(np.linalg.cond(s["mass matrix"]) for s in samples)
    for name, value in found.items():
        tolerance = max(1e-12, 1e-14 * condition) if name == "forward dynamics" else 1e-12
        assert error(value, np.array([s[name] for s in samples])) < tolerance, name
