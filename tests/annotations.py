"""How calls are checked against annotations in tests."""

from collections.abc import Callable
from typing import Any

import beartype

# An int is a float.
_WITH_CHECK = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))
_made: dict[Any, Callable] = {}


def checked(signature: Callable) -> Callable:
    """A function that does nothing, with a check of its arguments.

    Jaxtyping makes one for what has these arguments, twice for each function. A function inside of
    another is made in each call of this, always with the same check, which takes a millisecond to
    write.
    """
    if all(a is Any for a in signature.__annotations__.values()):
        return signature
    if signature.__defaults__ or signature.__kwdefaults__:
        return _WITH_CHECK(signature)
    annotations = tuple(signature.__annotations__.items())
    key = (signature.__module__, signature.__qualname__, signature.__code__, annotations)
    if key not in _made:
        _made[key] = _WITH_CHECK(signature)
    return _made[key]
