"""Linear identification: torques are linear in inertias, armature, damping and friction.

    W chi = y,    chi = (pi, armature, damping, friction)

stacks the inverse-dynamics regressor of all samples beside the columns of the joints, each row in
its standard deviations, with Coulomb friction at the machine's `friction_velocity`. y is the
measured torque less that of springs and all else that does not depend on chi. Only the base
parameters K chi, of columns that are independent in these samples, have a unique solution (Gautier
1990), in closed form, with standard errors as of `fit`. W of any length is represented by the
triangle R of its QR decomposition.

A solution need not be physically consistent: masses may be negative. `Linear.consistent` finds the
consistent machine that is nearest in torque, and in `NominalPrior` where torques do not identify
it. Both are convex in the pseudo-inertias and in friction, so the minimum is unique, from any start
(Wensing, Kim and Slotine 2018).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..dynamics import BaseParameters
from ..dynamics.identifiable import independent_columns
from ..parameters import Parameters, entries
from ..parameters.inertias import INERTIAL
from ..system.system import System
from ..system.validation import nearest
from .consistency import Nominal, NominalPrior, consistent
from .elimination import triangle
from .fitting import Fit, judged
from .inverse_dynamics import InverseDynamics
from .least_squares import Outcome
from .losses import Squares
from .recordings import DataError
from .statistics import (
    Information,
    Rows,
    Uncertainty,
    information,
    intervals,
    listed,
    uncertainty,
)
from .torque_rows import (
    JOINTS,
    PI,
    LinearTorques,
    linear_parameters,
    names_of,
    torque_rows,
    with_linear_parameters,
)

# A lower bound on noise: exact torques are not weighted by their rounding errors.
_LEAST_NOISE = 1e-3
# A number of a joint whose torque is so small a part of the noise is none.
_NO_NUMBER = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Linear(Uncertainty):
    """The base parameters that torques identify, in closed form.

    base: matrix (rank, p) maps chi (p,) to the base parameters; columns (rank,) represent them.
    names (rank,): each as a sum, "link2/origin_I_zz + 0.09 link3/mass"; mass_com (kg m) are the
    first moments and origin_I (kg m^2) the inertia about the body frame's ORIGIN. values,
    standard_errors, white_errors, freedom (rank,) and intervals (rank, 2): as of `Fit`.
    information: their covariance (rank, rank) for white noise, and the condition of W_b.
    variance: of the residuals in their standard deviations; about 1 where these are right.
    deviations (nv,): of the torques, in N m or N, estimated from the residuals; an
    `InverseDynamics` with these is the weighted problem where noise differs between joints.
    torques: the same problem for `fit`, in few rows, with errors of white noise; rows: in all rows,
    with errors that allow for correlated ones. noise: the standard deviation that `consistent`
    uses; for exact torques a small part of these.
    """

    base: BaseParameters
    names: tuple[str, ...]
    values: NDArray
    information: Information
    deviations: NDArray
    torques: LinearTorques
    rows: LinearTorques
    noise: float

    @property
    def intervals(self) -> NDArray:
        """Of 95 % (rank, 2), in the units of the values."""
        none = np.full(len(self.values), np.inf)
        sides = np.zeros(len(self.values), int)
        return intervals(self.values, self.standard_errors, self.freedom, (-none, none), sides)

    def of(self, system: System) -> NDArray:
        """The base parameters (rank,) of a machine with these bodies and joints."""
        return self.base.matrix @ np.asarray(linear_parameters(system, self.torques.joints))

    def consistent(self, parameters: Parameters, weight: float = 1e-3) -> Fit:
        """A consistent machine that explains the torques best; start a `fit` from its x.

        parameters: which numbers are free, all of a body ("link/inertial") and any of `joints`.
        weight: of the distance from the start machine, which decides where torques do not: an
        inertia off by a factor of 2 or 3 costs as much as one torque off by sqrt(weight) standard
        deviations. Numbers of joints that would be negative are all but zero.

        Raises DataError for parameters in which torques are not linear, that are tied, or that have
        bounds or priors of their own: give these to `fit`, with `torques` and `NominalPrior`.
        Raises ValueError as `NominalPrior.of` does, and for starts without free numbers.
        """
        near, begun = NominalPrior.of(parameters.system, weight), parameters.start
        start, joints = parameters.system_at(begun), self.torques.joints
        bodies, columns = _free_columns(parameters, joints)
        order = np.concatenate(([10 * b + np.arange(10) for b in bodies], columns), axis=None)
        few = self.torques.weighted(self.noise)
        matrix, chi = np.asarray(few.matrix), np.array(linear_parameters(start, joints))
        target = np.asarray(few.target) - np.delete(matrix, order, 1) @ np.delete(chi, order)
        rows = triangle(np.column_stack((matrix[:, order], target)))
        nominal = Nominal.of(chi[order], len(bodies), np.full(len(columns), np.inf))
        found = consistent(rows, nominal, 10 * len(bodies) + np.arange(len(columns)), weight / 2)
        # Zero has no free numbers; what is much less than an error stands for it.
        length = np.linalg.norm(matrix[:, columns], axis=0)
        least = np.where(length > 0, _NO_NUMBER / np.where(length > 0, length, 1), chi[columns])
        chi[order] = found.x
        chi[columns] = np.maximum(chi[columns], least)
        x = parameters.x_of(with_linear_parameters(start, chi, joints))
        message = f"{'' if found.converged else 'not '}converged after {found.steps} steps"
        nothing = jnp.zeros(0, x.dtype)
        best = Outcome((x, (nothing, nothing)), found.steps, found.converged, message)
        problems = self.rows.weighted(self.noise), near
        return judged(parameters, problems, Squares(), True, begun, best)


def linear(
    system: System,
    problem: InverseDynamics,
    *,
    joints: Sequence[str] = JOINTS,
    known_deviations: bool = False,
) -> Linear:
    """The base parameters that explain the torques best, in closed form; use double precision.

    system: the geometry, gravity, actuators and springs, all taken as known; of its other numbers
    only those of the joints that are not in `joints` have an effect. known_deviations: as in `fit`.
    Base parameters (rank,) are in kg, kg m and kg m^2, or sums of these.

    Raises DataError where there are no more measurements than base parameters, and for an entry of
    `joints` other than armature, damping and friction. Gautier 1990; Atkeson, An, Hollerbach 1986.
    """
    joints = tuple(joints)
    for leaf in joints:
        if leaf not in JOINTS:
            raise DataError(
                f"torques are not linear in {leaf!r}{nearest(leaf, JOINTS)}; take some of "
                f"{', '.join(JOINTS)}"
            )
    w, y = (np.asarray(x) for x in torque_rows(problem, system, joints))
    there = np.asarray(problem.measured)
    w, y = w.reshape(len(there), -1), y.ravel()
    few, target = np.hsplit(np.linalg.qr(np.column_stack((w, y)), mode="r"), [w.shape[1]])
    base = independent_columns(few)
    count, rank = int(there.sum()), base.rank
    if count <= rank:
        raise DataError(f"{count} measurements cannot tell {rank} base parameters; give more")
    kept = few[:, base.columns]
    values = np.linalg.lstsq(kept, target[:, 0], rcond=None)[0]
    residual = (y - w[:, base.columns] @ values).reshape(-1, system.nv)
    variance = float(np.sum(residual**2)) / (count - rank)
    each = np.maximum(np.asarray(problem.there).sum(axis=0), 1)
    squares = np.sum(np.asarray(problem.of_commands(system, jnp.asarray(residual))) ** 2, axis=0)
    names = names_of(base, chi_names(system, joints))
    known = information(kept, 1.0 if known_deviations else variance, names)
    errors = uncertainty(
        known,
        w[:, base.columns],
        residual.ravel(),
        Rows.of([problem]),
        known_deviations=known_deviations,
    )
    few = jnp.asarray(few), jnp.asarray(target[:, 0]), jnp.ones(len(few), bool)
    sequence, time, channel = map(jnp.asarray, problem.layout)
    return Linear(
        base=base,
        names=names,
        values=values,
        information=known,
        deviations=np.sqrt(squares / each * count / (count - rank)),
        torques=LinearTorques(*few, joints),
        rows=LinearTorques(
            jnp.asarray(w), jnp.asarray(y), jnp.asarray(there), joints, (sequence, time, channel)
        ),
        noise=max(variance**0.5, _LEAST_NOISE * float(np.sqrt(np.sum(y**2) / count))),
        **vars(errors),
    )


def _free_columns(parameters: Parameters, joints: tuple[str, ...]) -> tuple[list[int], list[int]]:
    """The bodies of which all is free, and the columns of chi that are free numbers of joints.

    Raises DataError where other numbers are free, or not each by itself.
    """
    start, nb = parameters.start, len(parameters.system.body_names)
    slopes = np.asarray(
        jax.jacfwd(lambda x: linear_parameters(parameters.system_at(x), joints))(start)
    )
    free = np.flatnonzero(slopes.any(axis=1))
    bodies = sorted({int(k) // 10 for k in free if k < 10 * nb})
    columns = [int(k) for k in free if k >= 10 * nb]
    names = chi_names(parameters.system, joints)
    known = {f"{body}/{leaf}" for body in parameters.system.body_names for leaf in INERTIAL}
    lower, upper = parameters.limits
    odd = [
        name
        for name, low, high in zip(parameters.names, lower, upper, strict=True)
        if not (name in known or (name in names and (low, high) == (0, np.inf)))
    ]
    count = 10 * len(bodies) + len(columns)
    if odd or parameters.prior_names or not len(free) == len(start) == count:
        more = odd or [*parameters.prior_names] or ["numbers that are tied, or parts of a body"]
        raise DataError(
            f"{parameters.title}: the nearest consistent machine is found for whole bodies "
            f'("*/inertial") and for {", ".join(joints) or "no numbers"} of joints, each free by '
            f"itself, and not for {listed(more)}; fit(parameters, (linear.torques, NominalPrior)) "
            "finds others"
        )
    return bodies, columns


def chi_names(system: System, joints: tuple[str, ...] = JOINTS) -> tuple[str, ...]:
    """Names of chi (p,), such as "link2/mass_com_x" and "joint2/damping"."""
    inertial = (f"{body}/{name}" for body in system.body_names for name in PI)
    known = entries(system)
    rows = (e.path for leaf in joints for e in known if e.place == ("joints", leaf))
    return (*inertial, *rows)
