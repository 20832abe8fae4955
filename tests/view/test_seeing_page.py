"""The code of docs/seeing.md runs as printed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/seeing.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=["picture", "camera"])
def test_code_runs_as_printed(block, tmp_path, monkeypatch, capsys):
    """The picture and its animation are written; the camera's pose is found."""
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/seeing.md", "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out.split()
    if "write_picture" in block:
        assert (tmp_path / "difflie-out/arm.gif").stat().st_size > 10_000
    else:
        assert float(said[-1]) < 1e-12
