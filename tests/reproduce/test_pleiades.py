"""The Pleiades problem against its published end."""

import io

import pytest
from rich.console import Console

from difflie.reproduce import REPRODUCTIONS


@pytest.mark.slow
def test_the_stars_end_where_they_are_published(tmp_path):
    """Guards a force of one's own between many bodies, and steps with tolerances near rounding."""
    results = REPRODUCTIONS["pleiades"].compute(tmp_path)
    assert len(results.rows) == 28
    for r in results.rows:
        assert r.computed == pytest.approx(r.printed, abs=1e-9)
    assert (tmp_path / "pleiades.png").read_bytes().startswith(b"\x89PNG")
    text = io.StringIO()
    REPRODUCTIONS["pleiades"].show(results, Console(file=text, width=80))
    assert text.getvalue().count("-3.943437586") == 2
