"""A published result: its code, imported when it is asked for, and the files that come of it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
from rich.console import Console

from ..io.results import Results
from .papers import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..view.report import Report


class Reproduction(NamedTuple):
    """A published result by its name on the command line."""

    name: str

    @property
    def paper(self) -> ModuleType:
        """The module with the functions compute and sections."""
        return importlib.import_module(f".{self.name.replace('-', '_')}", __package__)

    def compute(
        self, out: Path | None = None, progress: Progress = lambda *_: None, **options: Any
    ) -> Results:
        """The results, whose fields JSON can hold.

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
            from ..view.report_page import write_html

            progress("report", 0, 1)
            write_html(self.report(results, figures()), out)
            progress("report", 1, 1)
        return results

    def report(
        self, results: Results, figures: Mapping[str, Figure] = MappingProxyType({})
    ) -> Report:
        """The report of what `compute` gives; figures: by file name."""
        from .report import paper_report

        return paper_report(self.name, self.paper, results, figures)

    def show(self, results: Results, console: Console | None = None) -> None:
        """Prints what `compute` gives."""
        from ..view.report_terminal import print_report

        print_report(console or Console(), self.report(results))
