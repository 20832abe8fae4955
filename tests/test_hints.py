"""Names of other packages are answered with the names here."""

import re
import subprocess
import sys

import pytest

import difflie as dl
from difflie.hints import HINTS


def test_every_hint_names_what_is_there():
    """A hint that leads nowhere is worse than none."""
    wrong = []
    for name, hint in HINTS.items():
        found = None if hint.startswith("jax.") else dl
        for part in re.match(r"[\w.]+", hint)[0].split(".") if found else ():
            found = getattr(found, part, None)
        if found is None and not hint.startswith("jax."):
            wrong.append(name)
    assert wrong == []


def test_no_hint_hides_a_public_name():
    """A name that the package has is never refused."""
    assert set(HINTS) & set(dl.__all__) == set()


def test_a_hint_is_the_error():
    """It is said where the name is looked up, and `hasattr` and imports stay as they are."""
    with pytest.raises(AttributeError, match=r"'fk'; here it is difflie\.body_poses$"):
        dl.fk  # noqa: B018
    assert not hasattr(dl, "Model")
    code = "from difflie import Model"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: cannot import name 'Model'" in done.stderr
