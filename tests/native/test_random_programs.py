"""Random programs natively: values, batches and derivatives as XLA has them, NaN included."""

import jax
import numpy as np
import pytest
from random_programs import RandomProgram, kinds

QUICK, SLOW, TOGETHER = 60, 200, 6


def wrong(found, wanted, tolerance):
    """The names of what differs, each with the number of the operation."""
    names = []
    for name, of_xla in wanted.items():
        leaves = zip(jax.tree.leaves(found[name]), jax.tree.leaves(of_xla), strict=True)
        for i, (x, y) in enumerate(leaves):
            if not np.allclose(x, y, tolerance, tolerance, equal_nan=True):
                names.append((name, i))
    return names


def check(seeds, everything):
    """Compares programs, each in one precision; with one kind of derivatives unless everything."""
    programs = [RandomProgram(seed) for seed in seeds]
    for program, (found, wanted) in zip(programs, compared(programs, everything), strict=True):
        tolerance = 1e-9 if program.dtype == np.float64 else 2e-3
        assert not wrong(found, wanted, tolerance), str(program)


def compared(programs, everything):
    """What native code and XLA make of programs, compiled as two programs."""
    made = []
    for natively in (True, False):
        run = jax.jit(
            lambda given, n=natively: [
                p.computed(n, everything, *x) for p, x in zip(programs, given, strict=True)
            ]
        )
        made.append(run([(p.args, p.changes) for p in programs]))
    return zip(*made, strict=True)


def test_there_are_many_kinds_of_operations():
    assert len(kinds(True)) >= 250


@pytest.mark.slow("18", "48", "6", "12", "30", "36", "42", "54", "0")
@pytest.mark.parametrize("first", range(0, QUICK, TOGETHER))
def test_programs_do_what_xla_does(first):
    check(range(first, first + TOGETHER), False)


@pytest.mark.slow
@pytest.mark.thorough("[1][0-46-9]?", "2*")
@pytest.mark.parametrize("first", range(QUICK, QUICK + SLOW, TOGETHER))
def test_more_programs_with_all_derivatives(first):
    check(range(first, min(first + TOGETHER, QUICK + SLOW)), True)
