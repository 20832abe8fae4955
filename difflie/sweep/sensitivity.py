"""On which numbers an output of a sweep depends: Sobol's indices of its variance, by SALib."""

from __future__ import annotations

import dataclasses
import importlib
import json
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..system.installation import extra
from ..system.shown import some
from ..system.validation import format_value, nearest
from ..view.columns import subsample
from .design import Design
from .samples import Drawn, Saltelli, Sobol, described_design

if TYPE_CHECKING:
    import xarray

# Ten harmonics of each number are told from noise.
_LEAST = 200
# More rows hardly make the first-order indices of random designs sharper.
_MOST = 2**13
# Where more is missing, what is left is no sample of the numbers' distributions.
_MISSING = 0.1
_LEVEL = 0.95


class Indices(NamedTuple):
    """Shares of a variance, values (n,), and half the widths of their 95 % intervals (n,).

    Without unit.
    """

    values: NDArray
    intervals: NDArray


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """Sobol's indices of one output: which share of its variance is due to which number.

    names (n,): of the numbers. first: the shares of single numbers. total: these with all their
    interactions; None where the design does not tell them. rows: how many were used; left_out: how
    many were computed without a finite value, or belong to such. why: in a sentence, why there are
    no indices, which are None then; otherwise empty. remark: in a sentence or two, on which numbers
    the output does not depend at all, and whether its indices may be those of rounding; empty where
    there is nothing to say. method: how they were found.
    """

    output: str
    names: tuple[str, ...]
    first: Indices | None = None
    total: Indices | None = None
    method: str = ""
    rows: int = 0
    left_out: int = 0
    why: str = ""
    remark: str = ""

    def __str__(self) -> str:
        """A line for each number with its shares, and what is to be said of them."""
        if self.first is None:
            return self.why
        lines = [f"{self.output} of {self.rows} rows: {self.method}, +- 95 %"]
        kinds = {"alone": self.first, "with interactions": self.total}
        width = max(map(len, self.names), default=0)
        for k, name in enumerate(self.names):
            said = [
                f"{kind} {share.values[k]:.3f} +- {share.intervals[k]:.3f}"
                for kind, share in kinds.items()
                if share is not None
            ]
            lines.append(f"{name:{width}}  {', '.join(said)}")
        return "\n".join([*lines, *filter(None, [self.remark])])


def sensitivity(
    table: xarray.Dataset, output: str, design: Design | None = None, *, seed: int = 0
) -> Sensitivity:
    """Sobol's sensitivity indices of a column of a table that `sweep` returns, by SALib.

    S_i = Var(E(y | x_i)) / Var(y) in first order, 1 - Var(E(y | all x but x_i)) / Var(y) in total.
    Designs drawn by `Saltelli` tell both, other designs that are drawn the first order, by
    RBD-FAST; grids and lists tell none. design: of the table, by default what the table says.
    seed: of the resampling that gives the intervals.

    RBD-FAST sees ten harmonics of each number: of outputs that jump a share is missing, which the
    intervals do not show. Only rows that are done, with a finite value, are used, and at most 8192
    by RBD-FAST, of a `Sobol` sequence half of them, drawn at random. Of a `Saltelli` design all
    rows of one draw are left out where one of them is missing. Where more than a tenth is missing
    there are no indices, as what is left is no sample of the numbers' distributions; pending rows
    are no such loss.

    An output that varies only as rounding may, by less than eps^(2/3) of its size, has indices of
    this noise, which a remark says.

    Raises ValueError for an output that is not there or has several entries, and for a design of
    other numbers; ImportError without the extra `sweep`. Saltelli et al. 2010; Tarantola, Gatelli,
    Mara 2006; Tissot, Prieur 2012.
    """
    if output not in table.data_vars or output == "status":
        raise ValueError(
            f"no output is named {format_value(output)}{nearest(output, map(str, table.data_vars))}"
        )
    if table[output].ndim != 1 or table[output].dtype.kind not in "fiub":
        raise ValueError(f"{output} is no single real number of each row; give one that is")
    names = number_names(table)
    if design is None:
        design = described_design(json.loads(table.attrs["configuration"])["design"])
    elif design.names != names:
        raise ValueError(
            f"the design is of {format_value(design.names)}, the table of {format_value(names)}; "
            "give its own"
        )
    status = np.asarray(table["status"].values)
    y = np.asarray(table[output].values, float)
    good = (status == "done") & np.isfinite(y)
    nothing = Sensitivity(output, names)
    dtype = table[output].dtype
    eps = np.finfo(dtype if dtype.kind == "f" else float).eps
    if fault := _unsuited(design, output, y[good], float(eps)):
        return dataclasses.replace(nothing, why=fault)
    waits, noise = status == "pending", eps ** (2 / 3) * np.abs(y[good]).max()
    if isinstance(design, Saltelli):
        found = _of_saltelli(nothing, y, good, waits, seed)
        idle = _idle(names, y.reshape(-1, len(names) + 2), noise)
    else:
        x = np.stack([np.asarray(table[name].values) for name in names], axis=1)
        found = _of_random(nothing, x, y, good, waits, isinstance(design, Sobol), seed)
        idle = []
    return dataclasses.replace(found, remark=_remark(found, idle, y[good], float(noise)))


def _idle(names: tuple[str, ...], draws: NDArray, noise: float) -> list[str]:
    """The numbers which, changed alone, leave an output as it is in all draws (m, n + 2)."""
    draws = np.where(np.isfinite(draws), draws, np.nan)
    changes = np.abs(draws[:, 1:-1] - draws[:, :1])
    known = np.isfinite(changes)
    still = np.all((changes <= noise) | ~known, axis=0) & known.any(axis=0)
    return [name for name, idle in zip(names, still, strict=True) if idle]


def _remark(found: Sensitivity, idle: list[str], y: NDArray, noise: float) -> str:
    """What one should know of the indices of an output with these finite values."""
    if found.first is None:
        return ""
    spread, said = float(np.ptp(y)), []
    if spread <= noise:
        said.append(
            f"{found.output} varies by {spread / np.abs(y).max():.1g} of its size only, as "
            "rounding may: these are then indices of noise, and it depends on none of the numbers"
        )
    elif idle:
        said.append(f"{found.output} does not depend on {some(idle, 6)} at all")
    known = found.total or found.first
    if not said and np.all(known.values <= np.maximum(known.intervals, 0.01)):
        said.append(f"no index of {found.output} stands out of the noise")
    return "; ".join(said)


def number_names(table: xarray.Dataset) -> tuple[str, ...]:
    """The numbers (n,) that a table of a sweep varies."""
    return tuple(str(name) for name in table.coords if name != "variant")


def _unsuited(design: Design | None, output: str, y: NDArray, eps: float) -> str:
    """Why an output with these finite values, rounded to eps, has no indices; empty if it may."""
    if not isinstance(design, Drawn):
        what = "is not known" if design is None else "is a grid, a list, or a product of designs"
        return (
            f"{output} has no indices: the design {what}, and they are told by numbers that are "
            "all drawn together, best by Saltelli"
        )
    if not y.size:
        return f"{output} has no indices: no row is done with a finite value"
    if np.ptp(y) <= 16 * eps * np.abs(y).max():
        return f"{output} has no indices: it is {y[0]:.6g} in all rows"
    return ""


def _missing(output: str, lost: int, count: int, what: str) -> str:
    """Why so many are too few, or empty."""
    if lost <= _MISSING * count:
        return ""
    return (
        f"{output} has no indices: {lost} of {count} {what} lack a finite value, and the rest is "
        "no sample of the numbers' distributions"
    )


def _of_saltelli(
    nothing: Sensitivity, y: NDArray, good: NDArray, pending: NDArray, seed: int
) -> Sensitivity:
    """First and total indices; n + 2 rows that follow each other belong to one draw."""
    n = len(nothing.names)
    whole, waits = good.reshape(-1, n + 2).all(axis=1), pending.reshape(-1, n + 2).any(axis=1)
    lost = int((~whole & ~waits).sum())
    said = _missing(nothing.output, lost, int((~waits).sum()), f"draws, of {n + 2} rows each,")
    kept = y.reshape(-1, n + 2)[whole]
    if not said and len(kept) < _LEAST // 10:
        said = (
            f"{nothing.output} has no indices: {len(kept)} draws are too few, {_LEAST // 10} or "
            "more are needed"
        )
    if said:
        return dataclasses.replace(nothing, why=said, left_out=lost * (n + 2))
    # Of the intervals, so that they need no more than about 200 megabytes.
    resamples = int(np.clip(4e6 / len(kept), 20, 100))
    with warnings.catch_warnings():
        # A number without influence has constant differences, and its indices are 0.
        warnings.simplefilter("ignore", UserWarning)
        found = _salib("sobol").analyze(
            _problem(nothing.names),
            _standard(kept).ravel(),
            calc_second_order=False,
            num_resamples=resamples,
            conf_level=_LEVEL,
            # SALib takes 0 for none.
            seed=seed + 1,
        )
    return dataclasses.replace(
        nothing,
        first=_indices(found, "S1"),
        total=_indices(found, "ST"),
        method="Sobol's indices by Saltelli's design",
        rows=kept.size,
        left_out=lost * (n + 2),
    )


def _of_random(
    nothing: Sensitivity,
    x: NDArray,
    y: NDArray,
    good: NDArray,
    pending: NDArray,
    sequence: bool,
    seed: int,
) -> Sensitivity:
    """First-order indices of rows x (m, n) whose numbers are independent.

    sequence: whether they are of a Sobol sequence.
    """
    lost, rows = int((~good & ~pending).sum()), np.flatnonzero(good)
    # Neighbours of a Sobol sequence in one number lie, by turns, in different parts of the range of
    # another, as do the two halves that the method makes of them: half of the rows have no order.
    most = min(_MOST, len(rows) // 2) if sequence else _MOST
    used = subsample(rows, most)
    said = _missing(nothing.output, lost, int((~pending).sum()), "rows")
    if not said and len(used) < _LEAST:
        least = 2 * _LEAST if sequence else _LEAST
        said = (
            f"{nothing.output} has no indices: {len(rows)} rows are too few, {least} or more are "
            "needed"
        )
    if said:
        return dataclasses.replace(nothing, why=said, left_out=lost)
    found = _salib("rbd_fast").analyze(
        _problem(nothing.names),
        x[used],
        _standard(y[used]),
        num_resamples=50,
        conf_level=_LEVEL,
        seed=seed,
    )
    return dataclasses.replace(
        nothing,
        first=_indices(found, "S1"),
        method="first-order indices by RBD-FAST",
        rows=len(used),
        left_out=lost,
    )


def _indices(found: Mapping[str, Any], key: str) -> Indices:
    """Those of one order in what SALib found."""
    return Indices(np.array(found[key], float), np.array(found[f"{key}_conf"], float))


def _salib(method: str) -> Any:
    try:
        return importlib.import_module(f"SALib.analyze.{method}")
    except ImportError:
        raise ImportError(f"for sensitivity indices SALib is needed; {extra('sweep')}") from None


def _problem(names: tuple[str, ...]) -> dict[str, Any]:
    """What SALib wants to know of the numbers."""
    return {"num_vars": len(names), "names": list(names), "bounds": [[0.0, 1.0]] * len(names)}


def _standard(y: NDArray) -> NDArray:
    """Values (...) with mean 0 and variance 1, also where their squares are not finite."""
    y = y / np.abs(y).max()
    return (y - y.mean()) / y.std()
