"""Torques that are linear in inertias, armature, damping and friction, as rows.

    W chi = y,    chi = (pi, armature, damping, friction)

W stacks the inverse-dynamics regressor of all samples beside the columns of the joints, each row in
its standard deviation, with Coulomb friction at the machine's `friction_velocity`. y is the
measured torque less that of springs and all else that does not depend on chi. W of any length is
represented by the triangle R of its QR decomposition. Gautier 1990.
"""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..dynamics.regressor import effort_columns
from ..dynamics.regressor import parameters as inertial_parameters
from ..solvers.linear import product
from ..system.kinematic_tree import Tree
from ..system.system import System
from .inverse_dynamics import InverseDynamics
from .problem import Layout, Problem
from .sensors import meant

JOINTS = ("armature", "damping", "friction")


class LinearTorques(Problem):
    """The torque error as rows: matrix (r, p) chi - target (r,), where there (r,) is measured.

    It replaces `InverseDynamics` for machines that differ in chi (p,) only; any number of samples
    has the same sum of squares as a few rows, the triangle of their QR decomposition. places: the
    `Layout` of the rows; None for those of a triangle, which have no order in time.
    """

    matrix: jax.Array
    target: jax.Array
    there: jax.Array
    joints: tuple[str, ...] = eqx.field(static=True)
    places: tuple[jax.Array, jax.Array, jax.Array] | None = None

    def residual(self, system: System, own: jax.Array) -> Float[Array, " r"]:
        return product(self.matrix, linear_parameters(system, self.joints)) - self.target

    @property
    def measured(self) -> Bool[Array, " r"]:
        return self.there

    @property
    def layout(self) -> Layout | None:
        return None if self.places is None else Layout(*map(np.asarray, self.places))

    def weighted(self, deviation: float) -> LinearTorques:
        """The same rows in this standard deviation."""
        scaled = self.matrix / deviation, self.target / deviation
        return dataclasses.replace(self, matrix=scaled[0], target=scaled[1])


def linear_parameters(system: System, joints: tuple[str, ...] = JOINTS) -> Float[Array, " p"]:
    """chi (p,): the inertial parameters (nb, 10), flattened, then the numbers of the joints."""
    rows = (getattr(system.joints, leaf) for leaf in joints)
    return jnp.concatenate((inertial_parameters(system.bodies).ravel(), *rows))


@eqx.filter_jit
def torque_rows(
    problem: InverseDynamics, system: System, joints: tuple[str, ...]
) -> tuple[Float[Array, "n nv p"], Float[Array, "n nv"]]:
    """W (n, nv, p) and y (n, nv) in standard deviations, zero at gaps."""
    tree = Tree.of(system)
    state = meant(system, problem.q, problem.v, problem.a)
    columns = jax.vmap(lambda *state: effort_columns(tree, *state))
    inertial = problem.averaged(columns, *state)
    nothing = {
        name: jnp.zeros_like(getattr(system.bodies, name)) for name in ("mass", "com", "inertia")
    }
    empty = system.replace(**nothing)
    count = len(system.joints.armature)

    def others(numbers: jax.Array) -> jax.Array:
        """What acts on bodies without mass, for numbers (len(joints) rows,) of the joints."""
        leaves = zip(joints, jnp.split(numbers, len(joints)) if joints else (), strict=True)
        return problem.torques(empty.replace(**dict(leaves)))

    zero = jnp.zeros(len(joints) * count, system.dtype)
    w = jnp.concatenate((inertial, jax.jacfwd(others)(zero)), axis=-1)
    y = problem.efforts(system) - others(zero)
    rows = jax.vmap(lambda x: problem.in_deviations(system, x), -1, -1)
    return rows(w), problem.in_deviations(system, y)
