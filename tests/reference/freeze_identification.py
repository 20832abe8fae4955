"""Freezes what the configurations that identify find: values, errors, R2 and verdicts, as JSON.

    python tests/reference/freeze_identification.py --data DATA           # all, some minutes
    python tests/reference/freeze_identification.py --data DATA --name tx40

DATA holds the measured logs that the configurations name. Each runs as by `difflie identify`, in a
program of its own. test_frozen_identification.py compares.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tyro

ROOT = Path(__file__).parents[2]
FROZEN = Path(__file__).with_name("identification")
# Each with the folder of its data.
CONFIGURATIONS = {
    **{f"arms/{arm}": arm for arm in ("gen3", "panda", "tx40", "ur10")},
    "simple_pendulum": "dfki_simple_pendulum",
    "double_pendulum": "dfki_double_pendulum",
    "passive_pendulum": "passive_pendulums",
    "passive_double_pendulum": "passive_pendulums",
    "go2": "go2",
    "tossed_cube": "tossed_cube",
}
_SENTENCES = "verdict", "notes", "doubts", "advice"
_ROWS = {
    "joints": ("r2", "rmse"),
    "training": ("torque_rmse", "torque_r2", "position_rmse", "position_r2"),
    "validation": ("torque_rmse", "torque_r2", "position_rmse", "position_r2"),
    "sensors": ("rmse", "simulated_rmse"),
}


@dataclasses.dataclass
class Options:
    """Freeze the results of identifications."""

    data: Path
    """the folder of the measured logs"""
    name: str | None = None
    """of one configuration, such as tx40; all without it"""


def identified(configuration: str, data: Path) -> dict[str, Any]:
    """The results of a configuration, as `difflie identify` writes them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        file = ROOT / "configs" / f"{configuration}.toml"
        arguments = "identify", file, "--data", data, "--json", path
        command = sys.executable, "-m", "difflie.cli", *map(str, arguments)
        done = subprocess.run(command, cwd=ROOT, env=_plain(), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{configuration} failed:\n{done.stderr}")
        return json.loads(path.read_text())


def _plain() -> dict[str, str]:
    """The environment without what tests change of compilers, as rounding decides close choices."""
    changed = "JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS"
    return {name: value for name, value in os.environ.items() if name not in changed}


def frozen(results: dict[str, Any]) -> dict[str, Any]:
    """What is kept of results: sentences, numbers with their errors, and the scores of joints."""
    found: dict[str, Any] = {
        key: results[key] for key in _SENTENCES if results.get(key) is not None
    }
    found |= {key: results[key] for key in ("well_predicted", "converged")}
    found["parameters"] = {
        name: {key: p[key] for key in ("value", "std_error", "unit", "at_bound")}
        for name, p in results["parameters"].items()
    }
    if results.get("fit"):
        found["fit"] = {key: results["fit"][key] for key in ("cost", "variance", "notes")}
    for table, keys in _ROWS.items():
        found[table] = [
            {k: row[k] for k in ("run", "use", "joint", "sensor", *keys) if row.get(k) is not None}
            for row in results.get(table, ())
        ]
    return found


def main(options: Options) -> None:
    FROZEN.mkdir(exist_ok=True)
    for configuration in CONFIGURATIONS:
        name = Path(configuration).name
        if options.name in (None, name):
            begin = time.perf_counter()
            found = frozen(identified(configuration, options.data))
            (FROZEN / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
            print(f"{name}: {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main(tyro.cli(Options))
