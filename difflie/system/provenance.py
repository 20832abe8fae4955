"""What a result remembers of how it was made, beside its arrays."""

from __future__ import annotations

from typing import Any, Self

import jax


class Leafless:
    """A pytree without leaves, whose class makes an empty one without arguments.

    What it holds is lost in a transformation, a pickle, or a result whose leaves were changed.
    """

    def __init_subclass__(cls) -> None:
        jax.tree_util.register_pytree_node_class(cls)

    def tree_flatten(self) -> tuple[tuple, None]:
        return (), None

    @classmethod
    def tree_unflatten(cls, _: None, leaves: tuple) -> Self:
        return cls()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()
