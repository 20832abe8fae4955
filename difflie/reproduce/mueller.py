"""The eight transition maps of Mueller's Table 1 at work, and which joints they keep closed.

A. Mueller, "Singularity-free Lie group integration and geometrically consistent evaluation of
multibody system models described in terms of standard absolute coordinates": a Lie-group method in
local coordinates X steps the absolute coordinates q of every body by q' = tau(q, X). The text
derives the eight combinations of absolute and local coordinates (`groups/transition.py`) without a
computed example; this is one.

Bodies without joints carry constraints, solved in the form of index 1 (11) and stabilised in no
way, so that what a step loses is seen. A step is that of the classical Runge-Kutta tableau on the
local model. Body-fixed twists belong to SE(3), mixed twists (w in the body, dr/dt in the world) to
SO(3) x R^3; both fields come from one acceleration, d^2r/dt^2 = R (dv/dt + w x v).

A joint to the ground allows the motions of a subgroup. Steps of SE(3), of screws as of extended
Rodrigues parameters, do not leave it: the joint stays closed to rounding at every step size. Steps
of SO(3) x R^3 leave it by an error of the order of the method. Between two moving bodies neither
group helps.

The heavy top is the usual one (15 kg, 150 rad/s); a machine on joints, without constraints, gives
the exact motions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from .. import constraints
from ..constraints import Frame, JointConstraint, constrain
from ..constraints.equations import equations
from ..constraints.motion import constrained_acceleration
from ..dynamics import body_poses, body_twists
from ..groups import TRANSITION_MAPS, Euclidean, Product, quaternion
from ..groups.components import Matrix, Vector
from ..integrators import RKMK4, RKMK8, single_step
from ..simulate import simulate
from ..system import Body, Free, Revolute, Spherical, System, chain, tree
from ..system.kinematic_tree import Tree
from ..view.plots import figure, label
from .runs import Progress

METHOD = RKMK4()

LOCAL = {
    "a": ("screw, exp", "SE(3)"),
    "b": ("rotation vector, exp", "SO(3)xR3"),
    "c": ("Rodrigues, cay", "SO(3)xR3"),
    "d": ("ext. Rodrigues, cay", "SE(3)"),
}
"""The local coordinates and the group of each column of Table 1."""

STEPS = (100, 200, 400, 800, 1600)
"""How many steps the runs have."""

SHOWN = 2
"""At which of them the table gives the violation of the constraints."""

ROWS = 100
"""How many states of a run are looked at."""

LONG_STEP, LONG_STEPS = 1e-4, 100_000
"""The run that shows the norms of the quaternions; the step is in s."""

TIMED_RUNS = 5

ROUNDING = 1e-11
"""Constraint errors below, at all step sizes, are rounding."""

COM = (0.6055505614, 0.5989576818, -0.5239830274)
"""Where the centre of mass of the top is after 0.2 s, in m."""

ATTITUDES = {"1": "quaternion", "2": "rotation vector"}
"""The absolute coordinates of attitudes in its rows."""


class Machine(NamedTuple):
    """A machine of bodies under constraints, and the same on joints.

    free: a body on a free joint each, at the reference frames, which lie at offset (nb, 3) in m in
    the frames of the bodies on joints. q (nq,) and v (nv,): the start of `jointed`. duration: in s.
    """

    free: System
    jointed: System
    offset: np.ndarray
    q: jax.Array
    v: jax.Array
    duration: float

    @property
    def joints(self) -> tuple[str, ...]:
        """What to call the constraints."""
        given: tuple[Any, ...] = self.free.constraints
        return tuple("ground joint" if c.frames[0].body is None else "inner joint" for c in given)

    def absolute(self, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The poses (nb, 7) and the body twists (nb, 6) of the reference frames."""
        poses, twists = body_poses(self.jointed, q), body_twists(self.jointed, q, v)
        R, r = poses[:, :3, :3], poses[:, :3, 3]
        w, o = twists[:, :3], jnp.asarray(self.offset)
        r = r + jnp.einsum("bij,bj->bi", R, o)
        attitude = jax.vmap(quaternion.from_matrix)(R)
        return (
            jnp.concatenate((attitude, r), axis=1),
            jnp.concatenate((w, twists[:, 3:] + jnp.cross(w, o)), axis=1),
        )


def heavy_top() -> Machine:
    """A top of 15 kg, 1 m above its pivot, with its reference frame in the centre of mass."""
    top = Body(
        name="top",
        joint=Spherical(),
        mass=15.0,
        com=(0, 1, 0),
        inertia=np.diag([0.234375, 0.46875, 0.234375]),
    )
    pivot = constraints.SphericalConstraint(Frame(), Frame("top", (0, -1, 0)))
    v = jnp.asarray([0.0, 150.0, -4.61538])
    return _machine("heavy top", [top], np.array([[0.0, 1.0, 0.0]]), [pivot], v, 0.2)


def revolute_chain() -> Machine:
    """Two links on revolute joints with skew axes.

    The reference frames lie neither in the joints nor in the centres of mass.
    """
    first, second = (1.0, 0.0, 0.0), (0.0, 0.6, 0.8)
    elbow, offset = np.array([0.1, 0.0, -0.5]), np.array([[0.15, 0.1, -0.1], [0.1, -0.2, 0.05]])
    shapes: list[dict[str, Any]] = [
        {"mass": 2.0, "com": (0.0, 0.05, -0.25), "inertia": np.diag([0.05, 0.04, 0.03])},
        {"mass": 1.0, "com": (0.2, 0.0, -0.1), "inertia": np.diag([0.01, 0.03, 0.025])},
    ]
    links = [
        Body(name="link 1", joint=Revolute(axis=first), **shapes[0]),
        Body(name="link 2", joint=Revolute(axis=second), position=elbow, **shapes[1]),
    ]
    joints = [
        constraints.RevoluteConstraint(Frame(axis=first), Frame("link 1", -offset[0], axis=first)),
        constraints.RevoluteConstraint(
            Frame("link 1", elbow - offset[0], axis=second),
            Frame("link 2", -offset[1], axis=second),
        ),
    ]
    return _machine("revolute chain", links, offset, joints, jnp.asarray([3.0, -8.0]), 1.0)


def _machine(
    name: str,
    bodies: list[Body],
    offset: np.ndarray,
    joints: Sequence[JointConstraint],
    v: jax.Array,
    duration: float,
) -> Machine:
    loose = [
        replace(b, joint=Free(), position=(0, 0, 0), com=np.asarray(b.com) - o)
        for b, o in zip(bodies, offset, strict=True)
    ]
    free = constrain(tree(loose, name=name), *joints)
    jointed = chain(bodies, name=f"{name} on joints")
    return Machine(free, jointed, offset, jointed.neutral(), v, duration)


MACHINES = {"heavy top": heavy_top, "revolute chain": revolute_chain}


class Motion(NamedTuple):
    """Every so manieth state of a run.

    stored: the absolute coordinates (m, 6 or 7) of each body. poses (m, nb, 7) and twists
    (m, nb, 6): the same as poses and body twists.
    """

    stored: tuple[jax.Array, ...]
    poses: jax.Array
    twists: jax.Array


@eqx.filter_jit
def march(
    name: str, system: System, start: tuple[jax.Array, jax.Array], h: Any, rows: int, stride: Any
) -> Motion:
    """The motion under the map `name`, by steps of h (s), every `stride`th state of rows of them.

    start: poses (nb, 7) and body twists (nb, 6). h and stride are traced.
    """
    model, n = Tree.of(system), len(start[0])
    manifold = Product((*(TRANSITION_MAPS[name],) * n, Euclidean(6 * n)))
    semidirect = LOCAL[name[1]][1] == "SE(3)"
    no_force = jnp.zeros(6 * n, start[0].dtype)

    def poses(y: tuple) -> jax.Array:
        return jnp.stack([_pose(name, q) for q in y[:-1]])

    def field(t: jax.Array, y: tuple) -> tuple:
        T, V = poses(y), y[-1].reshape(n, 6)
        body = V if semidirect else _as_body(T, V)
        a, _ = constrained_acceleration(model, T.ravel(), body.ravel(), no_force)
        if not semidirect:
            a = a.reshape(n, 6)
            change = a[:, 3:] + jnp.cross(body[:, :3], body[:, 3:])
            a = _as_mixed(T, jnp.concatenate((a[:, :3], change), axis=1)).ravel()
        return (*V, a)

    def step(_: Any, y: tuple) -> tuple:
        return single_step(METHOD, manifold, field, 0.0, y, h)

    def row(y: tuple, _: None) -> tuple[tuple, tuple]:
        y = jax.lax.fori_loop(0, stride, step, y)
        return y, y

    T, V = start
    y = (*(_stored(name, pose) for pose in T), (V if semidirect else _as_mixed(T, V)).ravel())
    *stored, rate = jax.lax.scan(row, y, length=rows)[1]
    seen = jax.vmap(poses)((*stored, rate))
    rate = rate.reshape(rows, n, 6)
    return Motion(tuple(stored), seen, rate if semidirect else _as_body(seen, rate))


def _stored(name: str, pose: jax.Array) -> jax.Array:
    if name[0] == "1":
        return pose
    return jnp.concatenate((quaternion.log(pose[:4]), pose[4:]))


def _pose(name: str, q: jax.Array) -> jax.Array:
    if name[0] == "1":
        return q
    return jnp.concatenate((quaternion.exp(q[:3]), q[3:]))


def _as_mixed(poses: jax.Array, twists: jax.Array) -> jax.Array:
    """Body twists (..., 6) as mixed ones: the second half turned into the world."""
    v = _attitude(poses) @ Vector.from_array(twists[..., 3:])
    return jnp.concatenate((twists[..., :3], v.to_array()), axis=-1)


def _as_body(poses: jax.Array, mixed: jax.Array) -> jax.Array:
    """Mixed twists (..., 6) as body twists."""
    v = _attitude(poses).transposed_times(Vector.from_array(mixed[..., 3:]))
    return jnp.concatenate((mixed[..., :3], v.to_array()), axis=-1)


def _attitude(poses: jax.Array) -> Matrix:
    return quaternion.to_matrix_components(poses[..., 0], Vector.from_array(poses[..., 1:4]))


@eqx.filter_jit
def violation(system: System, poses: jax.Array, twists: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The largest |g| and |A v| of each constraint over a motion, (n_constraints,) each.

    In m and m/s, rad and rad/s. poses (m, nb, 7), body twists (m, nb, 6).
    """
    model = Tree.of(system)

    def at(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        here = equations(model, q.ravel())
        return jnp.abs(here.residual()), jnp.abs(here.rate(v.ravel()))

    given: tuple[Any, ...] = system.constraints
    ends = np.cumsum([c.size for c in given])[:-1]
    largest = [jnp.max(a, axis=0) for a in jax.vmap(at)(poses, twists)]
    g, rate = (jnp.stack([jnp.max(part) for part in jnp.split(a, ends)]) for a in largest)
    return g, rate


def exact(machine: Machine) -> jax.Array:
    """The poses (nb, 7) at the end, from joint coordinates by a method of order 8."""
    steps = 1000
    run = simulate(
        machine.jointed,
        machine.q,
        machine.v,
        dt=machine.duration / steps,
        steps=steps,
        save_every=steps,
        method=RKMK8(),
    )
    return machine.absolute(run.q[-1], run.v[-1])[0]


class Study(NamedTuple):
    """What the runs of one machine under one map give, for each of STEPS.

    errors (n, 2): the largest of attitudes in rad and of positions in m, at the end. g and rate
    (n, n_constraints): the largest |g| and |A v| on the way.
    """

    errors: np.ndarray
    g: np.ndarray
    rate: np.ndarray


def study(name: str, machine: Machine, end: jax.Array) -> Study:
    """The runs of a machine under the map `name`; end (nb, 7): the exact poses."""
    manifold, start = machine.free.manifold, machine.absolute(machine.q, machine.v)
    errors, violations = [], []
    for n in STEPS:
        motion = _run(name, machine, start, machine.duration / n, n)
        last = motion.poses[-1]
        apart = manifold.difference(end.ravel(), last.ravel()).reshape(-1, 2, 3)
        errors.append(np.max(np.linalg.norm(apart, axis=2), axis=0))
        violations.append(violation(machine.free, motion.poses, motion.twists))
    g, rate = (np.array(each) for each in zip(*violations, strict=True))
    return Study(np.array(errors), g, rate)


def _run(
    name: str, machine: Machine, start: tuple[jax.Array, jax.Array], h: float, steps: int
) -> Motion:
    stride = jnp.asarray(steps // ROWS)
    return jax.block_until_ready(march(name, machine.free, start, jnp.asarray(h), ROWS, stride))


def norm_defect(name: str, machine: Machine) -> float:
    """The largest | |p| - 1 | of the quaternions p over LONG_STEPS steps, none renormalised."""
    motion = _run(name, machine, machine.absolute(machine.q, machine.v), LONG_STEP, LONG_STEPS)
    norms = [jnp.linalg.norm(q[:, :4], axis=1) for q in motion.stored]
    return float(jnp.max(jnp.abs(jnp.stack(norms) - 1)))


def microseconds(name: str, machine: Machine) -> float:
    """The processor time of a step in us, without compilation: the least of TIMED_RUNS."""
    start, times = machine.absolute(machine.q, machine.v), []
    for _ in range(TIMED_RUNS):
        begin = time.process_time()
        _run(name, machine, start, machine.duration / STEPS[-1], STEPS[-1])
        times.append(time.process_time() - begin)
    return min(times) / STEPS[-1] * 1e6


def slope(steps: Sequence[float], errors: np.ndarray) -> float | None:
    """The exponent k of errors ~ h^k over the three smallest steps; None for rounding alone."""
    if np.max(errors) < ROUNDING:
        return None
    return float(-np.polyfit(np.log(steps[-3:]), np.log(errors[-3:]), 1)[0])


def compute(progress: Progress) -> tuple[dict[str, Any], Callable[[], dict[str, Figure]]]:
    """The table of the eight maps and the comparison of the groups; a minute or two on two cores.

    The dictionary has "rows", one for each map, of the heavy top: "map", "attitude", "local",
    "group", "order", "constraint_error" and "velocity_error" with the step "h" in s, "norm_defect"
    (None for rotation vectors) and "microseconds_per_step"; "comparison", a row for each machine,
    joint and local coordinates, with a value for each of the steps "h" in "attitude_error" and
    "position_error" (at the end), "constraint_error" and "velocity_error", and the exponents
    "constraint_order" and "velocity_order", None where there is rounding alone; and "com", the
    centre of mass of the top at 0.2 s in m: "computed" on a ball joint and "published".
    """
    machines = {kind: build() for kind, build in MACHINES.items()}
    ends = {kind: exact(machine) for kind, machine in machines.items()}
    top, *others = machines
    # How attitudes are stored does not bear on constraints: the others run with quaternions alone.
    pairs = [(kind, f"1{letter}") for kind in others for letter in LOCAL]
    pairs += [(top, name) for name in TRANSITION_MAPS]
    studies, defects = {}, {}

    def runs(pair: tuple[str, str]) -> tuple[Study, float | None]:
        kind, name = pair
        found = study(name, machines[kind], ends[kind])
        quaternions = kind == top and name[0] == "1"
        return found, norm_defect(name, machines[kind]) if quaternions else None

    progress("maps", 0, len(pairs))
    with ThreadPoolExecutor(2) as pool:
        for pair, (found, defect) in zip(pairs, pool.map(runs, pairs), strict=True):
            studies[pair], defects[pair] = found, defect
            progress("maps", len(studies), len(pairs))
    rows = []
    for name in TRANSITION_MAPS:
        found = studies[top, name]
        local, group = LOCAL[name[1]]
        rows.append(
            {
                "map": name,
                "attitude": ATTITUDES[name[0]],
                "local": local,
                "group": group,
                "h": machines[top].duration / STEPS[SHOWN],
                "order": slope(STEPS, found.errors.max(axis=1)),
                "constraint_error": float(found.g[SHOWN].max()),
                "velocity_error": float(found.rate[SHOWN].max()),
                "norm_defect": defects[top, name],
                "microseconds_per_step": microseconds(name, machines[top]),
            }
        )
        progress("timing", len(rows), len(TRANSITION_MAPS))
    comparison = [
        row
        for kind, machine in machines.items()
        for row in comparison_rows(kind, machine, {a: studies[kind, f"1{a}"] for a in LOCAL})
    ]
    results = {
        "rows": rows,
        "comparison": comparison,
        "com": {"computed": np.asarray(ends[top][0, 4:]).tolist(), "published": list(COM)},
    }

    def figures() -> dict[str, Figure]:
        return {
            "order": order_figure(machines, studies),
            "constraints": constraint_figure(comparison),
        }

    return results, figures


def comparison_rows(kind: str, machine: Machine, studies: dict[str, Study]) -> list[dict[str, Any]]:
    """A row for each joint and each of the local coordinates."""
    h = [machine.duration / n for n in STEPS]
    return [
        {
            "machine": kind,
            "joint": joint,
            "local": LOCAL[letter][0],
            "group": LOCAL[letter][1],
            "h": h,
            "attitude_error": found.errors[:, 0].tolist(),
            "position_error": found.errors[:, 1].tolist(),
            "constraint_error": found.g[:, i].tolist(),
            "velocity_error": found.rate[:, i].tolist(),
            "constraint_order": slope(STEPS, found.g[:, i]),
            "velocity_order": slope(STEPS, found.rate[:, i]),
        }
        for i, joint in enumerate(machine.joints)
        for letter, found in studies.items()
    ]


def show(numbers: dict[str, Any], console: Console) -> None:
    """Prints the table of the eight maps, and what the groups make of joints."""
    h = numbers["rows"][0]["h"]
    table = _table(
        f"Heavy top, h = {h:g} s, classical Runge-Kutta tableau",
        ("map\n", "local\ncoordinates", "group\n"),
        ("\norder", "|g|\n[m]", "|A v|\n[m/s]", "norm\ndefect", "us a\nstep"),
    )
    for attitude in ATTITUDES.values():
        table.add_row("", f"[dim]{attitude}s[/]")
        for r in numbers["rows"]:
            if r["attitude"] == attitude:
                table.add_row(
                    *(r["map"], r["local"], r["group"], f"{r['order']:.2f}"),
                    *(_short(r[k]) for k in ("constraint_error", "velocity_error", "norm_defect")),
                    f"{r['microseconds_per_step']:.0f}",
                )
    console.print(table)
    com = numbers["com"]
    lines = [
        "|g|, |A v|: the largest in 0.2 s, without stabilisation. Norm defect: of",
        f"quaternions in {LONG_STEPS} steps of {LONG_STEP:g} s. Centre of mass at 0.2 s in m,",
        "on a ball joint and published:",
        *(" ".join(f"{x:14.10f}" for x in com[key]) for key in ("computed", "published")),
    ]
    console.print("\n".join(lines), highlight=False, markup=False)
    first, last = STEPS[0], STEPS[-1]
    table = _table(
        "What each group makes of joints",
        ("local\ncoordinates", "group\n"),
        (f"|g|\n{first} steps", f"|g|\n{last} steps", "order\nof g", "order\nof A v"),
    )
    where = None
    for r in numbers["comparison"]:
        if where != (r["machine"], r["joint"]):
            where = r["machine"], r["joint"]
            table.add_row(f"[dim]{': '.join(where)}[/]")
        orders = (r["constraint_order"], r["velocity_order"])
        table.add_row(
            *(r["local"], r["group"]),
            *(_short(r["constraint_error"][k]) for k in (0, -1)),
            *("-" if order is None else f"{order:.2f}" for order in orders),
        )
    console.print(table)
    console.print("A dash: rounding at every step size.", highlight=False)


def _table(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for head in left:
        table.add_column(head, no_wrap=True)
    for head in right:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"


def order_figure(machines: dict[str, Machine], studies: dict[tuple[str, str], Study]) -> Figure:
    """Errors at the end over the step size: a column for each machine."""
    canvas, axes = figure(2, len(machines), (10.0, 7.5))
    for j, (kind, machine) in enumerate(machines.items()):
        h = [machine.duration / n for n in STEPS]
        for i, quantity in enumerate(("attitude error [rad]", "position error [m]")):
            a = axes[i, j]
            for letter in LOCAL:
                errors = studies[kind, f"1{letter}"].errors[:, i]
                _draw(a, h, errors, *LOCAL[letter])
            vectors = [
                studies[kind, f"2{c}"].errors[:, i] for c in LOCAL if (kind, f"2{c}") in studies
            ]
            for k, errors in enumerate(vectors):
                text = "" if k else "rotation vectors stored"
                a.plot(1e3 * np.array(h), errors, "x", color="#5f6368", label=text)
            largest = max(studies[kind, f"1{c}"].errors[-1, i] for c in LOCAL)
            line = 3 * largest * (np.array(h) / h[-1]) ** 4
            a.plot(1e3 * np.array(h), line, ":", color="#5f6368", label="slope 4")
            _label(a, h, quantity, kind.capitalize())
    canvas.legend(*axes[0, 0].get_legend_handles_labels(), ncols=3, **_BELOW)
    return canvas


def constraint_figure(comparison: list[dict[str, Any]]) -> Figure:
    """|g| and |A v| over the step size: a column for each joint."""
    joints = list(dict.fromkeys((r["machine"], r["joint"]) for r in comparison))
    kinds = {"constraint_error": "largest |g| [m, -]", "velocity_error": "largest |A v| [m/s, 1/s]"}
    canvas, axes = figure(len(kinds), len(joints), (12.0, 7.5))
    for i, (key, quantity) in enumerate(kinds.items()):
        for j, joint in enumerate(joints):
            a = axes[i, j]
            if j:
                a.sharey(axes[i, 0])
            rows = [r for r in comparison if (r["machine"], r["joint"]) == joint]
            for r in rows:
                _draw(a, r["h"], r[key], r["local"], r["group"])
            _label(a, rows[0]["h"], quantity, f"{joint[0].capitalize()}: {joint[1]}")
    canvas.legend(*axes[0, 0].get_legend_handles_labels(), ncols=4, **_BELOW)
    return canvas


_BELOW: dict[str, Any] = {"loc": "outside lower center", "frameon": False}


def _draw(axes: Axes, h: Sequence[float], values: Any, local: str, group: str) -> None:
    """A line over the step size h in s: the colour tells the group, the line the map."""
    milliseconds = 1e3 * np.array(h)
    style, marker = ("-", "o") if local.endswith("exp") else ("--", "s")
    axes.loglog(
        milliseconds,
        np.maximum(values, 1e-17),
        linestyle=style,
        marker=marker,
        fillstyle="none",
        color="#0b5394" if group == "SE(3)" else "#cc4125",
        label=f"{local}: {group}",
    )


def _label(axes: Axes, h: Sequence[float], quantity: str, title: str) -> None:
    milliseconds = 1e3 * np.array(h)
    axes.set_xticks(milliseconds, [f"{x:.3g}" for x in milliseconds])
    axes.minorticks_off()
    label(axes, "step h [ms]", quantity, title, legend=False)
