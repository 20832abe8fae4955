"""`difflie identify` with a measured quadruped, whose joints follow commanded positions."""

import json
from pathlib import Path

import pytest
from test_identify import call

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT.parent / "shared" / "data"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (DATA / "go2").is_dir(), reason=f"{DATA / 'go2'} is absent"),
]


def test_motions_that_were_not_fitted_are_predicted(tmp_path):
    """Guards position servos on a robot of an MJCF file that is held: errors over 3.5 s."""
    config = ROOT / "configs" / "go2.toml"
    assert call("identify", config, "--data", DATA, "--json", tmp_path / "go2.json") == 0
    results = json.loads((tmp_path / "go2.json").read_text())
    errors = sorted(row["position_rmse"] for row in results["validation"])
    assert results["converged"]
    assert len(errors) == 12 and errors[-2] < 0.01 and errors[-1] < 0.02
