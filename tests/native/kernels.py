"""Kernels for GPUs run on the CPU, in place of the native calls of a program."""

import abc
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.native.attempts import Unavailable
from difflie.native.gpu import cuda, nvrtc
from difflie.native.loop import Loop
from difflie.native.private import ClosedJaxpr


def required(found: Any, what: str) -> None:
    """Skips a test that needs something, and says so; where CI runs, this is a failure."""
    if not found:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            f"not tested on a GPU's code: {what}"
        )


def nvrtc_required() -> None:
    """NVRTC comes with the extra `test` on Linux and x86-64."""
    try:
        nvrtc.library(None)
    except Unavailable as problem:
        required(None, str(problem))


class Kernels(abc.ABC):
    """Runs functions with their native calls as kernels."""

    @abc.abstractmethod
    def launched(self, text: str, given: list[np.ndarray], outs: list[np.ndarray]) -> Any:
        """Runs a kernel, which writes to `outs`; not None is an error. None are empty."""

    def run(
        self,
        loop: Loop,
        batch: int | None,
        batched_args: tuple[bool, ...],
        args: Any,
        text: str = "",
    ) -> list[np.ndarray]:
        """The results of a loop for one or for a batch, by its kernel or by another one."""
        text = text or cuda.source(loop, batched_args if batch is not None else ())
        pairs = zip(loop.out_shapes, loop.body.out_avals, strict=True)
        outs = [np.full((batch or 1, *s), 77, a.dtype) for s, a in pairs]
        given = [cuda.numbers(loop, batch)]
        given += [np.ascontiguousarray(x) for x in args if np.size(x)]
        assert self.launched(text, given, [x for x in outs if x.size]) is None
        return outs if batch is not None else [x[0] for x in outs]

    def __call__(self, f, *args):
        """f with its native calls on these kernels; at least one."""
        self.calls = 0
        closed, shape = jax.make_jaxpr(f, return_shape=True)(*args)
        results = self._evaluated(closed, jax.tree.leaves(args))
        assert self.calls
        return jax.tree.unflatten(jax.tree.structure(shape), results)

    def _evaluated(self, closed: ClosedJaxpr, args):
        values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
        values.update(zip(closed.jaxpr.invars, args, strict=True))

        def read(v):
            return v.val if hasattr(v, "val") else values[v]

        for e in closed.jaxpr.eqns:
            given = list(map(read, e.invars))
            if e.primitive.name == "native":
                self.calls += 1
                p = e.params
                found = self.run(
                    p["loop"], p["batch"], p["batched_args"], list(map(np.asarray, given))
                )
            elif e.primitive.name in ("jit", "pjit"):
                found = self._evaluated(e.params["jaxpr"], given)
            else:
                found = e.primitive.bind(*given, **e.params)
                found = found if e.primitive.multiple_results else [found]
            values.update(zip(e.outvars, map(jnp.asarray, found), strict=True))
        return list(map(read, closed.jaxpr.outvars))
