"""Order conditions of the tableaux, and the checks they make of themselves."""

import dataclasses
import functools
import math
from fractions import Fraction

import numpy as np
import pytest

from difflie.integrators import (
    CG3,
    METHODS,
    ButcherTableau,
    CommutatorFreeTableau,
    CrouchGrossman,
    SymmetricTableau,
    tableaux,
)

RUNGE_KUTTA = {
    "HEUN": 2,
    "RK3": 3,
    "RK4": 4,
    "DORMAND_PRINCE5": 5,
    "BUTCHER6": 6,
    "COOPER_VERNER8": 8,
    "CG3": 3,
    "CG4": 4,
    "CF2": 2,
    "CF3": 3,
    "CF4": 4,
    "GAUSS2": 2,
    "GAUSS4": 4,
    "GAUSS6": 6,
}


@functools.cache
def rooted_trees(n):
    """All rooted trees of n vertices; a tree is the sorted tuple of the trees at its root."""
    if n == 1:
        return ((),)
    return tuple(sorted({forest for forest in forests(n - 1)}))


@functools.cache
def forests(n):
    """All multisets of trees with n vertices in total."""
    if n == 0:
        return ((),)
    return tuple(
        {
            tuple(sorted((tree, *rest)))
            for size in range(1, n + 1)
            for tree in rooted_trees(size)
            for rest in forests(n - size)
        }
    )


def size(tree):
    return 1 + sum(size(t) for t in tree)


def density(tree):
    return size(tree) * math.prod(density(t) for t in tree)


def defect(tableau, tree):
    """b . Phi(tree) - 1/gamma(tree); Hairer, Norsett and Wanner 1993, theorem II.2.13."""
    s = len(tableau.b)
    a = np.array([row + (0.0,) * (s - len(row)) for row in tableau.a])

    def weights(t):
        return math.prod((a @ weights(u) for u in t), start=np.ones(s))

    return np.array(tableau.b) @ weights(tree) - 1.0 / density(tree)


def test_number_of_rooted_trees():
    assert [len(rooted_trees(n)) for n in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]


@pytest.mark.parametrize("name", RUNGE_KUTTA)
def test_order_conditions(name):
    tableau, order = getattr(tableaux, name), RUNGE_KUTTA[name]
    assert tableau.order == order
    for n in range(1, order + 1):
        assert max(abs(defect(tableau, tree)) for tree in rooted_trees(n)) < 1e-14
    assert max(abs(defect(tableau, tree)) for tree in rooted_trees(order + 1)) > 1e-7


def test_stages():
    stages = {m.name: m.tableau.stages for m in METHODS if hasattr(m, "tableau")}
    assert stages == {
        "CG2": 2,
        "CG3": 3,
        "CG4": 5,
        "CF2": 2,
        "CF3": 3,
        "CF4": 4,
        "RKMK2": 2,
        "RKMK3": 3,
        "RKMK4": 4,
        "RKMK5": 6,
        "RKMK6": 7,
        "RKMK8": 11,
        "BogackiShampine32": 4,
        "RungeKutta43": 5,
        "DormandPrince54": 7,
        "ImplicitMidpoint": 1,
        "GaussLegendre4": 2,
        "GaussLegendre6": 3,
    }


def test_commutator_free_tableaux_collapse_to_runge_kutta():
    for free, plain in (
        (tableaux.CF2, tableaux.HEUN),
        (tableaux.CF3, tableaux.RK3),
        (tableaux.CF4, tableaux.RK4),
    ):
        for row, wanted in zip(
            (*free.a, free.b, free.c), (*plain.a, plain.b, plain.c), strict=True
        ):
            np.testing.assert_allclose(row, wanted, atol=1e-15)


def test_crouch_grossman_is_commutator_free_with_one_rate_in_each_exponent():
    """A method of one's own is made of a Butcher tableau, and evaluates no more exponentials."""
    method = CrouchGrossman(tableaux.CG3)
    a, b = tableaux.CG3.a, tableaux.CG3.b
    assert method.tableau.alpha == ((), ((a[1][0],),), ((a[2][0],), (0.0, a[2][1])))
    assert method.tableau.beta == ((b[0],), (0.0, b[1]), (0.0, 0.0, b[2]))
    assert method.tableau == CG3().tableau and method.order == 3 and method.stages == 3
    np.testing.assert_allclose(method.tableau.c, tableaux.CG3.c, rtol=0, atol=1e-16)


def test_the_printed_fractions_of_cg4_are_refused():
    b = (407 / 2969, -135 / 7349, 543 / 734, -267 / 1400, 696 / 2095)
    with pytest.raises(ValueError, match=r"the weights b adds up to 1\.00000064"):
        dataclasses.replace(tableaux.CG4, b=b)


def test_butcher_tableau_refuses_what_is_not_a_method():
    with pytest.raises(
        ValueError, match=r"stage 1 \(from 0\) has 2 coefficients.*lower-triangular"
    ):
        ButcherTableau(a=((), (0.5, 0.5)), b=(0.5, 0.5), c=(0, 1), order=2)
    with pytest.raises(
        ValueError, match=r"row 1 of a adds up to 0\.9 but must give 1\.0, its node"
    ):
        ButcherTableau(a=((), (0.9,)), b=(0.5, 0.5), c=(0, 1), order=2)
    with pytest.raises(ValueError, match=r"weights b adds up to 1\.1"):
        ButcherTableau(a=((), (1,)), b=(0.5, 0.6), c=(0, 1), order=2)
    with pytest.raises(ValueError, match="adds up to nan"):
        ButcherTableau(a=((), (1,)), b=(0.5, float("nan")), c=(0, 1), order=2)
    with pytest.raises(ValueError, match="a has 1 rows, b 2 weights and c 2 nodes"):
        ButcherTableau(a=((),), b=(0.5, 0.5), c=(0, 1), order=2)


def test_symmetric_tableau_refuses_what_is_not_a_method():
    with pytest.raises(ValueError, match=r"a has rows of \[0, 1\] coefficients, b 2 weights"):
        SymmetricTableau(a=((), (1,)), b=(0.5, 0.5), c=(0, 1), order=2)
    # Radau IIA: a method, but not its own adjoint.
    with pytest.raises(ValueError, match=r"a\[0\]\[0\] and a\[1\]\[1\] adds up to .* b\[0\]"):
        SymmetricTableau(
            a=((5 / 12, -1 / 12), (3 / 4, 1 / 4)), b=(3 / 4, 1 / 4), c=(1 / 3, 1), order=3
        )


def test_commutator_free_tableau_refuses_what_is_not_a_method():
    with pytest.raises(ValueError, match=r"stage 1 \(from 0\) has 2 coefficients"):
        CommutatorFreeTableau(alpha=((), ((0.5, 0.5),)), beta=((0.5, 0.5),), order=2)
    with pytest.raises(ValueError, match=r"weights b adds up to 1\.5"):
        CommutatorFreeTableau(alpha=((), ((1,),)), beta=((0.5, 0.5), (0, 0.5)), order=2)
    with pytest.raises(ValueError, match="a row of beta has 1 coefficients for 2 stages"):
        CommutatorFreeTableau(alpha=((), ((1,),)), beta=((0.5, 0.5), (0.0,)), order=2)


def test_numbers_of_any_kind_become_floats():
    half = Fraction(1, 2)
    heun = ButcherTableau(a=[[], [np.float64(1)]], b=[half, half], c=np.array([0, 1]), order=2)
    assert heun == tableaux.HEUN and hash(heun) == hash(tableaux.HEUN)
    assert all(type(x) is float for row in (*heun.a, heun.b, heun.c) for x in row)


def test_exponents_are_kept_in_one_form():
    assert tableaux.CF3.alpha[1] == tableaux.CF3.beta[:1]  # so y_2 is shared
    assert tableaux.CF4.alpha[1] == tableaux.CF4.alpha[3][:1]
    padded = CommutatorFreeTableau(
        alpha=((), ((1,), (0,))), beta=((0.5, 0), (0, 0), (0, 0.5)), order=2
    )
    assert padded == tableaux.CF2
