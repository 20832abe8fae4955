"""Results as dataclasses: their keys in JSON, and their entries by name."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from difflie.io.results import Results, save_json


@dataclass(frozen=True, kw_only=True)
class Part(Results):
    from_: float
    rows: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Whole(Results):
    name: str = "whole"
    parts: list[Part]


WHOLE = Whole(parts=[Part(from_=np.nan, rows=np.arange(2.0))])


def test_fields_are_keys(tmp_path):
    """Guards order, keywords of Python, arrays, and numbers that are not finite."""
    save_json(tmp_path / "a.json", WHOLE)
    found = json.loads((tmp_path / "a.json").read_text())
    assert found == {"name": "whole", "parts": [{"from": None, "rows": [0.0, 1.0]}]}
    assert list(found) == ["name", "parts"]


def test_entries_are_still_read_by_name():
    """Guards code that was written for dictionaries, for one release."""
    with pytest.warns(DeprecationWarning, match=r"results\['parts'\] is now results.parts"):
        (part,) = WHOLE["parts"]
    with pytest.warns(DeprecationWarning, match=r"results\['from'\] is now results.from_"):
        assert np.isnan(part["from"])
    assert "rows" in part and "row" not in part and list(part) == ["from", "rows"]
    with pytest.raises(KeyError):
        part["row"]
