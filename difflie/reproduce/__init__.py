"""Published results, recomputed: a folder or a file for each paper, and what all of them share.

A paper is a module with two functions, called by `Reproduction`:

    compute(progress, **options) -> (results, figures)
    sections(results) -> list[Section]

results is a dataclass of `io.results.Results`, figures() draws the pictures: a dictionary of
matplotlib figures by file name, asked for only where they are to be saved. sections are the tables
of the report (`view.report`), on its page and in the terminal. A paper may have a third one,

    agreements(results) -> list[Agreement]

which compares computed and published numbers; without it a report says that none were compared.

`papers.each` runs the parts of the work and tells how far it is, `papers.printed` reads numbers
from the `printed.toml` beside the code.
A paper is listed here by its name on the command line, with "-" for "_".
"""

from __future__ import annotations

from .reproduction import Reproduction

REPRODUCTIONS = {
    name: Reproduction(name)
    for name in ("goetz", "long-run", "mueller", "mechanisms", "park-chung", "pleiades", "reuss")
}
