"""Tables V and X: what one step costs, counted from the coefficients of a method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...integrators import CommutatorFree, CrouchGrossman, RungeKuttaMuntheKaas, by_name
from ...integrators.munthe_kaas import dexp_inv_coefficients
from ...io.results import Results
from ..papers import printed

PRINTED = printed(__file__)

JOINTS = (2, 20)


def lie_method(name: str) -> Any:
    """The method that the paper calls `name`; MK stands for the package's RKMK."""
    return by_name(name.replace("MK", "RKMK"))


def operations_per_step(
    method: CrouchGrossman | CommutatorFree | RungeKuttaMuntheKaas,
) -> dict[str, int]:
    """The columns of Table X for one step, counted from the coefficients of a method by one rule.

    Coefficients that are zero cost nothing, and an exponential is computed once: a product that
    begins with the factors of an earlier one continues from that pose.
    FDyn: one forward dynamics for each stage. svmultadd(n), a vector times a scalar plus a vector:
    one for each coefficient of the stages and of the update, in V (n = 6) and in each of q and its
    rate (n = N; a commutator-free method uses the sums of its coefficients), and one for each
    further term of an exponent. svmult(6): the first term of each exponent. exp and hmmult
    (homogeneous matrices): one for each exponential. dexpinv and mvmult(6x6): one for each stage of
    MK whose exponent is not zero. add: the times t + c h of the stages and of the end.

    Where the series of dexp^-1 is cut off, these two are replaced by the brackets of se(3), one
    column more, and one svmultadd(6) for each coefficient of the series after the first.
    """
    tableau = method.tableau
    rows = [*tableau.a, tableau.b]
    inverses = brackets = further_terms = 0
    if isinstance(method, CommutatorFree):
        products = [*method.tableau.alpha, method.tableau.beta]
    elif isinstance(method, CrouchGrossman):
        products = [[(0.0,) * j + (x,) for j, x in enumerate(row) if x] for row in rows]
    else:
        products = [[row] for row in rows if any(row)]
        inverses = len(products) - 1
        if method.brackets is not None:
            series = dexp_inv_coefficients(method.brackets)[1:]
            brackets, further_terms = inverses * len(series), inverses * sum(map(bool, series))
            inverses = 0
    partial_products = {tuple(p[: n + 1]) for p in products for n in range(len(p))}
    exponentials = len(partial_products)
    terms = sum(x != 0 for p in partial_products for x in p[-1])
    coefficients = sum(x != 0 for row in rows for x in row)
    return {
        "FDyn": tableau.stages,
        "svmultadd(6)": coefficients + terms - exponentials + further_terms,
        "svmultadd(N)": 2 * coefficients,
        **dict.fromkeys(("svmult(6)", "exp", "hmmult"), exponentials),
        "add": sum(c != 0 for c in tableau.c) + 1,
        **dict.fromkeys(("dexpinv", "mvmult(6x6)"), inverses),
        "bracket": brackets,
    }


def elementary_operations(counts: dict[str, int], joints: int) -> dict[str, int]:
    """The columns of Table V from those of Table X, with the costs of the paper's Appendix I."""
    times = counts | {"svmultadd(N)": joints * counts["svmultadd(N)"]}
    return {
        kind: sum(times.get(name, 0) * cost.get(kind, 0) for name, cost in PRINTED["costs"].items())
        for kind in ("FDyn", "add", "mult", "div", "sqrt", "trig")
    }


@dataclass(frozen=True, kw_only=True)
class Count(Results):
    """A number of operations of Table V, which is of so many joints, or of Table X.

    note: what differs, where the rule gives another number than the printed Table X.
    """

    table: str
    quantity: str
    method: str
    computed: int
    printed: int
    joints: int | None = None
    note: str | None = None


def operation_rows() -> list[Count]:
    """Table V from the printed Table X, and Table X from the coefficients, method by method."""
    rows: list[Count] = []
    for method, costs in PRINTED["V"].items():
        published = dict(zip(PRINTED["X"]["columns"], PRINTED["X"][method], strict=True))
        counts = operations_per_step(lie_method(method))
        for quantity, values in costs.items():
            for joints, value in zip(JOINTS, values, strict=True):
                computed = elementary_operations(published, joints)[quantity]
                own = elementary_operations(counts, joints)[quantity]
                rows.append(
                    Count(
                        table="V",
                        quantity=quantity,
                        method=method,
                        computed=computed,
                        printed=value,
                        joints=joints,
                        note=f"{own} with the computed Table X" if own != computed else None,
                    )
                )
        for quantity, value in published.items():
            own = counts[quantity]
            note = PRINTED["notes"][method][quantity] if own != value else None
            of = {"table": "X", "quantity": quantity, "method": method}
            rows.append(Count(**of, computed=own, printed=value, note=note))
    return rows
