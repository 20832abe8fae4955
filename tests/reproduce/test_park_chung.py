"""The published tables and figures of Park and Chung 2005."""

import io
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import difflie as dl
from difflie.integrators import single_step
from difflie.io.results import save_json
from difflie.reproduce import REPRODUCTIONS
from difflie.reproduce.park_chung import comparison, operations


def test_initial_energy_and_momentum():
    system = comparison.three_spheres()
    q, v = system.neutral(), jnp.array(comparison.AT_REST)
    # sum m |v|^2 / 2 + 4 |w|^2 / 2 of spheres 2 and 3, by hand
    np.testing.assert_allclose(dl.energy(system, q, v)[0], 16.96, rtol=1e-14)
    expected = (33.6, 0.0, 51.2, 0.0, 24.0, 0.0)
    np.testing.assert_allclose(dl.momentum(system, q, v), expected, atol=1e-13)


@pytest.mark.slow
def test_drifts_and_figures(tmp_path):
    # One test, because the workers of a parallel run share no fixture.
    stages = []
    numbers = REPRODUCTIONS["park-chung"].compute(tmp_path / "new", lambda *a: stages.append(a))

    assert len(numbers.rows) == 108
    compared = [r for r in numbers.rows if r.printed >= 1e-8]
    assert len(compared) == 81
    different = [r for r in compared if f"{r.computed:.4E}" != f"{r.printed:.4E}"]
    assert not different
    assert numbers.agreement == comparison.Agreed(compared=81, equal=81)
    for r in numbers.rows:
        # Round-off at 64 bits is some 1e-14 of energies and momenta of about 50; the printed CG4
        # levels off at 3e-12, see the module.
        tolerance = 3e-12 if r.method == "CG4" else 1e-12
        np.testing.assert_allclose(r.computed, r.printed, rtol=5e-5, atol=tolerance)

    save_json(tmp_path / "numbers.json", numbers)
    found = json.loads((tmp_path / "numbers.json").read_text())
    assert list(found) == ["name", "rows", "operations", "agreement"]
    keys = {"table", "quantity", "method", "h", "computed", "printed"}
    assert all(set(r) == keys for r in found["rows"])
    assert [r["computed"] for r in found["rows"]] == [r.computed for r in numbers.rows]
    assert len({(r.table, r.method, r.h) for r in numbers.rows}) == 108

    names = [f"figure_{n}.png" for n in (4, 5, 6, 7, 8)]
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == [*names, "report.html"]
    for name in names:
        assert (tmp_path / "new" / name).read_bytes().startswith(b"\x89PNG")
    assert ("methods", 9, 9) in stages
    assert stages[-1] == ("report", 1, 1)

    text = io.StringIO()
    REPRODUCTIONS["park-chung"].show(numbers, Console(file=text, width=80))
    assert "81 of 81 drifts agree" in re.sub(r"\s+", " ", text.getvalue())


def test_table_5_follows_from_the_printed_table_10():
    rows = [r for r in operations.operation_rows() if r.table == "V"]
    assert len(rows) == 9 * 6 * 2
    assert {r.joints for r in rows} == {2, 20}
    assert all(r.computed == r.printed for r in rows)


def test_table_10_differs_only_where_it_contradicts_itself():
    rows = [r for r in operations.operation_rows() if r.table == "X"]
    assert len(rows) == 81
    different = {(r.method, r.quantity) for r in rows if r.computed != r.printed}
    notes = operations.PRINTED["notes"].items()
    assert different == {(method, quantity) for method, noted in notes for quantity in noted}
    assert {(r.method, r.quantity) for r in rows if r.note} == different


@pytest.mark.parametrize("method", comparison.METHODS)
def test_forward_dynamics_are_counted_as_they_are_evaluated(method):
    """The stages of Table X are the evaluations of the method itself."""
    integrator = operations.lie_method(method)
    evaluations = []

    def field(t, y):
        jax.debug.callback(lambda: evaluations.append(1))
        return y

    manifold = dl.groups.Euclidean(1)
    single_step(integrator, manifold, field, 0.0, jnp.ones(1), 0.1)
    jax.effects_barrier()
    assert len(evaluations) == operations.operations_per_step(integrator)["FDyn"]


@pytest.mark.parametrize(
    ("method", "brackets", "counted", "add", "mult"),
    [
        # By hand from Table X: MK3 without its 2 dexpinv and mvmult(6x6), with 2 brackets of one
        # svmultadd(6) each; and 4 brackets and 4 svmultadd(6) to keep one term more.
        (dl.RKMK3, 1, (7, 2), 334 - 2 * 63 + 2 * (6 + 12), 424 - 2 * 69 + 2 * (6 + 18)),
        (dl.RKMK3, 2, (9, 4), 334 - 2 * 63 + 4 * (6 + 12), 424 - 2 * 69 + 4 * (6 + 18)),
        # The third bracket has the coefficient zero, so that two are all of it.
        (dl.RKMK4, 2, (16, 6), 493 - 3 * 63 + 6 * (6 + 12), 615 - 3 * 69 + 6 * (6 + 18)),
        (dl.RKMK4, 3, (16, 6), 493 - 3 * 63 + 6 * (6 + 12), 615 - 3 * 69 + 6 * (6 + 18)),
    ],
)
def test_operations_of_truncated_series(method, brackets, counted, add, mult):
    counts = operations.operations_per_step(method(brackets=brackets))
    assert (counts["svmultadd(6)"], counts["bracket"]) == counted
    assert counts["dexpinv"] == counts["mvmult(6x6)"] == 0
    costs = operations.elementary_operations(counts, joints=2)
    # Divisions are left to the exponentials, two each.
    assert (costs["add"], costs["mult"], costs["div"]) == (add, mult, 2 * counts["exp"])


def test_single_precision_is_refused():
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(RuntimeError, match="jax_enable_x64"):
            REPRODUCTIONS["park-chung"].compute()
    finally:
        jax.config.update("jax_enable_x64", True)
