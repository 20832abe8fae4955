"""Configuration and velocity moved along a vector field, for Runge-Kutta methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from ..constraints import derivatives
from ..constraints.friction import with_friction
from ..constraints.motion import constrained_acceleration
from ..constraints.stabilisation import NullSpace, Projection, Stabilisation
from ..dynamics.derivatives import acceleration_by_matrices
from ..dynamics.forward import acceleration
from ..dynamics.free_flight import bases, carried, free_step
from ..dynamics.rnea import rnea
from ..forces.internal_states import integrated_rates, returned_states
from ..groups import Euclidean, FlatProduct, Product
from ..integrators import FieldMethod, VectorField
from ..integrators.method import Method, Scalar
from ..system.internal_states import states_of, tree_with_states
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.traverse import in_one
from .formulation import Formulation, Inputs


class RateFormulation(Formulation):
    """dq/dt = q . hat(v), dv/dt = M^-1 (tau - bias) on Product((Q, R^nv))."""

    equations: ClassVar[type] = VectorField
    # The algorithm of the acceleration (nv,), a function (tree, q, v, tau, wrench).
    forward: ClassVar[Callable[..., jax.Array]] = staticmethod(acceleration)

    @classmethod
    def check(cls, method: Method, system: System) -> None:
        if not isinstance(method, FieldMethod):
            raise TypeError(
                f"simulate: {method.name} integrates a VectorField and is no FieldMethod; derive "
                "its class from difflie.integrators.FieldMethod, and say how many stages it has"
            )

    @property
    def manifold(self) -> Product:
        t = self.tree.topology
        return Product((t.manifold, Euclidean(t.nv), *self._space_of_states))

    @property
    def _space_of_states(self) -> tuple[Euclidean, ...]:
        """The space of the internal states, where the method integrates them."""
        return (Euclidean(self.tree.system.nz),) * self.carries_states

    @property
    def carries_states(self) -> bool:
        return bool(self.tree.system.nz) and not self.method.partitioned

    @property
    def reads_once(self) -> bool:
        return self.method.reads_once

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> VectorField:
        # The stages of a method share it, in a loop.
        return self._problem(h, inputs, partial(in_one, self.tree.topology))

    def _problem(self, h: Scalar, inputs: Inputs, compiled: Callable[[Any], Any]) -> VectorField:
        def field(t: jax.Array, y: Any, at_start: Any = False) -> tuple[jax.Array, ...]:
            q, v, *z = y
            there, acting = self._at(*z), inputs.in_stage(at_start)
            return v, there.acceleration(t, q, v, h, acting)[0], *there._rates(t, q, v, acting)

        def step(t: jax.Array, y: Any, h: jax.Array) -> tuple[jax.Array, ...]:
            q, v, *z = y
            there = self._at(*z)
            moved = free_step(self.tree, q, v, *there.acceleration(t, q, v, h, inputs), h)
            rates = there._rates(t, q, v, inputs)
            return *moved, *(z + h * rate for z, rate in zip(z, rates, strict=True))

        field = compiled(field)
        free = compiled(step) if self.keeps_momentum else None
        return VectorField(self.manifold, field, free, field)

    def _at(self, *z: jax.Array) -> RateFormulation:
        """The formulation of the system at internal states z (nz,), where there are any."""
        return replace(self, tree=tree_with_states(self.tree, *z)) if z else self

    def _rates(self, t: jax.Array, q: jax.Array, v: jax.Array, inputs: Inputs) -> list[jax.Array]:
        """dz/dt (nz,), where the method integrates them."""
        if not self.carries_states:
            return []
        return [integrated_rates(self.tree, inputs.heard(self.tree.system, t, q, v), q, v)]

    def step(self, t: jax.Array, state: Any, h: Scalar, inputs: Inputs) -> tuple[Any, Any]:
        state, solved = super().step(t, state, h, inputs)
        q, v, *z = state.y
        end = q, v, *self._returned(q, *z)
        return eqx.tree_at(lambda s: s.y, state, end), solved

    def _returned(self, q: jax.Array, *z: jax.Array) -> list[jax.Array]:
        """The internal states at q (nq,) that follow the motion at once, and the others."""
        return [returned_states(self.tree, q, each) for each in z]

    def start(self, q: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        return q, v, *([states_of(self.tree.system)] * self.carries_states)

    def read(self, state: Any) -> tuple[jax.Array, jax.Array]:
        return state.y[:2]

    def states(self, state: Any) -> Float[Array, " nz"] | None:
        return state.y[2] if self.carries_states else None

    @property
    def keeps_momentum(self) -> bool:
        """Whether the method lets free bodies go on by their momentum, and there are any."""
        return self.method.keeps_momentum and bool(bases(self.tree.topology))

    def acceleration(
        self,
        t: jax.Array,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        h: Scalar,
        inputs: Inputs,
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        """The acceleration (nv,) in a step h (s), and all that acts but gravity, M a + bias."""
        return inputs.accelerating(self.tree, t, q, v, self.forward)

    def in_closed_form(self) -> Formulation:
        plain = type(self) is RateFormulation
        return RatesInClosedForm(self.tree, self.method) if plain else self


class RatesInClosedForm(RateFormulation):
    """The same, with a derivative in closed form for many directions at once.

    It has none by the numbers of the machine.
    """

    forward: ClassVar[Callable[..., jax.Array]] = staticmethod(acceleration_by_matrices)

    @property
    def manifold(self) -> Product:
        t = self.tree.topology
        space = _RetractedByMatrices(t.manifold.factors)
        return Product((space, Euclidean(t.nv), *self._space_of_states))

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> VectorField:
        return self._problem(h, inputs, lambda f: f)


class _RetractedByMatrices(FlatProduct):
    """The same product, its retraction differentiated for many directions at once."""

    def retract(self, y: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.point_size}"]:
        return _retracted(FlatProduct(self.factors), y, xi)


@jax.custom_jvp
def _retracted(space: FlatProduct, y: ArrayLike, xi: ArrayLike) -> jax.Array:
    return space.retract(y, xi)


@_retracted.defjvp
def _retracted_by_matrices(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    (space, y, xi), (_, dy, dxi) = primals, tangents
    by_y, by_xi = jax.jacfwd(space.retract, (0, 1))(y, xi)
    return space.retract(y, xi), by_y @ dy + by_xi @ dxi


class ConstrainedRateFormulation(RateFormulation):
    """dq/dt = q . hat(v), dv/dt = M^-1 (tau - bias + A^T lambda), stabilised after each step."""

    supports: ClassVar[frozenset[str]] = frozenset(("constraints", "joint friction"))

    stabilisation: Stabilisation = eqx.field(default=Projection(), static=True)

    @classmethod
    def of(cls, tree: Tree, method: Method, stabilisation: Stabilisation) -> Formulation:
        return cls(tree, method, stabilisation)

    @staticmethod
    def time_symmetric(method: FieldMethod) -> bool:
        # A projection after a step would have to come before it in the step back.
        return False

    def step(self, t: jax.Array, state: Any, h: Scalar, inputs: Inputs) -> tuple[Any, Any]:
        state, solved = Formulation.step(self, t, state, h, inputs)
        q, v, *z = state.y
        q, v, projected = self.stabilised(q, v)
        end = q, v, *self._returned(q, *z)
        return eqx.tree_at(lambda s: s.y, state, end), solved & projected

    def stabilised(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Bool[Array, ""] | bool]:
        """q (nq,) and v (nv,) after a step, corrected, and whether the correction converged ()."""
        end, converged = self.position(q)
        if self.keeps_momentum and end is not q:
            v = carried(self.tree, q, v, end)
        return end, self.velocity(end, v), converged

    def position(self, q: jax.Array) -> tuple[jax.Array, Any]:
        return self.stabilisation.position(self.tree, q)

    def velocity(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return self.stabilisation.velocity(self.tree, q, v)

    def acceleration(
        self, t: jax.Array, q: jax.Array, v: jax.Array, h: Scalar, inputs: Inputs
    ) -> tuple[jax.Array, jax.Array]:
        a, _ = constrained_acceleration(
            *(self.tree, q, v),
            *inputs.acting(self.tree, t, q, v),
            drift=lambda equations: self.stabilisation.drift(equations, v, h),
            form=self.stabilisation.balance,
        )
        return a, rnea(self.tree, q, v, a)

    def in_closed_form(self) -> Formulation:
        projects = type(self.stabilisation) in (Projection, NullSpace)
        if not projects or with_friction(self.tree.system):
            return self
        return ConstrainedRatesInClosedForm(self.tree, self.method, self.stabilisation)


class ConstrainedRatesInClosedForm(RatesInClosedForm, ConstrainedRateFormulation):
    """The same with projection, with a derivative in closed form for many directions at once.

    It has none by the numbers of the machine.
    """

    def position(self, q: jax.Array) -> tuple[jax.Array, Any]:
        return derivatives.position_by_matrices(self.tree, q)

    def velocity(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return derivatives.velocity_by_matrices(self.tree, q, v)

    def acceleration(
        self, t: jax.Array, q: jax.Array, v: jax.Array, h: Scalar, inputs: Inputs
    ) -> tuple[jax.Array, jax.Array]:
        acting, form = inputs.acting(self.tree, t, q, v), self.stabilisation.balance
        a = derivatives.acceleration_by_matrices(form, self.tree, q, v, *acting)
        return a, rnea(self.tree, q, v, a)
