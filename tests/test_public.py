"""The public names are there, and cost nothing before they are asked for."""

import subprocess
import sys

import pytest

import difflie as dl


def python(code: str) -> str:
    run = [sys.executable, "-c", code]
    return subprocess.run(run, capture_output=True, text=True, check=True, timeout=900).stdout


def test_every_name_of_the_stub_is_there():
    """A name without its object would fail at first use only."""
    for name in dl.__all__:
        assert getattr(dl, name) is not None
    assert set(dl.__all__) <= set(dir(dl)) and len(set(dl.__all__)) == len(dl.__all__)


def test_other_names_are_no_attributes():
    with pytest.raises(AttributeError, match="simulated"):
        dl.simulated  # noqa: B018  # pyright: ignore


def test_importing_imports_no_jax():
    """`import difflie` is quick, and so is the help of the command."""
    assert python("import sys, difflie; print('jax' in sys.modules)") == "False\n"


@pytest.mark.slow(
    "from difflie.simulate import step",
    "import difflie.simulate",
    "from difflie import adjoint, groups, simulate",
)
@pytest.mark.parametrize(
    "first",
    [
        "import difflie.simulate",
        "from difflie.simulate import step",
        "import difflie as dl; dl.simulate; import difflie.simulate",
        "from difflie import adjoint, groups, simulate",
    ],
)
def test_functions_stay_functions(first):
    """Whatever was imported first, `dl.simulate` is no room of that name."""
    code = "import difflie as dl; print(type(dl.simulate).__name__, type(dl.groups).__name__)"
    assert python(f"{first}\n{code}") == "function module\n"
