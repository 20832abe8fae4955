"""A published result: its code, imported when it is asked for, and the files that come of it."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp
from rich.console import Console

from .runs import Progress


class Reproduction(NamedTuple):
    """A published result by its name on the command line."""

    name: str

    @property
    def paper(self) -> ModuleType:
        """The module with the functions compute and show."""
        return importlib.import_module(f".{self.name.replace('-', '_')}", __package__)

    def compute(
        self, out: Path | None = None, progress: Progress = lambda *_: None, **options: Any
    ) -> dict[str, Any]:
        """The results as a dictionary that JSON can hold, "name" first.

        Writes `report.html` with its figures, and these as PNG, to the folder `out` where it is
        given. progress(stage, done, total) is called as the work goes on. options: those of the
        paper's compute. RuntimeError without 64-bit floats.
        """
        if jnp.zeros(()).dtype != jnp.float64:
            raise RuntimeError(
                f"{self.name} compares errors near rounding and needs 64-bit floats; call "
                'jax.config.update("jax_enable_x64", True) first'
            )
        results, figures = self.paper.compute(progress, **options)
        if out is not None:
            # Here, since matplotlib takes long to import.
            from .page import write_report

            progress("report", 0, 1)
            write_report(out, self.name, self.paper, results, figures())
            progress("report", 1, 1)
        return {"name": self.name, **results}

    def show(self, results: dict[str, Any], console: Console | None = None) -> None:
        """Prints what `compute` gives."""
        self.paper.show(results, console or Console())
