"""How a trajectory shows itself: how it was made, how it ended and what drifted."""

from __future__ import annotations

import html
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from numpy.typing import NDArray

from .result import Result


def trajectory_text(run: Any) -> str | None:
    """A `Trajectory` in some lines; None for one whose leaves are no arrays, such as a mask."""
    lines = _lines(run)
    return None if lines is None else "\n".join(lines)


def trajectory_html(run: Any) -> str | None:
    """The same as HTML."""
    lines = _lines(run)
    if lines is None:
        return None
    first, *others = map(html.escape, lines)
    return f"<div><b>{first}</b></div>" + "".join(f"<div>{line}</div>" for line in others)


def _lines(run: Any) -> list[str] | None:
    leaves = [run.t, run.q, run.v]
    if not isinstance(run.result, Result) or not all(_is_array(a) for a in leaves):
        return None
    traced = any(isinstance(a, Tracer) for a in jax.tree.leaves(run))
    name = f"Trajectory of {run.result.topology.name!r}"
    sizes = f"nq = {run.q.shape[-1]}, nv = {run.v.shape[-1]}, {run.q.dtype}"
    batch = f", a batch of shape {run.t.shape[:-1]}" if run.t.ndim > 1 else ""
    rows = f"{run.t.shape[-1]} saved rows"
    if traced:
        return [f"{name}{batch}: {rows}, {sizes}, traced"]
    t = np.asarray(run.t)
    span = f"t = {np.min(t[..., 0]):.6g} to {np.max(t[..., -1]):.6g} s" if t.size else "no times"
    return [f"{name}{batch}: {span}, {rows}, {sizes}", *_made(run), *_ended(run, t)]


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray) and leaf.ndim > 0


def _made(run: Any) -> list[str]:
    """Of what it consists besides q and v."""
    method = run.refinement.method
    said = [f"method: {method}, of order {run.refinement.order}"] if method else []
    if run.u is not None:
        said.append(f"u: {run.u.shape[-1]} commands")
    if run.states is not None:
        said.append(f"states: {type(run.states).__name__}")
    if run.reduced:
        said.append(f"reduced: {', '.join(run.reduced)}")
    return said


def _ended(run: Any, t: NDArray) -> list[str]:
    """How it ended, and what is wrong with its values."""
    said = run.result.messages()
    if bool(np.all(run.result.within_limits)):
        said.append("no limit was exceeded")
    elif t.ndim > 1:
        said.append(f"runs beyond a limit: {np.sum(~np.asarray(run.result.within_limits))}")
    for name, values in (("q", np.asarray(run.q)), ("v", np.asarray(run.v))):
        lost = ~np.isfinite(values).all(axis=-1)
        if lost.any():
            first = t[lost].min()
            said.append(f"{name} is not finite from t = {first:.6g} s on, in {lost.sum()} rows")
    topology = run.result.topology
    if not all(space.plain for space in topology.manifolds) and t.size:
        points = np.asarray(run.q).reshape(-1, run.q.shape[-1])
        defects = np.asarray(jax.vmap(topology.manifold.defect)(points))
        if np.isfinite(defects).any():
            said.append(f"q is off its manifold by up to {np.nanmax(defects):.2g}")
    return said
