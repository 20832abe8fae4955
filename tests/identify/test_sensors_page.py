"""The page on sensors: a user's own sensor takes ten lines, and the code runs as printed."""

import re
from pathlib import Path

import numpy as np

PAGE = (Path(__file__).parent.parent.parent / "docs" / "sensors.md").read_text()


def test_a_sensor_of_ones_own(tmp_path, monkeypatch, capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    own = block[block.index("class WireLength") : block.index("\n\n\narm =")]
    assert len([line for line in own.splitlines() if line]) <= 10
    monkeypatch.chdir(tmp_path)  # as after an installation, outside of a checkout
    names = {"__name__": "__main__"}
    exec(compile(block, "docs/sensors.md", "exec"), names)
    found = names["found"]
    assert found.converged
    errors = np.abs(found.values - [1.1, -0.2, 0.1, 0.1]) / found.standard_errors
    assert (errors < 4).all()
    assert "wire/anchor" in capsys.readouterr().out
