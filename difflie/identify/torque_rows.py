"""Torques that are linear in inertias, friction and other numbers of joints, as rows.

    W chi = y,    chi = (pi, armature, damping, friction, ...)

with the inertial parameters pi of bodies. W stacks the inverse-dynamics regressor of all samples
beside the columns of the joints; y is the measured torque less that of springs and all else that
does not depend on chi. W of any length is represented by the triangle R of its QR decomposition.
Gautier 1990.

`torque_rows` are those of a machine with any joints, actuators and sensors, each row in its
standard deviation, with Coulomb friction at the machine's `friction_velocity`. A `TorqueModel` has
those of an arm, whose friction has more numbers, for each joint

    tau = ... + I_a a + f_v v + f_c tanh(v / v_0) + f_s e^(-(v / v_s)^2) tanh(v / v_0) + b

with armature, viscous and Coulomb friction, Stribeck friction, and the offset b of the measured
torque. A motor that turns with a sum of joint rates, s = r^T v, has inertia and friction along r
(`RateCoupling`). Gears lose a part mu of the motor's torque, tau - mu |tau| tanh(v / v_0), as
`Drive` says (`load_friction`). Gautier 1997; Hamon, Gautier and Garrec 2010 for friction that grows
with the load.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from ..dynamics import BaseParameters
from ..dynamics.regressor import effort_columns, properties
from ..dynamics.regressor import parameters as inertial_parameters
from ..forces import Drive, Stribeck
from ..sensors.sensor import is_of_file, to_true
from ..solvers.linear import product
from ..system.internal_states import tree_with_states
from ..system.joints import FORCE_UNITS
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import nearest
from .internal_states import states_at_rows
from .inverse_dynamics import InverseDynamics, needed_torque
from .problem import Layout, LogNumber, Problem
from .recordings import DataError, refuse
from .samples import CHUNK, Samples

JOINTS = ("armature", "damping", "friction")
PI = (
    *("mass", "mass_com_x", "mass_com_y", "mass_com_z", "origin_I_xx", "origin_I_xy"),
    *("origin_I_xz", "origin_I_yy", "origin_I_yz", "origin_I_zz"),
)
# The units of what a motor that turns with a sum of rates has, by that of the joints' forces.
_UNITS = {
    "armature": {"N m": "kg m^2", "N": "kg"},
    "damping": {"N m": "N m s/rad", "N": "N s/m"},
    "friction": {"N m": "N m", "N": "N"},
}
# The logarithm of a velocity of friction is known to this beforehand: it is one of those tried.
_RANGE = 1.3
_NO_DRIVE = Drive("")
# Bodies with less than this part of the machine's mass keep the numbers of the file.
_MASSLESS = 1e-6


class LinearTorques(Problem):
    """The torque error as rows: matrix (r, p) chi - target (r,), where there (r,) is measured.

    In standard deviations of the torques. chi is `inertial_parameters`, flattened, and then the
    leaves of `system.joints` with the names joints. It replaces `InverseDynamics` for machines that
    differ in chi (p,) only; any number of samples has the same sum of squares as a few rows, the
    triangle of their QR decomposition. places: three arrays (r,), the `Layout` of the rows, its
    time in s; None for those of a triangle, which have no order in time.
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


def with_linear_parameters(
    system: System, chi: Float[Array | np.ndarray, " p"], joints: tuple[str, ...] = JOINTS
) -> System:
    """The system with these `linear_parameters` (p,); bodies without mass are as they were."""
    rows = jnp.asarray(chi, system.dtype)
    count, massive = 10 * len(system.body_names), system.bodies.mass > 0
    each = jnp.split(rows[count:], len(joints)) if joints else []
    found = properties(rows[:count].reshape(-1, 10))
    leaves = {
        name: jnp.where(massive.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
        for name, new in zip(("mass", "com", "inertia"), found, strict=True)
        for old in (getattr(system.bodies, name),)
    }
    return system.replace(**leaves, **dict(zip(joints, each, strict=True)))


def names_of(base: BaseParameters, names: tuple[str, ...]) -> tuple[str, ...]:
    """The base parameters (rank,) as sums of numbers with these names (p,)."""
    found = []
    for row, column in zip(base.matrix, base.columns, strict=True):
        others = (k for k in np.flatnonzero(row) if k != column)
        terms = (f" {'-' if row[k] < 0 else '+'} {abs(row[k]):.4g} {names[k]}" for k in others)
        found.append(names[column] + "".join(terms))
    return tuple(found)


@eqx.filter_jit
def torque_rows(
    problem: InverseDynamics, system: System, joints: tuple[str, ...]
) -> tuple[Float[Array, "n nv p"], Float[Array, "n nv"]]:
    """W (n, nv, p) and y (n, nv) in standard deviations, zero at gaps."""
    state = to_true(system, problem.q, problem.v, problem.a)
    inertial = problem.averaged(lambda *state: body_columns(system, *state), *state)
    count = len(system.joints.armature)
    empty = without(system, np.arange(len(system.body_names)), np.arange(count), ())

    def others(numbers: jax.Array) -> jax.Array:
        """What acts on bodies without mass, for numbers (len(joints) rows,) of the joints."""
        leaves = zip(joints, jnp.split(numbers, len(joints)) if joints else (), strict=True)
        return problem.torques(empty.replace(**dict(leaves)))

    zero = jnp.zeros(len(joints) * count, system.dtype)
    w = jnp.concatenate((inertial, jax.jacfwd(others)(zero)), axis=-1)
    y = problem.efforts(system) - others(zero)
    rows = jax.vmap(lambda x: problem.in_deviations(system, x), -1, -1)
    return rows(w), problem.in_deviations(system, y)


def body_columns(
    system: System, q: Float[Array, "n nq"], v: Float[Array, "n nv"], a: Float[Array, "n nv"]
) -> Float[Array, "n nv p"]:
    """The columns of all bodies' inertial parameters (n, nv, 10 nb), one body after the other."""
    tree = Tree.of(system)
    return jax.vmap(lambda *state: effort_columns(tree, *state))(q, v, a)


def without(
    system: System, bodies: Sequence[int] | NDArray, dofs: NDArray, leaves: Sequence[str] = JOINTS
) -> System:
    """The system without the masses and inertias of bodies, and without these numbers of joints."""
    light = {
        name: getattr(system.bodies, name).at[np.array(bodies)].set(0)
        for name in ("mass", "com", "inertia")
    }
    none = {name: getattr(system.joints, name).at[dofs].set(0) for name in leaves}
    return system.replace(**light, **none)


def own_dofs(system: System) -> NDArray:
    """The places (nv,) of the joints' numbers in `System.joints`; mimic joints have others."""
    t = system.topology
    own = np.setdiff1d(np.arange(t.n_dofs), t.mimic_dofs)
    return own[np.argsort(t.dof_velocity[own])]


@dataclasses.dataclass(frozen=True)
class RateCoupling:
    """A motor that turns with a sum of joint rates, such as that of a coupled wrist.

        s = sum_i ratios_i v_i,    tau_i = ratios_i (armature ds/dt + damping s + friction tanh)

    joints: the names; ratios (n,), without unit, by default all 1.
    """

    joints: tuple[str, ...]
    ratios: tuple[float, ...] = ()

    def direction(self, names: Sequence[str], forces: Sequence[str] = ()) -> NDArray:
        """r (nv,); raises DataError for joints that the machine has not, and for other ratios.

        forces (nv,): the units of the joints' forces, of which those of the coupling are to be one.
        """
        ratios = self.ratios or (1.0,) * len(self.joints)
        if len(ratios) != len(self.joints) or len(self.joints) < 2:
            raise DataError(
                f"a coupling of rates has the joints {list(self.joints)} and the ratios "
                f"{list(ratios)}; give two joints or more, and as many ratios"
            )
        along = np.zeros(len(names))
        for joint, ratio in zip(self.joints, ratios, strict=True):
            if joint not in names:
                raise DataError(
                    f"a coupling of rates is of the joint {joint!r}, which the machine lacks"
                    f"{nearest(joint, names)}"
                )
            along[list(names).index(joint)] = ratio
        if len({force for force, r in zip(forces, along, strict=False) if r}) > 1:
            raise DataError(
                f"a coupling of rates is of {', '.join(self.joints)}, of which some turn and "
                "others slide; give joints of one kind"
            )
        return along


@dataclasses.dataclass(frozen=True)
class Friction:
    """The numbers of the joints' friction on which torques do not depend linearly (nv,).

    rise v_0 and fading v_s, in rad/s or m/s; v_s is NaN for joints without Stribeck friction.
    """

    rise: NDArray
    fading: NDArray


class TorqueModel(eqx.Module):
    """Which numbers of an arm are free: those of the bodies (indices), then those of the joints.

    joints: the names (nv,). offsets: whether torques have offsets; load: whether gears have load
    friction.
    """

    system: System
    joints: tuple[str, ...] = eqx.field(static=True)
    bodies: tuple[int, ...] = eqx.field(static=True)
    couplings: tuple[RateCoupling, ...] = eqx.field(static=True, default=())
    offsets: bool = eqx.field(static=True, default=True)
    load: bool = eqx.field(static=True, default=False)

    @staticmethod
    def of(
        system: System,
        couplings: Sequence[RateCoupling] = (),
        *,
        offsets: bool = True,
        load: bool = False,
    ) -> TorqueModel:
        """The model of an arm: a tree on a fixed base whose joints have one coordinate each.

        Raises DataError for other machines and unsuitable couplings.
        """
        names = tuple(name for name, _ in system.topology.velocity_labels)
        mass = np.asarray(system.bodies.mass, float)
        moving = np.asarray(system.topology.body_dof) < system.topology.n_dofs
        free = np.flatnonzero(moving & (mass > _MASSLESS * mass.sum())).tolist()
        refuse(
            system.name,
            (system.constraints, "it has closed loops; declare [[parameter]]s, fit motions"),
            (
                system.nq != system.nv or not system.nv,
                "it has joints without plain coordinates, such as a free base; fix these "
                '(system.base = "fixed"), or declare [[parameter]]s',
            ),
            (
                not all(map(is_of_file, system.sensors)),
                "it has sensors, whose numbers must be declared: give [[parameter]] tables",
            ),
            (
                not free,
                "no moving body has a mass; give the links estimates of their masses and inertias "
                "in the file",
            ),
        )
        model = TorqueModel(system, names, tuple(free), tuple(couplings), offsets, load)
        for coupling in couplings:
            coupling.direction(names, model.forces)
        return model

    @property
    def inertial(self) -> int:
        """The number of inertial parameters, which come first."""
        return 10 * len(self.bodies)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The numbers that each joint has; then come the load frictions."""
        return ("armature", "damping", "friction", "breakaway", *(("offset",) * self.offsets))

    @property
    def names(self) -> tuple[str, ...]:
        """Of all numbers (p,), as paths: link/mass_com_x, joint/damping, joint5+joint6/damping."""
        bodies = (f"{self.system.body_names[b]}/{name}" for b in self.bodies for name in PI)
        joints = (f"{joint}/{leaf}" for leaf in self.leaves for joint in self.joints)
        load = (f"{joint}/load_friction" for joint in self.joints if self.load)
        return (*bodies, *joints, *(number.name for number in self.sums), *load)

    @property
    def forces(self) -> tuple[str, ...]:
        """The unit of each joint's torque or force (nv,): "N m" or "N"."""
        units = (unit for _, unit in self.system.topology.velocity_labels)
        return tuple(FORCE_UNITS[unit.removesuffix("/s")] for unit in units)

    def joint_numbers(self, x: NDArray, leaf: str) -> NDArray:
        """One number of each joint (nv,) among all (p,), such as "damping"."""
        nv = len(self.joints)
        if leaf == "load_friction":
            return x[-nv:]
        first = self.inertial + self.leaves.index(leaf) * nv
        return x[first : first + nv]

    @property
    def nonnegative(self) -> NDArray:
        """The indices of numbers that must not be negative: all of the joints but offsets."""
        own = enumerate(self.names[self.inertial :], start=self.inertial)
        return np.array([k for k, name in own if not name.endswith("/offset")], int)

    def known(self, samples: Samples) -> NDArray:
        """The torque (r, nv) that no free number changes, averaged: of springs, of other bodies.

        Internal states follow the measured motion, from those that the system holds.
        """
        motion = samples.t, samples.q, samples.v, samples.tau
        z = np.asarray(_states(self.system, *(jnp.asarray(x, self.system.dtype) for x in motion)))
        rows = *_motion(samples), z
        return samples.averages(lambda part: _of_rows(_known_torques, self, rows, part))

    def inertial_columns(self, samples: Samples) -> NDArray:
        """The columns (r, nv, 10 n) of the free bodies, one after the other, averaged."""
        rows = _motion(samples)
        return samples.averages(lambda part: _of_rows(_columns, self, rows, part))

    def joint_columns(self, samples: Samples, friction: Friction) -> NDArray:
        """The columns (m, nv, .) of all numbers of joints and couplings but load friction."""
        v, a = samples.v, samples.a
        rise = sign(v, friction.rise)
        with np.errstate(invalid="ignore"):
            fading = np.where(np.isnan(friction.fading), 0, np.exp(-((v / friction.fading) ** 2)))
        own = {
            "armature": a,
            "damping": v,
            "friction": rise,
            "breakaway": fading * rise,
            "offset": np.ones_like(v),
        }
        columns = [own[leaf][:, :, None] * np.eye(v.shape[1]) for leaf in self.leaves]
        for coupling in self.couplings:
            r = coupling.direction(self.joints)
            turned = sign(v @ r, friction.rise[r != 0].max())
            parts = np.stack((a @ r, v @ r, turned), axis=-1)
            columns.append(r[:, None] * parts[:, None, :])
        return np.concatenate(columns, axis=2)

    @property
    def sums(self) -> tuple[LogNumber, ...]:
        """The numbers of motors that turn with sums of rates, which no system has."""
        forces = dict(zip(self.joints, self.forces, strict=True))
        return tuple(
            # Joints of a coupling are of one kind.
            LogNumber(f"{'+'.join(c.joints)}/{leaf}", units[forces[c.joints[0]]], lower=0.0)
            for c in self.couplings
            for leaf, units in _UNITS.items()
        )

    def numbers_of(self, system: System, sums: Any = ()) -> Float[Array, " p"]:
        """The numbers (p,) of a system with the same joints; of drives, offsets and load friction.

        sums (n,): those that it cannot have, see `sums`.
        """
        drives = {a.label: a for a in system.actuators if isinstance(a, Drive)}
        peaks = {c.joint: c.breakaway for c in system.couplings if isinstance(c, Stribeck)}

        def of_drives(leaf: str) -> list[Any]:
            return [getattr(drives.get(joint, _NO_DRIVE), leaf) for joint in self.joints]

        rows: dict[str, Any] = {
            **{leaf: getattr(system.joints, leaf)[own_dofs(self.system)] for leaf in JOINTS},
            "breakaway": [peaks.get(joint, 0.0) for joint in self.joints],
            "offset": [-bias for bias in of_drives("torque_bias")],
        }
        bodies = inertial_parameters(system.bodies)[np.array(self.bodies)].ravel()
        parts = [bodies, *(rows[leaf] for leaf in self.leaves), sums]
        parts += [of_drives("load_friction")] if self.load else []
        return jnp.concatenate([jnp.asarray(part, system.dtype) for part in parts])

    def file_numbers(self) -> NDArray:
        """The numbers (p,) of the file; those that it cannot have are zero."""
        return np.array(self.numbers_of(self.system, np.zeros(len(self.sums))), float)


class ArmTorques(Problem):
    """The torque error of an arm, as rows: matrix (r, p) x + slopes (r, m) b - target (r,).

    x: the numbers of `model`, those of the system and, first, own: those that it cannot have
    (`TorqueModel.sums`). b: the logarithms of the system's velocities of friction over those
    (m,) about which the rows are linear; columns (m,): their places among all rises, then fadings,
    of the joints. Priors
    follow: b over the range of what is known beforehand, and x - near (j,) over deviations (j,), of
    the numbers `held` (j,), whose common variance is estimated.
    """

    model: TorqueModel
    matrix: jax.Array
    slopes: jax.Array
    target: jax.Array
    near: jax.Array
    deviations: jax.Array
    velocities: jax.Array
    columns: tuple[int, ...] = eqx.field(static=True)
    held: tuple[int, ...] = eqx.field(static=True)
    places: tuple[jax.Array, jax.Array, jax.Array]

    def residual(self, system: System, own: Float[Array, " m"]) -> Float[Array, " k"]:
        x, columns = self.model.numbers_of(system, own), np.array(self.columns, int)
        fading = {c.joint: c.stribeck_velocity for c in system.couplings if isinstance(c, Stribeck)}
        rises = system.joints.friction_velocity[own_dofs(self.model.system)]
        fadings = jnp.stack([fading.get(joint, jnp.ones(())) for joint in self.model.joints])
        b = jnp.log(jnp.concatenate((rises, fadings))[columns] / self.velocities)
        off = product(self.matrix, x) + product(self.slopes, b) - self.target
        held = (x[np.array(self.held, int)] - self.near) / self.deviations
        return jnp.concatenate((off, b / _RANGE, held))

    @property
    def own(self) -> Float[Array, " m"]:
        return jnp.zeros(len(self.model.sums))

    @property
    def log_numbers(self) -> tuple[LogNumber, ...]:
        return self.model.sums

    @property
    def measured(self) -> Bool[Array, " k"]:
        return jnp.ones(len(self._kinds), bool)

    @property
    def is_prior(self) -> NDArray:
        return self._kinds > 0

    @property
    def is_scaled(self) -> NDArray:
        return self._kinds > 1

    @property
    def layout(self) -> Layout:
        more = int((self._kinds > 0).sum())
        ends = np.full(more, -1), np.zeros(more), np.zeros(more, int)
        return Layout(*(np.append(x, end) for x, end in zip(self.places, ends, strict=True)))

    @property
    def _kinds(self) -> NDArray:
        """0 for torques, 1 for what is known beforehand of velocities, 2 for what is held."""
        return np.repeat(np.arange(3), (len(self.target), len(self.columns), len(self.held)))


def sign(v: NDArray, rise: NDArray | float) -> NDArray:
    """The smooth sign of velocities: tanh(v / v_0)."""
    return np.tanh(v / rise)


def _motion(samples: Samples) -> tuple[NDArray, ...]:
    return samples.q, samples.v, samples.a


def _of_rows(of: Callable, model: TorqueModel, rows: Sequence[NDArray], part: slice) -> NDArray:
    """of(model, *rows) for some of these rows (m, .), by one program for any number of them."""
    count = min(CHUNK, len(rows[0]))
    some = [np.pad(x[part], ((0, count - len(x[part])), (0, 0))) for x in rows]
    found = of(model, *(jnp.asarray(x) for x in some))
    return np.asarray(found, float)[: part.stop - part.start]


@eqx.filter_jit
def _states(
    system: System, t: jax.Array, q: jax.Array, v: jax.Array, tau: jax.Array
) -> Float[Array, "m nz"]:
    """The internal states along the motion of one recording."""
    z = states_at_rows(system, jnp.zeros(len(t), int), t, q, v, tau)
    return jnp.zeros((len(t), 0), system.dtype) if z is None else z


@eqx.filter_jit
def _columns(model: TorqueModel, q: jax.Array, v: jax.Array, a: jax.Array) -> jax.Array:
    columns = body_columns(model.system, q, v, a)
    each = columns.reshape(*columns.shape[:2], -1, 10)[:, :, np.array(model.bodies)]
    return each.reshape(*columns.shape[:2], -1)


@eqx.filter_jit
def _known_torques(
    model: TorqueModel, q: jax.Array, v: jax.Array, a: jax.Array, z: jax.Array
) -> jax.Array:
    tree = Tree.of(without(model.system, model.bodies, own_dofs(model.system)))
    needed = lambda q, v, a, z: needed_torque(tree_with_states(tree, z), q, v, a)  # noqa: E731
    return jax.vmap(needed)(q, v, a, z)
