"""Numbers of several machines, of which those of one name are one number.

light, loaded = arm(), arm_with_payload()
parameters = SharedParameters(
    {"light": light, "loaded": loaded},
    ["link*/mass", "joint*/friction"],
    own={"loaded": ["payload/mass"]},
)
parameters.system_at(parameters.start)["loaded"]  # the arm with payload of free numbers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from numpy.typing import ArrayLike

from ..deprecated import renamed
from ..system.arguments import checked
from ..system.system import System
from ..system.validation import format_value, nearest
from .declaration import Parameter
from .parameters import Parameters, parameters_text


@renamed(machine="system_at")
class SharedParameters(eqx.Module):
    """Numbers of machines as one vector (n,), which has each shared number once, and back.

    systems: the machines by name, of one precision, such as a robot with and without a payload, or
    two robots of one kind. shared: declarations for all of them, which select numbers of the same
    names, alike at the start; a body that only one machine has is that machine's own. own: further
    declarations for single machines, after the shared ones; numbers that these select are not
    shared, and are named after their machine, "loaded: payload/mass".

    names, units: of the values (n,), as of `Parameters`, those of the first machine first. machine
    and with_values give all systems by name; other methods are as of `Parameters`. A prior of a
    shared number counts once.

    Raises ValueError, naming the machine, the number and the fix, for declarations that
    `Parameters` refuses, for less than two machines, an unknown one in `own`, for machines that
    share no number, and for a shared number with another start, prior or transform in one of them.
    """

    machines: tuple[str, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    _each: tuple[Parameters, ...]
    # The names that the numbers of each machine have here.
    _named: tuple[tuple[str, ...], ...] = eqx.field(static=True)

    def __init__(
        self,
        systems: Mapping[str, System],
        shared: Sequence[Parameter | str],
        own: Mapping[str, Sequence[Parameter | str]] | None = None,
    ) -> None:
        own = own or {}
        _check_given(systems, shared, own)
        self.machines = tuple(systems)
        self._each = tuple(
            Parameters(system, [*shared, *own.get(m, ())]) for m, system in systems.items()
        )
        alone = [set(Parameters(s, own.get(m, ())).names) for m, s in systems.items()]
        self._named = tuple(
            tuple(f"{m}: {name}" if name in not_shared else name for name in p.names)
            for m, p, not_shared in zip(systems, self._each, alone, strict=True)
        )
        _check_alike(dict(zip(systems, self._each, strict=True)), alone)
        self.names = tuple(dict.fromkeys(self._all_names))
        units = [unit for p in self._each for unit in p.units]
        self.units = tuple(units[k] for k in _first(self._all_names, self.names))

    def __repr__(self) -> str:
        return parameters_text(self)

    @property
    def title(self) -> str:
        """The names of the machines, for messages."""
        return " and ".join(self.machines)

    @property
    def given(self) -> dict[str, System]:
        """The given machines by name, with the declared starts."""
        return {m: p.system for m, p in zip(self.machines, self._each, strict=True)}

    @property
    def initial(self) -> jax.Array:
        """The values (n,) of the given systems."""
        return self._once([p.initial for p in self._each])

    @property
    def start(self) -> jax.Array:
        """The free numbers x (n,) of the given systems; see `Parameters.start`."""
        return self._once([p.start for p in self._each])

    @property
    def repaired(self) -> tuple[str, ...]:
        """The bodies that start at another inertia; see `Parameters.repaired`."""
        return tuple(dict.fromkeys(body for p in self._each for body in p.repaired))

    @property
    def prior_names(self) -> tuple[str, ...]:
        """The names (n_prior,) of the entries of `residual`."""
        return tuple(dict.fromkeys(self._all_prior_names))

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower and upper bounds (n,) of the values, infinite for none; no x reaches them."""
        first = _first(self._all_names, self.names)
        lower, upper = (np.concatenate([p.limits[k] for p in self._each])[first] for k in (0, 1))
        return lower, upper

    @property
    def bounded(self) -> tuple[np.ndarray, np.ndarray]:
        """Whether each value nears a bound as its x goes to -infinity, and to infinity (n,)."""
        first = _first(self._all_names, self.names)
        low, high = (np.concatenate([p.bounded[k] for p in self._each])[first] for k in (0, 1))
        return low, high

    def system_at(self, x: ArrayLike) -> dict[str, System]:
        """The systems by name, with the free numbers x (n,)."""
        systems = [p.system_at(part) for p, part in self._parts(x=x)]
        return dict(zip(self.machines, systems, strict=True))

    def with_values(self, values: ArrayLike) -> dict[str, System]:
        """The systems by name, with these values (n,); see `Parameters.with_values`."""
        systems = [p.with_values(part) for p, part in self._parts(values=values)]
        return dict(zip(self.machines, systems, strict=True))

    def values(self, x: ArrayLike) -> jax.Array:
        """The values (n,) of the free numbers x (n,)."""
        return self._once([p.values(part) for p, part in self._parts(x=x)])

    def residual(self, x: ArrayLike) -> jax.Array:
        """(values - mean) / deviation (n_prior,) of the values with a prior, in their order."""
        found = jnp.concatenate([p.residual(part) for p, part in self._parts(x=x)])
        return found[_first(self._all_prior_names, self.prior_names)]

    @property
    def _all_names(self) -> list[str]:
        return [name for names in self._named for name in names]

    @property
    def _all_prior_names(self) -> list[str]:
        found = []
        for p, named in zip(self._each, self._named, strict=True):
            renamed = dict(zip(p.names, named, strict=True))
            found += [renamed[name] for name in p.prior_names]
        return found

    def _once(self, each: Sequence[jax.Array]) -> jax.Array:
        """Vectors of all machines as one (n,), which has what is shared once."""
        return jnp.concatenate(each)[_first(self._all_names, self.names)]

    def _parts(self, **vector: Any) -> list[tuple[Parameters, jax.Array]]:
        """The numbers of each machine in a vector (n,), which is checked."""
        shaped = {name: (value, (len(self.names),)) for name, value in vector.items()}
        (numbers,) = checked(self._each[0].system, **shaped)
        return [
            (p, numbers[_first(self.names, named)])
            for p, named in zip(self._each, self._named, strict=True)
        ]


def _first(among: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Where each of the names stands first among others."""
    place: dict[str, int] = {}
    for k, name in enumerate(among):
        place.setdefault(name, k)
    return np.array([place[name] for name in names], int)


def _check_given(systems: Any, shared: Any, own: Mapping[str, Any]) -> None:
    """Raises ValueError for less than two machines, an unknown one, and strings for lists."""
    if not isinstance(systems, Mapping) or len(systems) < 2:
        raise ValueError(
            'give two systems or more by name, {"light": arm, ...}; for one take Parameters'
        )
    for machine in own:
        if machine not in systems:
            raise ValueError(
                f"own: no machine is named {format_value(machine)}{nearest(machine, systems)}"
            )
    for given in (shared, *own.values()):
        if isinstance(given, str):
            raise ValueError(
                f"the parameters are the string {format_value(given)}; give a list of paths"
            )


def _check_alike(each: Mapping[str, Parameters], alone: Sequence[set[str]]) -> None:
    """Raises ValueError unless shared numbers mean the same in all machines that have them."""
    if len({p.system.dtype for p in each.values()}) > 1:
        raise ValueError(f"{' and '.join(each)} have unlike precisions; give all systems one")
    found: dict[str, tuple[str, tuple[str, ...], Any]] = {}
    common = False
    for (machine, parameters), not_shared in zip(each.items(), alone, strict=True):
        for names, meaning in parameters.meanings:
            for name in (name for name in names if name not in not_shared):
                other, together, before = found.setdefault(name, (machine, names, meaning))
                common |= other != machine
                if names != together or not _same(meaning, before):
                    raise ValueError(
                        f"{machine}: {name!r} has another start, prior, bounds or transform than "
                        f"in {other}; declare it with one `start` for all, or in `own`"
                    )
    if not common:
        raise ValueError(
            f"{' and '.join(each)} share no number; shared numbers are those with the same names "
            "of bodies and joints"
        )


def _same(a: ArrayLike, b: Any) -> bool:
    """Whether two meanings are equal; traced ones count as equal."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((a, b))):
        return True
    return bool(eqx.tree_equal(a, b))
