"""Real logs give the numbers, errors, R2 and verdicts that they gave before, to rounding."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from freeze_identification import CONFIGURATIONS, FROZEN, ROOT, frozen, identified

DATA = ROOT.parent / "shared" / "data"


STEPS = re.compile(r"(?<=after )\d+(?= steps)")
# Rounding decides where an iterated fit stops, which shows in its scores; its values, and all of
# arms, are the same to the last digits or a small part of their errors.
ARMS, ITERATED = 1e-6, 1e-4


def different(
    found: Any, kept: Any, tolerance: float = ARMS, path: str = "", error: float = 0.0
) -> Iterator[str]:
    """Where results differ from those kept: by that part of a number, and 1e-3 of its error."""
    if isinstance(kept, dict) and isinstance(found, dict):
        if set(kept) != set(found):
            yield f"{path}: {sorted(set(kept) ^ set(found))}"
        is_number = "value" in kept
        own = (kept.get("std_error") or 0.0) if is_number else 0.0
        tolerance = ARMS if is_number else tolerance
        for key in kept.keys() & found.keys():
            yield from different(found[key], kept[key], tolerance, f"{path}/{key}", own)
    elif isinstance(kept, list) and isinstance(found, list):
        if len(kept) != len(found):
            yield f"{path}: {len(found)} instead of {len(kept)}"
        for k, (one, other) in enumerate(zip(found, kept, strict=False)):
            yield from different(one, other, tolerance, f"{path}/{k}")
    elif isinstance(kept, float) and isinstance(found, float):
        if not abs(found - kept) <= max(tolerance * abs(kept), 1e-3 * error):
            yield f"{path}: {found!r} instead of {kept!r}"
    elif isinstance(kept, str) and isinstance(found, str):
        if STEPS.sub("", found) != STEPS.sub("", kept):
            yield f"{path}: {found!r} instead of {kept!r}"
    elif found != kept:
        yield f"{path}: {found!r} instead of {kept!r}"


@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_real_logs_give_what_they_gave(configuration):
    """Guards the numbers of all configurations that identify against changes of the code."""
    folder = DATA / CONFIGURATIONS[configuration]
    if not folder.is_dir():
        pytest.skip(f"the measured logs in {folder} are absent")
    kept = json.loads((FROZEN / f"{Path(configuration).name}.json").read_text())
    # Through JSON, which writes numbers that are not finite as null.
    found = json.loads(json.dumps(frozen(identified(configuration, DATA))))
    tolerance = ARMS if configuration.startswith("arms/") else ITERATED
    assert [*different(found, kept, tolerance)] == []


def test_differences_are_found():
    """Guards the comparison itself: a number off by more than both tolerances is named."""
    kept = {"parameters": {"a/mass": {"value": 1.0, "std_error": 0.1}}, "verdict": ["good"]}
    near = {"parameters": {"a/mass": {"value": 1.00009, "std_error": 0.1}}, "verdict": ["good"]}
    far = {"parameters": {"a/mass": {"value": 1.0002, "std_error": 0.1}}, "verdict": ["bad"]}
    assert [*different(near, kept)] == []
    assert len([*different(far, kept)]) == 2
    assert [*different({"parameters": {}}, {"parameters": {"b": 1}})] == ["/parameters: ['b']"]
