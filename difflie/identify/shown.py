"""How what an identification finds shows itself: how it ended, and the first of its numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..system.shown import some, subsample
from ..view.estimates import Estimated

_WIDTH, _SENTENCES = 100, 4


def excitation_text(motion: Any) -> str:
    """An `Excitation` in some lines, with the largest of each joint."""
    recording = motion.recording
    gain = np.exp((motion.information - motion.before) / (2 * max(motion.rank, 1)))
    largest = [np.abs(np.asarray(x)).max(axis=0) for x in (recording.v, recording.a)]
    rows = [(str(k), f"{v:.4g}", f"{a:.4g}") for k, (v, a) in enumerate(zip(*largest, strict=True))]
    return "\n".join(
        [
            f"Excitation {recording.name!r}: {motion.duration:.6g} s, {len(recording.t)} samples, "
            f"{motion.waves.shape[1] // 2} harmonics",
            f"log det of the information {motion.information:.6g} over {motion.rank} identifiable "
            f"directions; standard errors fell by {gain:.4g} in the search",
            *subsample(("velocity", "largest rate", "largest acceleration"), rows, "velocities"),
        ]
    )


def recording_text(recording: Any) -> str:
    """A `Recording` in a line or two."""
    t = recording.t
    there = {name: getattr(recording, name) for name in ("q", "v", "a", "tau")}
    there |= recording.readings
    sizes = [f"{name} ({x.shape[1]})" for name, x in there.items() if x is not None]
    return (
        f"Recording {recording.name!r}: {len(t)} rows, t = {t[0]:.6g} to {t[-1]:.6g} s, with "
        f"{some(sizes)}"
    )


def fit_text(title: str, sentences: Sequence[str], numbers: Mapping[str, Estimated]) -> str:
    """A fit in some lines: the first sentences on how it ended, and the first of its numbers.

    numbers: by name, of a fit.
    """
    rows = [
        (name, f"{p.start:.5g}", f"{p.value:.5g}", f"{error:.3g}", p.unit)
        for name, p in numbers.items()
        if (error := p.std_error) is not None
    ]
    head = "name", "start", "value", "standard error", "unit"
    said = [textwrap.shorten(sentence, _WIDTH, placeholder=" ...") for sentence in sentences]
    return "\n".join([title, *said[:_SENTENCES], *subsample(head, rows, "numbers")])
