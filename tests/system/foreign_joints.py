"""Joint types as a user would write them, outside the package."""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import difflie as dl
from difflie.groups import Euclidean, FlatManifold, UnitQuaternion

# The twist (w, v_x, v_y) among the twists of space.
IN_SPACE = np.eye(6)[:, 2:5]


class SE2(FlatManifold):
    """Displacements of a plane: points (angle, x, y), tangents body twists (w, v_x, v_y)."""

    point_size = 3
    tangent_size = 3

    def identity(self):
        return np.zeros(3)

    def retract(self, y, xi):
        c, s = jnp.cos(y[0]), jnp.sin(y[0])
        x, z, _ = dl.so3.dexp(_about_z(xi)) @ jnp.stack((xi[1], xi[2], 0 * xi[0]))
        return jnp.stack((y[0] + xi[0], y[1] + c * x - s * z, y[2] + s * x + c * z))

    def difference(self, y0, y1):
        c, s = jnp.cos(y0[0]), jnp.sin(y0[0])
        w, x, z = y1 - y0
        step = jnp.stack((c * x + s * z, c * z - s * x, 0 * w))
        x, z, _ = dl.so3.dexp_inv(_about_z(jnp.stack((w,)))) @ step
        return jnp.stack((w, x, z))

    def dexp_inv(self, theta, xi):
        return _reduced(dl.se3.dexp_inv(-IN_SPACE @ theta), xi)

    def magnitude(self, y):
        distance = jnp.sqrt(y[1] ** 2 + y[2] ** 2)
        return jnp.stack((jnp.ones_like(distance), distance, distance))

    def bracket(self, xi, eta):
        return _reduced(dl.se3.ad(IN_SPACE @ xi), eta)

    def adjoint(self, theta, xi):
        return _reduced(dl.se3.Ad(dl.se3.exp(IN_SPACE @ theta)), xi)

    def halfway(self, theta, xi):
        half = dl.se3.Ad(dl.se3.exp(IN_SPACE @ (theta / 2)))
        matrix = IN_SPACE.T @ half @ IN_SPACE
        return jnp.linalg.solve(jnp.eye(3, dtype=theta.dtype) + matrix, xi)


def _about_z(xi):
    return jnp.stack((0 * xi[0], 0 * xi[0], xi[0]))


def _reduced(matrix, xi):
    return (IN_SPACE.T @ matrix @ IN_SPACE) @ xi


@dataclass(frozen=True, kw_only=True)
class Sledge(dl.Joint):
    """Motion in a plane, with the body's own velocities."""

    manifold = SE2()

    def transform(self, q):
        (c, s), o = (jnp.cos(q[0]), jnp.sin(q[0])), 0 * q[0]
        one = o + 1
        rows = [[c, -s, o, q[1]], [s, c, o, q[2]], [o, o, one, o], [o, o, o, one]]
        return jnp.stack([jnp.stack(row) for row in rows])

    def dofs(self):
        x, y, z = np.eye(3).tolist()
        return dl.Dof("revolute", z), dl.Dof("prismatic", x), dl.Dof("prismatic", y)


@dataclass(frozen=True, kw_only=True)
class Wheel(dl.Joint):
    """A wheel that rolls along the x axis, about its y axis, on the plane z = 0."""

    radius: float = eqx.field(default=0.1, converter=dl.number(unit="m", positive=True))

    manifold = Euclidean(1)

    def transform(self, q):
        (c, s), o, r = (jnp.cos(q[0]), jnp.sin(q[0])), 0 * q[0], self.radius
        one = o + 1
        rows = [[c, o, s, r * q[0]], [o, one, o, o], [-s, o, c, o + r], [o, o, o, one]]
        return jnp.stack([jnp.stack(row) for row in rows])

    def motion_subspace(self, q):
        o, r = 0 * q[0], self.radius
        return jnp.stack((o, o + 1, o, r * jnp.cos(q[0]), o, r * jnp.sin(q[0])))[:, None]

    def bias(self, q, v):
        o, r = 0 * q[0], self.radius * v[0] ** 2
        return jnp.stack((o, o, o, -r * jnp.sin(q[0]), o, r * jnp.cos(q[0])))


@dataclass(frozen=True, kw_only=True)
class Roller(Wheel):
    """The same under another name."""


class Ball(dl.Joint):
    """A spherical joint."""

    manifold = UnitQuaternion()

    def transform(self, q):
        return jnp.eye(4, dtype=q.dtype).at[:3, :3].set(dl.quaternion.to_matrix(q))

    def dofs(self):
        return tuple(dl.Dof("revolute", e) for e in np.eye(3).tolist())


@dataclass(frozen=True, kw_only=True)
class Sphere(Ball):
    """The same, with nothing said of its motion subspace."""

    def dofs(self):
        return (dl.Dof("angle"),) * 3


class Circle(FlatManifold):
    """Turns of a plane: points (cos, sin), tangents angular velocities."""

    point_size = 2
    tangent_size = 1

    def identity(self):
        return np.array((1.0, 0.0))

    def retract(self, y, xi):
        c, s = jnp.cos(xi[0]), jnp.sin(xi[0])
        turned = jnp.stack((c * y[0] - s * y[1], s * y[0] + c * y[1]))
        return turned / jnp.sqrt(turned @ turned)

    def difference(self, y0, y1):
        return jnp.arctan2(y0[0] * y1[1] - y0[1] * y1[0], y0 @ y1)[None]

    def dexp_inv(self, theta, xi):
        return xi

    def magnitude(self, y):
        return jnp.ones(1, y.dtype)

    def bracket(self, xi, eta):
        return jnp.zeros_like(eta)

    def adjoint(self, theta, xi):
        return xi

    def halfway(self, theta, xi):
        return xi / 2


@dataclass(frozen=True, kw_only=True)
class Turntable(dl.Joint):
    """A hinge about z, whose coordinates are no plain number; its constants are in float64."""

    height: float = eqx.field(default=0.1, converter=dl.number(unit="m"))

    manifold = Circle()

    def transform(self, q):
        c, s, o, one = q[0], q[1], np.float64(0), np.float64(1)
        rows = [[c, -s, o, o], [s, c, o, o], [o, o, one, self.height], [o, o, o, one]]
        return jnp.stack([jnp.stack([jnp.asarray(x, float) for x in row]) for row in rows])

    def dofs(self):
        return (dl.Dof("revolute"),)
