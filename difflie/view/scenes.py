"""A machine in motion as plain arrays: what is drawn, in pictures and in the browser.

Bodies without shapes are the solid ellipsoids that have their mass and inertia.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..collision import HeightField
from ..constraints.equations import equations
from ..constraints.unilateral import HardContact, unilateral
from ..dynamics import center_of_mass, momentum
from ..dynamics.kinematics import body_world_poses
from ..forces import energy
from ..forces.contact_report import contact_numbers, pushes
from ..forces.contacts import Contact
from ..forces.coupling import PointCoupling
from ..forces.path import segments
from ..forces.points import point_frames, world_wrenches
from ..forces.shape_contact import ShapeContact
from ..forces.springs import Elastic
from ..groups.components import across
from ..io.appearance.shape import Appearance, Shape, ellipsoid
from ..quantities import Curve, Energy
from ..system.internal_states import with_states
from ..system.kinematic_tree import Tree
from ..system.shown import some
from ..system.system import System
from ..system.traverse import in_one
from .own_shapes import own_shapes

# In kg/m^3, of water: it sizes the balls that stand for masses without inertia.
_DENSITY = 1000.0


def inertia_ellipsoids(system: System) -> Appearance:
    """The inertia ellipsoid of each body with a mass, by its name.

    A solid ellipsoid of mass m with radii a, b, c has the principal moments m (b^2 + c^2) / 5 and
    so on about its centre; the radii follow from those of the body. A mass without inertia is a
    ball of the volume of as much water. Raises ValueError for a batch of systems.
    """
    refuse_batch(system)
    shapes: Appearance = {}
    bodies = jax.tree.map(np.asarray, system.bodies)
    numbers = zip(system.body_names, bodies.mass, bodies.com, bodies.inertia, strict=True)
    for name, mass, com, inertia in numbers:
        if mass <= 0:
            continue
        axes, radii = _axes(float(mass), inertia)
        vertices, faces = ellipsoid(radii)
        shapes[name] = (Shape(vertices @ axes.T + com, faces, name=name),)
    return shapes


def shapes_of(system: System, appearance: Appearance | None) -> Appearance:
    """What each body is drawn as: its shapes, or its ellipsoid where none of them could be read.

    appearance: as from `read_appearance`; without any, bodies are drawn as their `System.shapes`,
    and those without one as their ellipsoids. Height fields are always drawn.
    """
    if not any((appearance or {}).values()):
        return {**inertia_ellipsoids(system), **own_shapes(system)}
    assert appearance is not None
    instead = {} if all(appearance.values()) else inertia_ellipsoids(system)
    shapes = {body: own or instead.get(body, ()) for body, own in appearance.items()}
    fields = own_shapes(system, HeightField)
    shapes |= {body: (*shapes.get(body, ()), *own) for body, own in fields.items()}
    return {body: own for body, own in shapes.items() if own}


def refuse_batch(system: System) -> None:
    """Raises ValueError for a batch of systems."""
    if np.ndim(system.bodies.mass) != 1:
        raise ValueError(
            f"{system.name}: these are {np.shape(system.bodies.mass)[:-1]} systems, and a picture "
            "is of one; take one, such as jax.tree.map(lambda a: a[0], system)"
        )


def _axes(mass: float, inertia: NDArray) -> tuple[NDArray, NDArray]:
    """The principal axes (3, 3), as columns, and the radii (3,) in m."""
    moments, axes = np.linalg.eigh((inertia + inertia.T) / 2)
    square = 2.5 / mass * (moments.sum() - 2 * moments)
    radii = np.sqrt(np.maximum(square, 0))
    ball = (3 * mass / (4 * np.pi * _DENSITY)) ** (1 / 3)
    if radii.max() < 1e-6 * ball:
        radii = np.full(3, ball)
    # Flat and thin bodies are still seen.
    radii = np.maximum(radii, 0.05 * radii.max())
    return axes * np.sign(np.linalg.det(axes)), radii


@dataclass(frozen=True)
class Polyline:
    """A spring, rope or tendon: points (m, k, 3) in m, world, and the tension (m,) in N.

    The tension is negative where it pushes, NaN where its law has none.
    """

    name: str
    points: NDArray
    tension: NDArray


@dataclass(frozen=True)
class Arrows:
    """Forces (m, c, 3) at points (m, c, 3) in m, world; zero where there is no contact.

    unit: "N", or "N s" for the impulses of steps.
    """

    name: str
    points: NDArray
    forces: NDArray
    unit: str = "N"


@dataclass(frozen=True)
class Scene:
    """One motion of one machine at m times.

    t (m,) in s; bodies (nb,): their names; parents (nb,): the indices of their parents, -1 for the
    world; poses (m, nb, 4, 4), body to world; shapes by the name of the body, None for the world.
    springs: their points (m, k, 3) in m, world, and tensions (m,) in N; contacts: points (m, c, 3)
    in m and forces (m, c, 3) in N, or impulses in N s, world; energy: as a `Curve`. com (m, 3) in
    m, world; momentum (m, 6) as `difflie.momentum`; up (3,): the direction against gravity, None
    without. solid: whether the shapes are what the bodies look like, rather than their inertia
    ellipsoids. remarks: sentences on what is not shown.
    """

    name: str
    t: NDArray
    bodies: tuple[str, ...]
    parents: tuple[int, ...]
    poses: NDArray
    shapes: Appearance
    springs: tuple[Polyline, ...] = ()
    contacts: tuple[Arrows, ...] = ()
    com: NDArray = field(default_factory=lambda: np.zeros((0, 3)))
    momentum: NDArray = field(default_factory=lambda: np.zeros((0, 6)))
    energy: Curve | None = None
    up: NDArray | None = None
    solid: bool = True
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [
            f"Scene of {self.name!r}: {len(self.bodies)} bodies, {len(self.t)} times from "
            f"{self.t[0]:.6g} to {self.t[-1]:.6g} s",
            f"drawn as {'what they look like' if self.solid else 'their inertia ellipsoids'}",
        ]
        for kind, parts in (("springs", self.springs), ("contacts", self.contacts)):
            lines += [f"{kind}: {some([part.name for part in parts])}"] if parts else []
        return "\n".join([*lines, *self.remarks])

    def at(self, t: float) -> int:
        """The index of the last saved time that is not after t, in s."""
        return int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 1))


def scene(system: System, run: Any, appearance: Appearance | None = None, name: str = "") -> Scene:
    """A motion of a system as a `Scene`.

    run: a `Trajectory`, or anything with t (m,), q (m, nq) and v (m, nv), of one run. name: by
    default that of the system. appearance:
    as from `difflie.io.appearance.read_appearance`; bodies whose shapes could not be read are drawn
    as their inertia ellipsoids, and all bodies if none has a shape. A motion with a number that is
    not finite is drawn up to there, and a remark says so. Raises ValueError for a batch of runs,
    for the run or the appearance of another system, and for a run without a finite row.
    """
    _check_run(system, run)
    _check_appearance(system, appearance or {})
    solid = any((appearance or {}).values())
    shapes = shapes_of(system, appearance)
    t, q, v = (np.asarray(a) for a in (run.t, run.q, run.v))
    whole = np.isfinite(np.column_stack((t, q, v))).all(axis=1)
    count = _leading(system, whole)
    # A motion in single precision is drawn by a system in double precision, too.
    q, v = (jnp.asarray(a[:count], system.neutral().dtype) for a in (q, v))
    z = getattr(run, "z", None)
    z = None if z is None else jnp.asarray(z[:count], q.dtype)
    measured = _measured(system, q, v, z, _impulses(run, count), _forces(run, count))
    # Finite numbers may have no poses: a quaternion that is zero, a number that overflows.
    count = _leading(system, np.isfinite(measured.poses).all(axis=(1, 2, 3)))
    seen: Any = jax.tree.map(lambda a: np.asarray(a[:count]), measured)
    remarks = ()
    if count < len(t):
        remarks = (f"not finite from t = {t[count]:.6g} s on; drawn up to there",)
    t = t[:count].astype(float)
    return Scene(
        name=name or system.name,
        t=t,
        bodies=system.body_names,
        parents=tuple(int(p) for p in system.topology.parents),
        poses=seen.poses,
        shapes=shapes,
        springs=tuple(Polyline(name, *strand) for name, strand in seen.springs.items()),
        contacts=(
            *(Arrows(name, *arrows) for name, arrows in seen.contacts.items()),
            *(Arrows(name, *arrows, unit="N s") for name, arrows in seen.hard.items()),
        ),
        com=seen.com,
        momentum=seen.momentum,
        energy=Curve("energy", t, seen.energy, Energy().labels(system)),
        up=_up(system),
        solid=solid,
        remarks=remarks,
    )


def still(
    system: System, q: Any = None, appearance: Appearance | None = None, name: str = ""
) -> Scene:
    """A system at rest at q (nq,), by default `system.neutral()`, as a `Scene` of one moment.

    appearance and name: as of `scene`.

    >>> rod = dl.Body(name="rod", joint=dl.Revolute(), mass=1.0, com=(0.5, 0, 0))
    >>> scene = dl.view.still(dl.chain([rod]), [0.3])
    >>> scene.bodies, scene.poses.shape
    (('rod',), (1, 1, 4, 4))
    """
    q = system.neutral() if q is None else jnp.asarray(q)
    return scene(system, _Rows(jnp.zeros(1), q[None], jnp.zeros((1, system.nv))), appearance, name)


def _up(system: System) -> NDArray | None:
    gravity = np.asarray(system.gravity, float)
    size = float(np.linalg.norm(gravity))
    return -gravity / size if size > 0 else None


class _Rows(NamedTuple):
    t: jax.Array
    q: jax.Array
    v: jax.Array


class _Seen(NamedTuple):
    poses: jax.Array
    com: jax.Array
    momentum: jax.Array
    energy: jax.Array
    springs: dict[str, tuple[jax.Array, jax.Array]]
    contacts: dict[str, tuple[jax.Array, jax.Array]]
    hard: dict[str, tuple[jax.Array, jax.Array]]


def _check_run(system: System, run: Any) -> None:
    refuse_batch(system)
    t, q, v = (np.shape(a) for a in (run.t, run.q, run.v))
    if len(t) > 1:
        raise ValueError(
            f"{system.name}: these are {t[:-1]} runs, and a picture is of one; take one, such as "
            "jax.tree.map(lambda a: a[0], run)"
        )
    if len(t) < 1 or (len(q), len(v)) != (2, 2) or not t[0] == q[0] == v[0]:
        raise ValueError(
            f"{system.name}: t, q and v have the shapes {t}, {q} and {v}; those of a motion are "
            f"(m,), (m, {system.nq}) and (m, {system.nv})"
        )
    if not t[0]:
        raise ValueError(f"{system.name}: the motion has no moment; nothing can be drawn")
    if (q[1], v[1]) != (system.nq, system.nv):
        raise ValueError(
            f"{system.name}: the motion has {q[1]} coordinates and {v[1]} velocities, the system "
            f"{system.nq} and {system.nv}; it is the motion of another machine"
        )


def _check_appearance(system: System, appearance: Appearance) -> None:
    unknown = [body for body in appearance if body is not None and body not in system.body_names]
    if unknown:
        raise ValueError(
            f"{system.name} has no body {unknown[0]!r}, to which the appearance gives shapes; read "
            "it by read_appearance(path, system) for this system"
        )


def _leading(system: System, finite: Any) -> int:
    """How many rows come before the first that is not finite: finite (m,)."""
    count = len(finite) if finite.all() else int(np.argmin(finite))
    if not count:
        raise ValueError(
            f"{system.name}: the first row of the motion is not finite; nothing can be drawn"
        )
    return count


@eqx.filter_jit
def _measured(
    system: System,
    q: jax.Array,
    v: jax.Array,
    z: jax.Array | None,
    impulses: jax.Array | None,
    forces: jax.Array | None,
) -> _Seen:
    """All that is measured, in one compiled program."""
    strands = {}
    contacts = {}
    taken = [coupling.name for coupling in system.couplings]
    for coupling in system.couplings:
        if not isinstance(coupling, PointCoupling | Contact | ShapeContact):
            continue
        named = strands if isinstance(coupling, PointCoupling) else contacts
        if len(coupling.path.bodies) > 1:
            free = _counted(coupling, {*strands, *contacts, *taken})
            named[coupling.name or free] = coupling

    def at(q: jax.Array, v: jax.Array, z: Any, impulses: Any, forces: Any) -> _Seen:
        tree = Tree.of(system)
        kinetic, potential = energy(system if z is None else with_states(system, z), q, v)
        springs = {name: _strand(tree, spring, q) for name, spring in strands.items()}
        pushes = {name: _contact(tree, contact, q, v, forces) for name, contact in contacts.items()}
        return _Seen(
            poses=body_world_poses(tree, q).to_array(),
            com=center_of_mass(system, q),
            momentum=momentum(system, q, v),
            energy=jnp.stack((kinetic, potential, kinetic + potential)),
            springs=springs,
            contacts=pushes,
            hard={} if impulses is None else _hard_contacts(tree, q, impulses),
        )

    return jax.vmap(in_one(system.topology, at))(q, v, z, impulses, forces)


def _counted(coupling: Any, taken: set[Any]) -> str:
    """The first name that is free of those of a coupling without one, such as "Spring 1"."""
    names = (f"{type(coupling).__name__} {n}" for n in itertools.count(1))
    return next(name for name in names if name not in taken)


def _impulses(run: Any, count: int) -> jax.Array | None:
    """The impulses (m, k, 3) of contacts and stops, of a method that has them."""
    impulses = getattr(getattr(run, "states", None), "contacts", None)
    return None if impulses is None else jnp.asarray(impulses)[:count]


def _forces(run: Any, count: int) -> jax.Array | None:
    """The mean forces (m, p, 3) at compliant contacts, of a method that has impulses there."""
    impulses = getattr(getattr(run, "states", None), "points", None)
    return None if impulses is None else jnp.asarray(impulses)[:count] / run.result.dt


def _hard_contacts(
    tree: Tree, q: jax.Array, impulses: jax.Array
) -> dict[str, tuple[jax.Array, jax.Array]]:
    """The points (1, 3) of hard contacts, and the impulses (1, 3) there on their first bodies."""
    found = {}
    only = unilateral(tree)
    for k, (contact, about, _) in enumerate(equations(only, q).each()):
        if isinstance(contact, HardContact):
            meeting = contact.meeting(*about)
            axes = (meeting.normal, *across(meeting.normal))
            push = sum(p * axis.to_array() for p, axis in zip(impulses[k], axes, strict=True))
            name = f"{type(contact).__name__} {len(found) + 1}"
            found[name] = (contact.place(meeting).to_array()[None], jnp.asarray(push)[None])
    return found


def _strand(tree: Tree, coupling: Any, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    (frames,) = point_frames(tree, [coupling.path], q)
    points = frames.translation
    length = jnp.sum(segments(points)[2])
    tension = coupling.tension(length) if isinstance(coupling, Elastic) else jnp.nan * length
    return points.to_array(), tension


def _contact(
    tree: Tree,
    contact: Contact | ShapeContact,
    q: jax.Array,
    v: jax.Array,
    forces: jax.Array | None,
) -> tuple[jax.Array, jax.Array]:
    """The contact points (c, 3), and the forces (c, 3) there on the bodies at the other points.

    Of shapes one for each pair, on the second shape.
    """
    if isinstance(contact, ShapeContact):
        _, _, force, place, _ = contact_numbers(tree, q, v, forces)
        return place, force
    if forces is not None:
        return pushes(tree, contact, q, forces)
    (frames,) = point_frames(tree, [contact.path], q)
    _, wrenches = world_wrenches(tree, [contact], q, v)
    return contact.place(contact.meeting(frames)).to_array(), wrenches.force.to_array()[1:]
