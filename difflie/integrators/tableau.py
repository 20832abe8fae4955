"""Tableaux: the coefficients of a method, as data that checks itself.

Rows of explicit methods are ragged: row i of `a` has the i coefficients that multiply the rates of
the stages before it (i = 0, 1, ...), so a tableau is explicit by its shape. Rows of an implicit
tableau are full.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

_TOLERANCE = 1e-14


@dataclasses.dataclass(frozen=True)
class _RungeKuttaTableau(abc.ABC):
    """Common to explicit and implicit tableaux of s stages."""

    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    c: tuple[float, ...]
    order: int

    def __post_init__(self):
        _set(self, a=tuple(_floats(row) for row in self.a), b=_floats(self.b), c=_floats(self.c))
        if len(self.a) != self.stages or len(self.c) != self.stages:
            raise ValueError(
                f"a has {len(self.a)} rows, b {self.stages} weights and c {len(self.c)} nodes; "
                "each must have one entry for each stage"
            )
        for i, (row, node) in enumerate(zip(self.a, self.c, strict=True)):
            self._check_length(i, row)
            _check_sum(f"row {i} of a", row, node, "its node in c")
        _check_sum("the weights b", self.b, 1.0, "the whole step")

    @property
    def stages(self) -> int:
        """s."""
        return len(self.b)

    @property
    def stability(self) -> tuple[float, float] | None:
        """As `Method.stability`."""
        return None

    @abc.abstractmethod
    def _check_length(self, i: int, row: tuple[float, ...]) -> None:
        """Raises ValueError for a row of a with more or fewer coefficients than stage i has."""


@dataclasses.dataclass(frozen=True)
class ButcherTableau(_RungeKuttaTableau):
    """An explicit Runge-Kutta method of s stages.

    a: row i (i,) holds the coefficients of stage i; b (s,), the weights; c (s,), the nodes, with
    c_i = sum_j a_ij and sum_i b_i = 1, all without unit. order: that of the method that the tableau
    is meant for. Numbers of any kind become Python floats. Raises ValueError for a tableau
    that breaks these rules.
    """

    @functools.cached_property
    def stability(self) -> tuple[float, float]:
        """Where |R(z)| exceeds 1 on the negative real axis, and 1.1 on the imaginary one.

        R(z) = 1 + sum_k z^k b a^(k-1) 1 multiplies y in a step of dy/dt = z y / h. Methods of low
        order let what swings grow a little at any step.
        """
        a = np.array([[*row, *[0.0] * (self.stages - len(row))] for row in self.a])
        x, powers = np.linspace(0, 60, 6001), [np.ones(self.stages)]
        for _ in range(self.stages - 1):
            powers.append(a @ powers[-1])
        growth = np.polynomial.Polynomial([1.0, *(np.dot(self.b, p) for p in powers)])

        def first(z: np.ndarray, most: float) -> float:
            beyond = np.abs(growth(z)) > most
            return float(x[np.argmax(beyond) - 1]) if beyond.any() else math.inf

        return first(-x, 1 + 1e-9), first(1j * x, 1.1)

    def _check_length(self, i: int, row: tuple[float, ...]) -> None:
        _check_explicit(i, row)


@dataclasses.dataclass(frozen=True)
class EmbeddedTableau(ButcherTableau):
    """An explicit Runge-Kutta method with a second one on the same stages, to estimate its error.

    b_hat (s,): the weights of the companion, of order order_hat; the step goes on with b. Other
    arguments as of `ButcherTableau`.
    """

    b_hat: tuple[float, ...]
    order_hat: int

    def __post_init__(self):
        super().__post_init__()
        _set(self, b_hat=_floats(self.b_hat))
        if len(self.b_hat) != self.stages:
            raise ValueError(
                f"b_hat has {len(self.b_hat)} weights for {self.stages} stages; give one for each"
            )
        _check_sum("the weights b_hat", self.b_hat, 1.0, "the whole step")


@dataclasses.dataclass(frozen=True)
class SymmetricTableau(_RungeKuttaTableau):
    """An implicit Runge-Kutta method of s stages that is its own adjoint.

    a (s, s), b (s,), c (s,) and order as of `ButcherTableau`, with full rows. Self-adjoint:
    a_s+1-i,s+1-j + a_ij = b_j, and b and c - 1/2 in reverse order are b and 1/2 - c. Raises
    ValueError for a tableau that breaks these rules.
    """

    def __post_init__(self):
        super().__post_init__()
        for i, (row, mirrored) in enumerate(zip(self.a, reversed(self.a), strict=True)):
            for j, pair in enumerate(zip(row, reversed(mirrored), strict=True)):
                what = f"a[{i}][{j}] and a[{self.stages - 1 - i}][{self.stages - 1 - j}]"
                _check_sum(what, pair, self.b[j], f"b[{j}], for the method to be symmetric")

    def _check_length(self, i: int, row: tuple[float, ...]) -> None:
        if len(row) != self.stages:
            raise ValueError(
                f"a has rows of {[len(row) for row in self.a]} coefficients, b {self.stages} "
                f"weights and c {len(self.c)} nodes; give one coefficient for each pair of stages"
            )


@dataclasses.dataclass(frozen=True)
class CommutatorFreeTableau:
    """A commutator-free method of s stages.

    alpha: entry i holds the exponents of stage i; beta: those of the update, in the order in which
    they are applied; an exponent is a row of coefficients of the rates, (i,) for stage i and (s,)
    for the update, without unit. Rows are kept without their trailing zeros, so that equal
    exponentials compare equal, and empty exponents are dropped. order: that of the method.
    collapsed is the Runge-Kutta method that remains where exponentials commute: the sums over the
    exponents. Its nodes are those of the method.
    """

    alpha: tuple[tuple[tuple[float, ...], ...], ...]
    beta: tuple[tuple[float, ...], ...]
    order: int
    collapsed: ButcherTableau = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self):
        for i, rows in enumerate(self.alpha):
            for row in rows:
                _check_explicit(i, row)
        s = len(self.alpha)
        for row in self.beta:
            if len(row) != s:
                raise ValueError(
                    f"a row of beta has {len(row)} coefficients for {s} stages; give one for each"
                )
        a = tuple(_column_sums(rows, i) for i, rows in enumerate(self.alpha))
        c = tuple(math.fsum(row) for row in a)
        _set(
            self,
            alpha=tuple(_trimmed(rows) for rows in self.alpha),
            beta=_trimmed(self.beta),
            collapsed=ButcherTableau(a, _column_sums(self.beta, s), c, self.order),
        )

    @staticmethod
    def of_products(tableau: ButcherTableau) -> CommutatorFreeTableau:
        """Each row as a product of exponentials of one rate each, as of Crouch and Grossman.

        exp(h a_i1 k_1) exp(h a_i2 k_2) ... for stage i, and likewise with the weights.
        """

        def single(row: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
            return tuple(
                tuple(x if i == j else 0.0 for i in range(len(row))) for j, x in enumerate(row)
            )

        return CommutatorFreeTableau(
            tuple(map(single, tableau.a)), single(tableau.b), tableau.order
        )

    @property
    def a(self) -> tuple[tuple[float, ...], ...]:
        """sum_nu alpha_ij^[nu], ragged."""
        return self.collapsed.a

    @property
    def b(self) -> tuple[float, ...]:
        """sum_nu beta_j^[nu]."""
        return self.collapsed.b

    @property
    def c(self) -> tuple[float, ...]:
        """The nodes c_i = sum_j a_ij."""
        return self.collapsed.c

    @property
    def stability(self) -> tuple[float, float]:
        """As `Method.stability`."""
        return self.collapsed.stability

    @property
    def stages(self) -> int:
        """s."""
        return len(self.alpha)


def _set(tableau: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(tableau, name, value)


def _floats(row: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(x) for x in row)


def _column_sums(rows: Sequence[Sequence[float]], size: int) -> tuple[float, ...]:
    return tuple(math.fsum(float(row[j]) for row in rows) for j in range(size))


def _trimmed(rows: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    kept = []
    for row in rows:
        end = max((j + 1 for j, x in enumerate(row) if x != 0), default=0)
        if end:
            kept.append(_floats(row[:end]))
    return tuple(kept)


def _check_explicit(i: int, row: Sequence[float]) -> None:
    if len(row) != i:
        raise ValueError(
            f"stage {i} (from 0) has {len(row)} coefficients; an explicit method gives it {i}, one "
            "for each stage before it: write the rows strictly lower-triangular, without the zeros "
            "on and above the diagonal"
        )


def _check_sum(what: str, row: Sequence[float], wanted: float, meaning: str) -> None:
    total = math.fsum(row)
    if not abs(total - wanted) <= _TOLERANCE:
        raise ValueError(f"{what} adds up to {total!r} but must give {wanted!r}, {meaning}")
