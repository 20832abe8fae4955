"""A slow and independent dynamics of rigid-body trees in NumPy, to test the package against.

It is written from the definition. Neither twists nor wrenches nor recursions over forces occur:
along a motion every body's homogeneous matrix T_b (4, 4) is expanded into a power series of time,
by matrix exponentials of series, and d'Alembert's principle is summed over all bodies and all
directions of motion (Uicker 1965):

    tau_j = sum_b tr(dT_b/dxi_j P_b (d^2 T_b/dt^2 - G)^T) - sum_b dxi_j-power of the wrench on b

with P_b the integral of x x^T over the mass (x homogeneous) and G the matrix of gravity. A series
A_0 + A_1 t + A_2 t^2 is kept as the block matrix [[A_0, A_1, A_2], [0, A_0, A_1], [0, 0, A_0]]:
products and exponentials of such matrices are those of the series, exactly.

Mimic joints are not known here; they are tested as a reduction of the system without them.
"""

import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

SIZES = {  # entries in q and v
    "Fixed": (0, 0),
    "Revolute": (1, 1),
    "Continuous": (1, 1),
    "Prismatic": (1, 1),
    "Helical": (1, 1),
    "Universal": (2, 2),
    "Planar": (3, 3),
    "Translation": (3, 3),
    "Spherical": (4, 3),
    "Free": (7, 6),
    # Of tests/system/foreign_joints.py.
    "Ball": (4, 3),
    "Sphere": (4, 3),
    "Sledge": (3, 3),
    "Wheel": (1, 1),
}


def skew(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def hat(twist):
    """The matrix (4, 4) of a twist (6,), angular part first."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = skew(twist[:3]), twist[3:]
    return matrix


def vee(matrix):
    """The twists (..., 6) of matrices (..., 4, 4)."""
    return matrix[..., (2, 0, 1, 0, 1, 2), (1, 2, 0, 3, 3, 3)]


def pose(rotation, position):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return matrix


def rotation_matrix(rotation):
    rotation = np.asarray(rotation, float)
    return rotation if rotation.shape == (3, 3) else expm(skew(rotation))


def series(*coefficients):
    """The block matrix of a power series with the given matrices (n, n) or numbers."""
    order = len(coefficients)
    return sum(
        np.kron(np.eye(order, k=power), np.atleast_2d(c)) for power, c in enumerate(coefficients)
    )


def least_rotation(normal):
    """The rotation that takes z to the normal by the least angle."""
    normal = np.asarray(normal, float) / np.linalg.norm(normal)
    axis = np.cross([0, 0, 1], normal)
    sine = np.linalg.norm(axis)
    if sine == 0:
        return np.eye(3) if normal[2] > 0 else np.diag([1.0, -1.0, -1.0])
    return expm(skew(axis / sine) * np.arctan2(sine, normal[2]))


def screws(joint):
    """The unit twists of a joint that consists of screws in series."""
    zero = np.zeros(3)

    def unit(axis):
        return np.asarray(axis, float) / np.linalg.norm(axis)

    kind = type(joint).__name__
    if kind in ("Revolute", "Continuous"):
        return [np.r_[unit(joint.axis), zero]]
    if kind == "Prismatic":
        return [np.r_[zero, unit(joint.axis)]]
    if kind == "Helical":
        return [np.r_[unit(joint.axis), joint.pitch * unit(joint.axis)]]
    if kind == "Universal":
        return [np.r_[unit(joint.axis), zero], np.r_[unit(joint.second_axis), zero]]
    if kind == "Planar":
        x, y, normal = least_rotation(joint.normal).T
        return [np.r_[zero, x], np.r_[zero, y], np.r_[normal, zero]]
    if kind == "Translation":
        return list(np.eye(6)[3:])
    return []


class SlowSystem:
    """Bodies as `difflie.tree` takes them."""

    def __init__(self, bodies, gravity=(0.0, 0.0, -9.81)):
        self.bodies, waiting = [], list(bodies)
        while waiting:
            placed = [None, *(b.name for b in self.bodies)]
            body = next(b for b in waiting if b.parent in placed)
            self.bodies.append(body)
            waiting.remove(body)
        self.names = [b.name for b in self.bodies]
        sizes = np.array([SIZES[type(b.joint).__name__] for b in self.bodies])
        self.q_start, self.v_start = np.cumsum(np.vstack(([0, 0], sizes)), axis=0).T
        self.nq, self.nv = int(self.q_start[-1]), int(self.v_start[-1])
        self.gravity = np.zeros((4, 4))
        self.gravity[:3, 3] = gravity
        self.armature = np.concatenate(
            [
                np.broadcast_to(b.joint.armature, n)
                for b, (_, n) in zip(self.bodies, sizes, strict=True)
            ]
        )
        self.placements = [
            np.kron(np.eye(3), pose(rotation_matrix(b.rotation), b.position)) for b in self.bodies
        ]
        self.moments = np.array([self._second_moments(b) for b in self.bodies])
        moving = []
        for b in self.bodies:
            above = b.parent is not None and moving[self.names.index(b.parent)]
            moving.append(above or type(b.joint).__name__ != "Fixed")
        self.moving = np.array(moving)

    @staticmethod
    def _second_moments(body):
        com, inertia = np.asarray(body.com, float), np.asarray(body.inertia, float)
        inertia = (inertia + inertia.T) / 2
        about_origin = inertia + body.mass * (com @ com * np.eye(3) - np.outer(com, com))
        upper = np.trace(about_origin) / 2 * np.eye(3) - about_origin
        first = body.mass * com[:, None]
        return np.block([[upper, first], [first.T, np.array([[body.mass]])]])

    def _joint_series(self, body, q, v, a):
        """The motion of a joint along q(t), v(0) = v, dv/dt(0) = a, to second order in t."""
        joint = body.joint
        if type(joint).__name__ in ("Spherical", "Free"):
            turned = Rotation.from_quat(np.roll(q[:4], -1)).as_matrix()
            here = pose(turned, q[4:] if len(q) == 7 else np.zeros(3))
            rate, rise = (hat(np.r_[x, np.zeros(6 - len(x))]) for x in (v, a))
            zero = np.zeros((4, 4))
            return series(here, zero, zero) @ expm(series(zero, rate, rise / 2))
        if type(joint).__name__ in ("Ball", "Sphere"):
            turned = pose(Rotation.from_quat(np.roll(q, -1)).as_matrix(), np.zeros(3))
            rate, rise = (hat(np.r_[x, np.zeros(3)]) for x in (v, a))
            return series(turned, 0 * rate, 0 * rate) @ expm(series(0 * rate, rate, rise / 2))
        if type(joint).__name__ == "Sledge":  # an angle and a place; the twist (w, v_x, v_y)
            here = pose(expm(skew([0, 0, q[0]])), [q[1], q[2], 0])
            rate, rise = (hat(np.array([0, 0, x[0], x[1], x[2], 0])) for x in (v, a))
            return series(here, 0 * rate, 0 * rate) @ expm(series(0 * rate, rate, rise / 2))
        if type(joint).__name__ == "Wheel":  # along x and up, then about y
            law = q[0], v[0], a[0] / 2
            zero, up = np.zeros((4, 4)), pose(np.eye(3), [0, 0, joint.radius])
            along = hat(np.array([0, 0, 0, joint.radius, 0, 0]))
            turn = hat(np.array([0, 1, 0, 0, 0, 0]))
            rolled, turned = (expm(series(*(x * m for x in law))) for m in (along, turn))
            return rolled @ series(up, zero, zero) @ turned
        motion = np.eye(12)
        for screw, *law in zip(screws(joint), q, v, a / 2, strict=True):
            motion = motion @ expm(series(*(x * hat(screw) for x in law)))
        return motion

    def _joint_motions(self, q, v, a):
        rows = range(len(self.bodies))
        coordinates, rates = (
            [slice(s[i], s[i + 1]) for i in rows] for s in (self.q_start, self.v_start)
        )
        return [
            self._joint_series(b, q[coordinates[i]], v[rates[i]], a[rates[i]])
            for i, b in enumerate(self.bodies)
        ]

    def _coefficients(self, motions):
        """The first three coefficients of T (3, nb, 4, 4) from the motions of the joints."""
        found = {None: np.eye(12)}
        for b, placement, motion in zip(self.bodies, self.placements, motions, strict=True):
            found[b.name] = found[b.parent] @ placement @ motion
        blocks = np.array([found[n][:4] for n in self.names])
        return np.moveaxis(blocks.reshape(-1, 4, 3, 4), 2, 0)

    def expansion(self, q, v, a):
        """T, dT/dt and d^2 T/dt^2 of all bodies, each (nb, 4, 4)."""
        here, first, second = self._coefficients(self._joint_motions(q, v, a))
        return here, first, 2 * second

    def poses(self, q):
        rest = np.zeros(self.nv)
        return self.expansion(q, rest, rest)[0]

    def directions(self, q):
        """dT_b/dxi_j (nv, nb, 4, 4)."""
        rest = np.zeros(self.nv)
        still = self._joint_motions(q, rest, rest)
        found = []
        for i, b in enumerate(self.bodies):
            count = self.v_start[i + 1] - self.v_start[i]
            mine = q[self.q_start[i] : self.q_start[i + 1]]
            for rate in np.eye(count):
                moved = self._joint_series(b, mine, rate, 0 * rate)
                found.append(self._coefficients([*still[:i], moved, *still[i + 1 :]])[1])
        return np.array(found).reshape(self.nv, len(self.bodies), 4, 4)

    def jacobians(self, q):
        """The body Jacobians (nb, 6, nv)."""
        inverse = np.linalg.inv(self.poses(q))
        return vee(inverse @ self.directions(q)).transpose(1, 2, 0)

    def twists(self, q, v):
        here, rate, _ = self.expansion(q, v, 0 * v)
        return vee(np.linalg.inv(here) @ rate)

    def mass_matrix(self, q):
        d = self.directions(q)
        return np.einsum("ibxy,byz,jbxz->ij", d, self.moments, d) + np.diag(self.armature)

    def inverse_dynamics(self, q, v, a, wrench=None):
        _, _, acceleration = self.expansion(q, v, a)
        needed = acceleration - self.gravity
        tau = np.einsum("jbxy,byz,bxz->j", self.directions(q), self.moments, needed)
        if wrench is not None:
            tau -= np.einsum("bxj,bx->j", self.jacobians(q), wrench)
        return tau + self.armature * a

    def bias_force(self, q, v):
        return self.inverse_dynamics(q, v, 0 * v)

    def forward_dynamics(self, q, v, tau, wrench=None):
        return np.linalg.solve(
            self.mass_matrix(q), tau - self.inverse_dynamics(q, v, 0 * v, wrench)
        )

    def energy(self, q, v):
        here, rate, _ = self.expansion(q, v, 0 * v)
        kinetic = np.einsum("bxy,byz,bxz->", rate, self.moments, rate)
        moment = np.einsum("bxy,byz->bxz", here, self.moments)[self.moving]
        potential = -np.sum(self.gravity * moment)
        return (kinetic + np.sum(self.armature * v * v)) / 2, potential

    def momentum(self, q, v):
        """Angular about the world origin, then linear: the integrals of x cross dx/dt and dx/dt."""
        here, rate, _ = self.expansion(q, v, 0 * v)
        flow = np.einsum("bxy,byz,bwz->xw", rate, self.moments, here)
        angular = [flow[2, 1] - flow[1, 2], flow[0, 2] - flow[2, 0], flow[1, 0] - flow[0, 1]]
        return np.r_[angular, flow[:3, 3]]
