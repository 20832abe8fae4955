"""Real logs give the numbers, errors, R2 and verdicts that they gave before, to rounding."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from freeze_identification import CONFIGURATIONS, FROZEN, ROOT, frozen, identified

DATA = ROOT.parent / "shared" / "data"
# Least R2 of held-out samples of the joints of real arms, block by block.
LEAST = {
    "tx40": (0.99, 0.97, 0.985, 0.983, 0.83, 0.86),
    "ur10": (0.99, 0.995, 0.996, 0.992, 0.966, 0.92),
    "panda": (0.75, 0.999, 0.997, 0.995, 0.92, 0.98, 0.957),
    "gen3": (0.6, 0.95, 0.93, 0.98, 0.3, 0.93, 0.5),
}

STEPS = re.compile(r"(?<=after )\d+(?= steps)")
# Rounding decides where an iterated fit stops, which shows in its scores; its values, and all of
# arms, are the same to the last digits or a small part of their errors.
ARMS, ITERATED = 1e-6, 1e-4
# Joints that stick make the cost of these rough: rounding decides in which of its dents a fit ends.
ROUGH = ("go2",)
# One arm is enough for each change; the others come with the thorough tests.
OFTEN = "arms/ur10"


def different(
    found: Any, kept: Any, tolerance: float = ARMS, path: str = "", error: float = 0.0
) -> Iterator[str]:
    """Where results differ from those kept: by that part of a number, and 1e-3 of its error.

    Keys that are null say as much as none.
    """
    if isinstance(kept, dict) and isinstance(found, dict):
        kept, found = ({k: v for k, v in x.items() if v is not None} for x in (kept, found))
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


def elsewhere(found: dict[str, Any], kept: dict[str, Any]) -> Iterator[str]:
    """What says that a fit ended farther from the one kept than in a dent beside it."""
    if not found["fit"]["cost"] <= (1 + 1e-3) * kept["fit"]["cost"]:
        yield f"cost: {found['fit']['cost']!r} instead of {kept['fit']['cost']!r}"
    for key in ("converged", "well_predicted"):
        if found[key] != kept[key]:
            yield f"{key}: {found[key]!r} instead of {kept[key]!r}"
    if set(found["parameters"]) != set(kept["parameters"]):
        yield f"parameters: {sorted(set(found['parameters']) ^ set(kept['parameters']))}"
    for name in found["parameters"].keys() & kept["parameters"].keys():
        one, other = found["parameters"][name], kept["parameters"][name]
        if one["at_bound"] != other["at_bound"]:
            yield f"{name}: at_bound {one['at_bound']!r}"
        if not abs(one["value"] - other["value"]) <= 0.5 * other["std_error"]:
            yield f"{name}: {one['value']!r} instead of {other['value']!r}"
        if not 0.5 < one["std_error"] / other["std_error"] < 2:
            yield f"{name}: error {one['std_error']!r} instead of {other['std_error']!r}"
    for table in ("training", "validation"):
        yield from different(found[table], kept[table], 0.1, table)


def kept_of(name: str) -> dict[str, Any]:
    return json.loads((FROZEN / f"{name}.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    "configuration",
    [pytest.param(c, marks=() if c == OFTEN else pytest.mark.thorough) for c in CONFIGURATIONS],
)
def test_real_logs_give_what_they_gave(configuration):
    """Guards the numbers of all configurations that identify against changes of the code."""
    folder = DATA / CONFIGURATIONS[configuration]
    if not folder.is_dir():
        pytest.skip(f"the measured logs in {folder} are absent")
    kept = kept_of(Path(configuration).name)
    # Through JSON, which writes numbers that are not finite as null.
    found = json.loads(json.dumps(frozen(identified(configuration, DATA))))
    if configuration in ROUGH:
        assert [*elsewhere(found, kept)] == []
        return
    tolerance = ARMS if configuration.startswith("arms/") else ITERATED
    assert [*different(found, kept, tolerance)] == []


@pytest.mark.parametrize("arm", LEAST)
def test_real_arms_are_predicted(arm):
    """Guards what is kept: held-out samples are predicted as well as the best of others do."""
    rows = [row for row in kept_of(arm)["joints"] if row["use"] == "held out"]
    pairs = zip(rows, LEAST[arm], strict=True)
    assert kept_of(arm)["converged"]
    assert [row["joint"] for row, least in pairs if row["r2"] < least] == []


def test_a_real_quadruped_is_predicted():
    """Guards what is kept: position servos on a robot of an MJCF file that is held, over 3.5 s."""
    errors = sorted(row["position_rmse"] for row in kept_of("go2")["validation"])
    assert kept_of("go2")["converged"]
    assert len(errors) == 12 and errors[-2] < 0.01 and errors[-1] < 0.02


def test_differences_are_found():
    """Guards the comparison itself: a number off by more than both tolerances is named."""
    kept = {"parameters": {"a/mass": {"value": 1.0, "std_error": 0.1}}, "verdict": ["good"]}
    near = {"parameters": {"a/mass": {"value": 1.00009, "std_error": 0.1}}, "verdict": ["good"]}
    far = {"parameters": {"a/mass": {"value": 1.0002, "std_error": 0.1}}, "verdict": ["bad"]}
    assert [*different(near, kept)] == []
    assert len([*different(far, kept)]) == 2
    assert [*different({"parameters": {}}, {"parameters": {"b": 1}})] == ["/parameters: ['b']"]


def test_another_end_of_a_rough_fit_is_told_from_a_dent_beside():
    """Guards the comparison of fits whose cost is rough: half an error, 1e-3 of the cost."""
    kept = kept_of("go2")
    assert [*elsewhere(kept, kept)] == []
    moved = json.loads(json.dumps(kept))
    moved["fit"]["cost"] *= 1.002
    name, number = next(iter(moved["parameters"].items()))
    number["value"] += 0.6 * number["std_error"]
    assert [line.split(":")[0] for line in elsewhere(moved, kept)] == ["cost", name]
