"""Rollouts of one body in 100 digits, written from the formulas of the methods' docstrings.

A body on a ball joint, or a free one, under gravity; nothing is shared with the package but the
numbers of the tableaux. The inverse of dexp is its series of nested brackets, with the Bernoulli
numbers, where the package has closed forms and Taylor polynomials.
"""

import mpmath as mp
import numpy as np

DIGITS = 100
STEP = mp.mpf(10) ** -18  # of central differences: they are exact to 35 digits


def vector(a):
    return [mp.mpf(float(x)) for x in a]


def plus(a, b, c=1):
    """a + c b."""
    return [x + c * y for x, y in zip(a, b, strict=True)]


def cross(a, b):
    return [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]


def dot(a, b):
    return mp.fdot(a, b)


def product(p, q):
    """Of quaternions."""
    vec = plus(plus([p[0] * x for x in q[1:]], p[1:], q[0]), cross(p[1:], q[1:]))
    return [p[0] * q[0] - dot(p[1:], q[1:]), *vec]


def rotated(q, x):
    """R x."""
    return product(product(q, [mp.mpf(0), *x]), [q[0], -q[1], -q[2], -q[3]])[1:]


def turn(w):
    """The quaternion of the rotation vector w, and (1 - cos t) / t^2, (t - sin t) / t^3."""
    t = mp.sqrt(dot(w, w))
    if not t:
        return vector((1, 0, 0, 0)), mp.mpf(1) / 2, mp.mpf(1) / 6
    s = mp.sin(t / 2) / t
    return [mp.cos(t / 2), *(s * x for x in w)], 2 * s**2, (t - mp.sin(t)) / t**3


class Body:
    """free: whether a pose (7,) and a twist move, or an attitude (4,) and a rate."""

    def __init__(self, free, mass, com, inertia, gravity):
        """com and inertia (3,), diagonal and about the centre of mass, in the body's axes."""
        self.free, self.mass = free, mp.mpf(mass)
        self.com, self.gravity = vector(com), vector(gravity)
        c, m = self.com, self.mass
        hat = mp.matrix([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
        self.central = mp.diag(vector(inertia))
        self.inertia = self.central + m * hat * hat.T
        if free:
            whole = mp.zeros(6)
            whole[:3, :3], whole[:3, 3:], whole[3:, :3] = self.inertia, m * hat, m * hat.T
            whole[3:, 3:] = m * mp.eye(3)
            self.inertia = whole
        self.inverse = self.inertia**-1

    def retract(self, y, xi):
        q, w = y[:4], xi[:3]
        step, b, c = turn(w)
        turned = product(q, step)
        size = mp.sqrt(dot(turned, turned))
        turned = [x / size for x in turned]
        if not self.free:
            return turned
        once = cross(w, xi[3:])
        moved = plus(plus(xi[3:], once, b), cross(w, once), c)
        return [*turned, *plus(y[4:], rotated(q, moved))]

    def bracket(self, a, b):
        turned = cross(a[:3], b[:3])
        return [*turned, *plus(cross(a[:3], b[3:]), cross(a[3:], b[:3]))] if self.free else turned

    def dexp_inv(self, theta, xi):
        """sum_k (-1)^k B_k / k! ad_theta^k xi."""
        total, nested, k, factorial = list(xi), list(xi), 0, mp.mpf(1)
        small = mp.mpf(10) ** -70
        while True:
            k += 1
            nested, factorial = self.bracket(theta, nested), factorial * k
            size = max(abs(x) for x in nested)
            if k == 1 or k % 2 == 0:
                c = (-1) ** k * mp.bernoulli(k) / factorial
                total = plus(total, nested, c)
                if size * abs(c) < small:
                    return total

    def acceleration(self, q, v):
        back = [q[0], -q[1], -q[2], -q[3]]
        weight = rotated(back, [self.mass * g for g in self.gravity])
        momentum = list(self.inertia * mp.matrix(v))
        moment = plus(cross(self.com, weight), cross(v[:3], momentum[:3]), -1)
        if not self.free:
            return list(self.inverse * mp.matrix(moment))
        moment = plus(moment, cross(v[3:], momentum[3:]), -1)
        force = plus(weight, cross(v[:3], momentum[3:]), -1)
        return list(self.inverse * mp.matrix([*moment, *force]))


def total(h, row, rates, part, size):
    """h sum_j row_j k_j (size,) of the rates of q, part 0, or of v, part 1."""
    row = [mp.mpf(float(c)) for c in row[: len(rates)]]
    pairs = list(zip(row, rates, strict=False))
    return [h * mp.fsum(c * k[part][i] for c, k in pairs) for i in range(size)]


def moved(body, state, h, rows, rates):
    """(q, v) . exp(h sum_j row_j k_j) ... over the rows."""
    q, v = state
    for row in rows:
        xi, change = (total(h, row, rates, part, len(v)) for part in (0, 1))
        q, v = body.retract(q, xi), plus(v, change)
    return q, v


def in_chart(body, state, h, tableau):
    """A step of a Munthe-Kaas method."""
    rates = []
    for row in tableau.a:
        theta = total(h, row, rates, 0, len(state[1]))
        q, v = moved(body, state, h, [row], rates)
        rates.append((body.dexp_inv(theta, v), body.acceleration(q, v)))
    return moved(body, state, h, [tableau.b], rates)


def by_products(body, state, h, stages, update):
    """A step of a commutator-free method, from the rows of every product."""
    rates = []
    for rows in stages:
        q, v = moved(body, state, h, rows, rates)
        rates.append((v, body.acceleration(q, v)))
    return moved(body, state, h, update, rates)


def one_by_one(row):
    """The rows of the products of Crouch and Grossman: one rate each."""
    return [[0] * i + [c] for i, c in enumerate(row)]


def euler(body, state, h):
    q, v = state
    v = plus(v, body.acceleration(q, v), h)
    return body.retract(q, [h * x for x in v]), v


def by_momentum(body, state, h):
    """A step in which the centre of mass goes straight, and only gravity changes the momentum."""
    q, v = state
    rates = plus(v, body.acceleration(q, v), h)
    weight = [body.mass * g for g in body.gravity]
    end = body.retract(q, [h * x for x in rates])
    back = [end[0], -end[1], -end[2], -end[3]]
    if not body.free:
        moment = cross(rotated(q, body.com), weight)
        momentum = plus(rotated(q, list(body.inertia * mp.matrix(v))), moment, h)
        return end, list(body.inverse * mp.matrix(rotated(back, momentum)))
    w, c = v[:3], body.com
    linear = [body.mass * x for x in rotated(q[:4], plus(v[3:], cross(w, c)))]
    linear = plus(linear, weight, h)
    spin = rotated(q[:4], list(body.central * mp.matrix(w)))
    w = list(body.central**-1 * mp.matrix(rotated(back, spin)))
    velocity = [x / body.mass for x in linear]
    place = plus(plus(q[4:], rotated(q[:4], c)), velocity, h)
    place = plus(place, rotated(end[:4], c), -1)
    return [*end[:4], *place], [*w, *plus(rotated(back, velocity), cross(w, c), -1)]


def verlet(body, state, h):
    """The kick by Newton's method, as fixed-point iteration diverges at high rates."""
    q, v = state
    u, n = v, len(v)

    def left(u):
        return plus(plus(u, v, -1), body.acceleration(q, u), -h / 2)

    while max(abs(x) for x in left(u)) > mp.mpf(10) ** -90:
        # Accelerations are quadratic in the velocity, so that differences are exact.
        units = [[mp.mpf(int(i == j)) for j in range(n)] for i in range(n)]
        columns = [plus(left(plus(u, e)), left(plus(u, e, -1)), -1) for e in units]
        jacobian = mp.matrix(columns).T / 2
        u = plus(u, list(mp.lu_solve(jacobian, mp.matrix(left(u)))), -1)
    q = body.retract(q, [h * x for x in u])
    return q, plus(u, body.acceleration(q, u), h / 2)


def stepper(method):
    """step(body, state, h) of a method of the package, by its kind and its tableau."""
    kinds = [kind.__name__ for kind in type(method).__mro__]
    named = {"SemiImplicitEuler": by_momentum, "BodyFixedEuler": euler, "StormerVerlet": verlet}
    if method.name in named:
        return named[method.name]
    tableau = method.tableau
    if "MuntheKaas" in kinds:
        return lambda *given: in_chart(*given, tableau)
    if "CrouchGrossman" in kinds:
        stages = [one_by_one(row) for row in tableau.a]
        return lambda *given: by_products(*given, stages, one_by_one(tableau.b))
    assert "CommutatorFree" in kinds
    return lambda *given: by_products(*given, tableau.alpha, tableau.beta)


def loss(method, body, q, v, steps, z):
    """Of the end of a rollout from q . psi(z_1), v + z_2 with steps z_3; see the test."""
    step, n = stepper(method), len(v)
    state = body.retract(q, z[:n]), plus(v, z[n : 2 * n])
    for _ in range(steps):
        state = step(body, state, z[-1])
    return weighed(*state)


def weighed(q, v):
    """sum_i (cos(i) y_i + (1 + i) y_i^2 / 4) over y = (q, v)."""
    return sum(float(np.cos(i)) * y + (1 + i) * y * y / 4 for i, y in enumerate([*q, *v]))


@mp.workdps(DIGITS)
def gradient_and_product(method, body, q, v, h, steps, direction):
    """The gradient of the loss at z = (0, 0, h), and its Hessian times a direction."""
    q, v, direction = vector(q), vector(v), vector(direction)
    size = mp.sqrt(dot(q[:4], q[:4]))
    q = [*(x / size for x in q[:4]), *q[4:]]
    z = [mp.mpf(0)] * (2 * len(v)) + [mp.mpf(h)]

    def at(*moves):
        there = z
        for move, s in moves:
            there = plus(there, move, s * STEP)
        return loss(method, body, q, v, steps, there)

    gradient, hessian = [], []
    for i in range(len(z)):
        e = [mp.mpf(int(i == j)) for j in range(len(z))]
        ahead = [at((direction, s), (e, 1)) - at((direction, s), (e, -1)) for s in (1, -1)]
        gradient.append((ahead[0] + ahead[1]) / (4 * STEP))
        hessian.append((ahead[0] - ahead[1]) / (4 * STEP**2))
    return np.array([gradient, hessian], dtype=float)
