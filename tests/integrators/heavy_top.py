"""A heavy top with a fixed point, as a free body and the equations of its pivot, in closed form.

The benchmark of Bruels and Cardona 2010: 15 kg, centre of mass 1 m from the pivot, 150 rad/s.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from difflie import quaternion, so3
from difflie.groups import Euclidean, FlatProduct, Pose, UnitQuaternion
from difflie.integrators import DescriptorSystem

INERTIA = jnp.asarray([0.234375, 0.46875, 0.234375])
GRAVITY = jnp.asarray([0.0, 0.0, -9.81])
RATE = jnp.asarray([0.0, 150.0, -4.61538])


class HeavyTop(DescriptorSystem):
    """q = (quaternion, r) with r where the centre of mass is; `se3`: v = (w, body velocity of it),
    otherwise (w, dr/dt)."""

    se3: bool = eqx.field(static=True)
    mass: jax.Array = eqx.field(default_factory=lambda: jnp.asarray(15.0))
    com: jax.Array = eqx.field(default_factory=lambda: jnp.asarray([0.0, 1.0, 0.0]))
    rate: jax.Array = eqx.field(default_factory=lambda: RATE)

    @property
    def manifold(self):
        return FlatProduct((Pose(),) if self.se3 else (UnitQuaternion(), Euclidean(3)))

    @property
    def holonomic(self):
        return np.ones(3, dtype=bool)

    @property
    def start(self):
        q = jnp.concatenate((jnp.asarray([1.0, 0, 0, 0], self.com.dtype), self.com))
        return q, jnp.concatenate((self.rate, jnp.cross(self.rate, self.com)))

    def matrices(self, q):
        R, r = quaternion.to_matrix(q[:4]), q[4:]
        M = jnp.diag(jnp.concatenate((INERTIA, self.mass * jnp.ones(3, q.dtype))))
        arm = so3.hat(R.T @ r) if self.se3 else R @ so3.hat(self.com)
        return M, jnp.concatenate((arm, jnp.eye(3, dtype=q.dtype)), axis=1)

    def equations(self, t, q, v, a):
        R, r = quaternion.to_matrix(q[:4]), q[4:]
        M, A = self.matrices(q)
        g = R.T @ r - self.com if self.se3 else r - R @ self.com
        return M @ a + self._bias(q, v), g, A

    def acceleration(self, t, q, v):
        R, r, w = quaternion.to_matrix(q[:4]), q[4:], v[:3]
        M, A = self.matrices(q)
        if self.se3:
            c = jnp.cross(v[3:] - jnp.cross(w, R.T @ r), w)
        else:
            c = R @ jnp.cross(w, jnp.cross(self.com, w))
        kkt = jnp.block([[M, -A.T], [A, jnp.zeros((3, 3), q.dtype)]])
        x = jnp.linalg.solve(kkt, -jnp.concatenate((self._bias(q, v), c)))
        return x[:6], x[6:]

    def normal(self, q, rate):
        M, A = self.matrices(q)
        Y = jnp.linalg.solve(M, A.T)
        return Y @ jnp.linalg.solve(A @ Y, rate)

    def _bias(self, q, v):
        w, weight = v[:3], self.mass * GRAVITY
        if self.se3:
            R = quaternion.to_matrix(q[:4])
            force = self.mass * jnp.cross(w, v[3:]) - R.T @ weight
        else:
            force = -weight
        return jnp.concatenate((jnp.cross(w, INERTIA * w), force))


def run(method, system, state, h, steps):
    """The states (steps,) from a state that the method has made, and whether all were found."""

    def step(carry, k):
        state, ok = carry
        state, found = method.step(system, k * h, state, h)
        return (state, ok & found), state

    (_, ok), states = jax.lax.scan(step, (state, jnp.asarray(True)), jnp.arange(steps))
    return states, ok


def errors(method, se3, fix=lambda state: state):
    """Errors of pose, velocity and multipliers with h = 2.5e-4, and the orders from twice that.

    (3,) each, the largest in t <= 0.1 s; the pose's as |difference| / sqrt 2. And what is left of
    g and A v.
    """
    top, (q, v, multipliers) = HeavyTop(se3), reference(np.arange(401) * 2.5e-4, se3)

    @jax.jit
    def solve(h):
        state = fix(method.init(top, jnp.zeros(()), top.start, h))
        return run(method, top, state, h, 400)

    found = []
    for every in (2, 1):
        states, ok = solve(every * 2.5e-4)
        assert ok
        states = jax.tree.map(lambda a, n=400 // every: a[:n], states)
        pose = jax.vmap(top.manifold.difference)(jnp.asarray(q[every::every]), states.q)
        found.append(
            (
                np.linalg.norm(pose, axis=1).max() / 2**0.5,
                np.abs(states.v - v[every::every]).max(),
                np.linalg.norm(states.multipliers - multipliers[every::every], axis=1).max(),
            )
        )
    _, g, A = jax.vmap(lambda s: top.equations(0.0, s.q, s.v, s.acceleration))(states)
    rate = jnp.einsum("kij,kj->ki", A, states.v)
    coarse, fine = np.array(found)
    return fine, np.log2(coarse / fine), float(jnp.abs(g).max()), float(jnp.abs(rate).max())


def reference(t, se3):
    """q (m, 7), v (m, 6) and multipliers (m, 3) at times t (m,), from the reduced equations."""
    inertia, rate, gravity = (np.asarray(x) for x in (INERTIA, RATE, GRAVITY))
    mass, com = 15.0, np.array([0.0, 1.0, 0.0])
    about_pivot = np.diag(inertia) + mass * (com @ com * np.eye(3) - np.outer(com, com))

    def field(_, y):
        R, w = y[:9].reshape(3, 3), y[9:]
        moment = np.cross(com, mass * R.T @ gravity) - np.cross(w, about_pivot @ w)
        return np.concatenate(((R @ _hat(w)).ravel(), np.linalg.solve(about_pivot, moment)))

    start = np.concatenate((np.eye(3).ravel(), rate))
    run = solve_ivp(field, (0, t[-1]), start, "DOP853", t, rtol=1e-13, atol=1e-13)
    q, v, multipliers = [], [], []
    for y in run.y.T:
        R, w, dw = y[:9].reshape(3, 3), y[9:], field(0, y)[9:]
        speed, change = np.cross(w, com), np.cross(dw, com) + np.cross(w, np.cross(w, com))
        push = mass * (change - R.T @ gravity)
        q.append(np.concatenate((quaternion.from_matrix(jnp.asarray(R)), R @ com)))
        v.append(np.concatenate((w, speed if se3 else R @ speed)))
        multipliers.append(push if se3 else R @ push)
    return np.array(q), np.array(v), np.array(multipliers)


def _hat(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
