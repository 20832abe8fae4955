"""The function `step`: one time step by itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from .. import native
from ..constraints import Projection, Stabilisation
from ..forces.inputs import SampledInput
from ..formulations import BesideTheMotion, Formulation, Inputs, formulation_of
from ..integrators import RKMK4, Method
from ..integrators.method import chosen
from ..system.arguments import check_system, checked_arrays
from ..system.internal_states import states_of
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.user_functions import users_code, watched
from ..system.validation import in_precision, real_numbers
from .arguments import checked_dt, chosen_method, started_at
from .inputs import Input, Sampled, check_functions, check_width, inputs_at
from .resolution import look_once
from .step_status import finite


class Stepped(NamedTuple):
    """The end of one step: q (nq,), v (nv,), and whether it was solved and is finite ().

    q and v are in SI units; if not solved, they are those of the start.
    """

    q: jax.Array
    v: jax.Array
    solved: jax.Array


class SteppedWithStates(NamedTuple):
    """The same of a system with internal states, with these, z (nz,)."""

    q: jax.Array
    v: jax.Array
    solved: jax.Array
    z: jax.Array


_PROJECTION = Projection()


def step(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    dt: ArrayLike,
    *,
    z: ArrayLike | None = None,
    method: Method | str = RKMK4(),
    control: Input = None,
    wrench: Input = None,
    t: ArrayLike = 0.0,
    stabilisation: Stabilisation = _PROJECTION,
) -> Stepped | SteppedWithStates:
    """One time step dt (s) from the state q (nq,), v (nv,) at the time t (s): q, v, solved.

    Of a system with internal states also z (nz,), see `difflie.Stateful`.

    z (nz,): the internal states at the start, by default those that the system's parts hold.
    method and stabilisation as in `simulate`. control: the command (nu,), held over the step, or a
    function of (t, q, v); wrench (nb, 6) likewise. The method starts afresh: anything it carries
    from step to step in `simulate`, such as the length of a sub-step or the previous step, is as in
    a first step. Differentiable in everything, in both modes. Raises as `simulate`, except for a
    start that violates a constraint; ValueError for actuators with a memory, and TypeError for
    samples and for a `Sampled` control.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
    >>> end = dl.step(ball, [1.0], [0.0], dt=0.1)
    >>> print(end.q.round(5), end.v.round(3), end.solved)
    [0.95095] [-0.981] True
    """
    check_system(system)
    method = chosen_method(method)
    kind = formulation_of(method, system)
    q, v = checked_arrays(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    system = started_at(system, z)
    dt = checked_dt("step", dt, system.dtype)
    t = in_precision(real_numbers("step", "t", t), system.dtype)
    for actuator in system.actuators:
        if actuator.has_state:
            raise ValueError(
                f"step: {actuator} has a memory, and one step knows nothing of what was commanded "
                "before; use simulate, or an actuator without delay and lag"
            )
    look_once("step", method, system, q, v, dt)
    n_bodies = len(system.body_names)
    control = _held(system, "control", control, (system.nu,))
    wrench = _held(system, "wrench", wrench, (n_bodies, 6))
    given = Tree.of(system), q, v, dt, t
    code = users_code(system, control, wrench)
    end = _step(given, control, wrench, (kind, method, stabilisation), code)
    return Stepped(*end[:3]) if end[3] is None else SteppedWithStates(*end)


@eqx.filter_jit
def _step(given: tuple, control: Any, wrench: Any, how: tuple, _: Any) -> tuple:
    """Compiled once for each topology, method, function among the inputs, and code of users'."""
    kind, method, stabilisation = how
    tree, q, v, _, t = given
    check_functions(tree.system, control, wrench, (t, q, v))
    functions = tuple(u if callable(u) else None for u in (control, wrench))
    values = (None if callable(u) else u for u in (control, wrench))
    rows = tuple(None if u is None else (u, jnp.zeros_like(u)) for u in values)
    arrays, fixed = eqx.partition(functions, eqx.is_array)

    def taken(arrays, given, rows):
        tree, q, v, dt, t = given
        formulation = BesideTheMotion.around(kind.of(tree, method, stabilisation))
        acting = inputs_at(eqx.combine(arrays, fixed), rows, t, dt)
        return stepped(formulation, q, v, dt, t, acting)

    return native.kernel(taken)(arrays, given, rows)


def stepped(
    formulation: Formulation,
    q: jax.Array,
    v: jax.Array,
    dt: jax.Array,
    t: jax.Array,
    acting: Inputs,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array | None]:
    """q (nq,), v (nv,) at the end of a first step, whether it is solved and finite (), z (nz,).

    If not, q, v and z are those of the start. Nothing is checked and nothing compiled.
    """
    *end, fine, z = ended(formulation, q, v, dt, t, acting)
    before = None if z is None else states_of(formulation.tree.system)
    q, v, z = chosen(fine, (*end, z), (q, v, before))
    return q, v, fine, z


def ended(
    formulation: Formulation,
    q: jax.Array,
    v: jax.Array,
    dt: jax.Array,
    t: jax.Array,
    acting: Inputs,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array | None]:
    """As `stepped`, with q and v of the end in any case: their derivatives are shorter programs."""
    acting = acting.held(t, q, v) if formulation.reads_once else acting
    on_manifold = formulation.tree.topology.manifold.retract(q, jnp.zeros_like(v))
    state = formulation.init(t, on_manifold, v, dt, acting)
    state, solved = formulation.step(t, state, dt, acting)
    end, z = formulation.read(state), formulation.states(state)
    fine = finite(*end) & solved
    return *end, fine if z is None else fine & jnp.all(jnp.isfinite(z)), z


def _held(system: System, name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """The array (shape) of a constant input, checked; a function as it is."""
    if isinstance(value, Sampled):
        raise TypeError(
            f"step: {name} is a Sampled controller, and one step knows neither its last sample nor "
            "its memory; give its command in this step, or use simulate"
        )
    if isinstance(value, SampledInput):
        raise TypeError(f"step: {name} is sampled; give its numbers in this step, or a function")
    if value is None or callable(value):
        return watched(value)
    check_width(system, name, name, real_numbers(system.name, name, value).shape, shape)
    (values,) = checked_arrays(system, **{name: (value, shape)})
    return values
