"""The worked problems: solved as shipped, and replayed up to their goals."""

import importlib
import sys
from pathlib import Path

import pytest

from difflie import control as dc

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs" / "control").glob("*.toml"))
# Those that compile fast; all of them are run by hand when solvers change.
EXPERIMENTS = [ROOT / "experiments" / f"control_{name}.py" for name in ("cart_pole", "flip")]


@pytest.mark.slow("fourbar_payload", "manipulator", "hop")
@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_files_describe_problems(path):
    """Guards keys, robot files and sizes, without a search."""
    problem, _ = dc.problem_of(dc.read_control(path, allow_code=True))
    assert problem.nu > 0 and problem.steps > 0


@pytest.mark.slow
@pytest.mark.thorough("control_flip")
@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_the_experiments_reach_their_goals(path, tmp_path, monkeypatch):
    """Each ends with an error where a replay, or a machine with wrong parameters, misses."""
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    monkeypatch.setattr(sys, "argv", [path.stem])
    experiment = importlib.import_module(path.stem)
    options = getattr(experiment, "PendulumOptions", experiment.Options)
    experiment.main(options(out=tmp_path))
    assert [*tmp_path.glob("*.png")]
