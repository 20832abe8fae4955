"""`difflie identify` for arms: files without [[parameter]]."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_identify import call

import difflie as dl
from difflie.cli.arm import run_arm
from difflie.io.study import read_study
from difflie.io.tables import ConfigError

ROOT = Path(__file__).parent.parent.parent
MEASURED = ROOT.parent / "shared" / "data"
TEXT = """
[system]
file = "{urdf}"
[data]
columns.q = ["q1", "q2"]
columns.tau = ["tau1", "tau2"]
[[run]]
file = "run.csv"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A double pendulum with two motors, 10 s at 200 Hz, with noise."""
    path = tmp_path_factory.mktemp("arm")
    system = dl.load(ROOT / "configs" / "double_pendulum.urdf")
    t = np.arange(0, 10, 0.005)
    part = 2 * np.pi * np.outer(t, (0.3, 0.5))
    q = np.sin(part) * (1.0, 0.7)
    v = np.cos(part) * (1.0, 0.7) * 2 * np.pi * (0.3, 0.5) if False else np.gradient(q, 0.005, axis=0)
    a = np.gradient(v, 0.005, axis=0)
    tau = np.array([np.asarray(dl.rnea(system, *row)) for row in zip(q[::20], v[::20], a[::20])])
    tau = np.stack([np.interp(t, t[::20], column) for column in tau.T], axis=1)
    tau = tau + 0.3 * np.tanh(v / 0.05) + 0.02 * np.random.default_rng(0).normal(size=q.shape)
    rows = np.column_stack((t, q, tau))
    np.savetxt(path / "run.csv", rows, delimiter=",", header="t,q1,q2,tau1,tau2", comments="")
    urdf = ROOT / "configs" / "double_pendulum.urdf"
    (path / "arm.toml").write_text(TEXT.format(urdf=urdf))
    return path
