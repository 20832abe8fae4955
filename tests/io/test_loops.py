"""Loops in TOML: what is read is what was meant, and every mistake is one sentence."""

from pathlib import Path

import jax
import numpy as np
import pytest

import difflie as dl
from difflie.constraints import (
    FixedConstraint,
    Polynomial,
    PrismaticConstraint,
    RevoluteConstraint,
    SphericalConstraint,
    UniversalConstraint,
)
from difflie.io.config import ConfigError, read_config
from difflie.io.couplings import read_loops

CONFIGS = Path(__file__).parent.parent.parent / "configs"
LEG = CONFIGS / "fourbar_leg.urdf"
FIRST = 'first = {body = "rod", position = [0.0, 0.0, -0.25]}\n'
SECOND = 'second = {body = "shank", position = [-0.045, 0.03, -0.035]}\n'
BALL = '[[constraint]]\ntype = "SphericalConstraint"\n' + FIRST + SECOND


@pytest.fixture
def write(tmp_path):
    """Writes a string as a file and gives its path."""

    def writer(text, name="a.loops.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return writer


def equal(a, b):
    same = jax.tree.structure(a) == jax.tree.structure(b)
    return same and all(map(np.array_equal, jax.tree.leaves(a), jax.tree.leaves(b)))


def as_toml(constraint):
    """A joint constraint, written by hand."""

    def frame(f):
        body = "" if f.body is None else f'body = "{f.body}", '
        return f"{{{body}position = {f.position.tolist()}, rotation = {f.rotation.tolist()}}}"

    name = type(constraint).__name__
    frames = f"first = {frame(constraint.first)}\nsecond = {frame(constraint.second)}"
    return f'[[constraint]]\ntype = "{name}"\n{frames}\n'


@pytest.mark.parametrize(
    "kind",
    [
        FixedConstraint,
        RevoluteConstraint,
        PrismaticConstraint,
        SphericalConstraint,
        UniversalConstraint,
    ],
)
def test_joints_round_trip(write, kind):
    constraint = kind(
        dl.Frame("rod", (0.1, -0.2, 0.3), (0.3, 1.2, -0.1)), dl.Frame(None, (1, 2, 3))
    )
    assert equal(read_loops(write(as_toml(constraint))), [constraint])


def test_axes_worlds_and_couplings(write):
    text = (
        '[[constraint]]\ntype = "RevoluteConstraint"\n'
        'first = {axis = [0, 2, 0]}\nsecond = {body = "rod"}\n'
    )
    text += '[[constraint]]\ntype = "Polynomial"\ndriven = "knee"\ncoefficients = [0, 1.5]\n'
    expected = [
        RevoluteConstraint(dl.Frame(axis=(0, 2, 0)), dl.Frame("rod")),
        Polynomial("knee", [0.0, 1.5], "crank"),
    ]
    path = write(text + 'driver = "crank"')
    assert equal(read_loops(path), expected)
    system = dl.load(LEG, loops=path)
    assert [str(c) for c in system.constraints] == [str(c) for c in expected]
    given = dl.constrain(dl.load(LEG), *expected)
    assert equal(system.constraints, given.constraints)


def test_configurations_take_them_inline_and_from_a_file(write):
    write(BALL, "a.loops.toml")
    head = f'[system]\nfile = "{LEG}"\n'
    inline = read_config(write(head + BALL, "inline.toml"))
    apart = read_config(write(head + 'loops = "a.loops.toml"', "apart.toml"))
    folder = apart.path.parent
    assert inline.system.loops_file(folder) is None and len(inline.constraint) == 1
    assert not apart.constraint
    assert equal(read_loops(apart.system.loops_file(folder)), inline.constraint)


def test_loops_beside_an_mjcf_file(write):
    pytest.importorskip("mujoco")
    body = '<body name="{0}"><joint name="{0}"/><geom size="0.1"/></body>'
    robot = write(
        f"<mujoco><worldbody>{body.format('a')}{body.format('b')}</worldbody></mujoco>", "m.xml"
    )
    loops = write('[[constraint]]\ntype = "Polynomial"\ndriven = "a"\ncoefficients = [0.1]')
    with pytest.warns(UserWarning, match="contacts of geoms"):
        system = dl.load(robot, loops=loops)
    assert len(system.constraints) == 1


MISTAKES = [
    (BALL.replace("Spherical", "Sperical"), "no type 'SpericalConstraint' .*mean 'SphericalC"),
    (BALL.replace("SphericalConstraint", "Spherical"), "'Spherical' .*you mean 'SphericalC"),
    (
        BALL.replace("SphericalConstraint", "belt"),
        "no type 'belt' .*known are .*RevoluteConstraint",
    ),
    (BALL.replace('"SphericalConstraint"', "[]"), r"\.type is \[\]; it must be a string"),
    ("[[constraint]]\n" + FIRST, "lacks the key 'type': one of"),
    (BALL.replace("second", "secnd"), "has no key 'secnd'; did you mean 'second'"),
    (
        '[[constraint]]\ntype = "SphericalConstraint"\n' + FIRST,
        "SphericalConstraint lacks the key 'second'",
    ),
    (BALL.replace("{body", "{bdy", 1), r"\.first has no key 'bdy'; did you mean 'body'"),
    (BALL.replace(FIRST, 'first = "rod"\n'), r"\.first is 'rod'; it must be a table \{body ="),
    (BALL.replace('"rod"', "3"), r"\.first\.body is 3; it must be a string"),
    (BALL.replace("-0.25]", '"a"]'), r"\.first\.position is .* list of three numbers"),
    (BALL.replace(", -0.25]", "]"), r"\.first\.position is .* list of three numbers \(m\)"),
    (BALL.replace("-0.25", "inf"), r"\.first\.position\[2\] is inf; it must be finite"),
    (BALL.replace("25]}", "25], axis = [0, 0, 0]}"), r"\.first: .*the axis is zero"),
    (
        BALL.replace("25]}", "25], axis = [0, 0, 1], rotation = [0, 0, 1]}"),
        r"\.first: .*give its rotation or its axis, not both",
    ),
    (
        '[[constraint]]\ntype = "Polynomial"\ndriven = 3\ncoefficients = [0.0]',
        r"\.driven is 3; it must be a string",
    ),
    (
        '[[constraint]]\ntype = "Polynomial"\ndriven = "knee"\ncoefficients = "no"',
        r"\.coefficients is 'no'; it must be a number, or numbers in lists",
    ),
    (
        '[[constraint]]\ntype = "Polynomial"\ndriven = "knee"\ncoefficients = [0.0, 1.0]',
        r"coefficients has shape \(2,\), needed is \(1,\)",
    ),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES)
def test_mistakes_in_both_kinds_of_file(write, text, words):
    path = write(text)
    with pytest.raises(dl.ModelError, match=words) as caught:
        read_loops(path)
    assert str(caught.value).startswith(f"{path}: constraint[0]")
    assert "\n" not in str(caught.value)
    path = write(f'[system]\nfile = "{LEG}"\n' + text, "run.toml")
    with pytest.raises(ConfigError, match=rf"run\.toml: constraint\[0\].*{words}"):
        read_config(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BALL.replace('"shank"', '"shnk"'), "no body is named 'shnk'; did you mean 'shank'"),
        (BALL.replace('"shank"', '"rod"'), "two of its frames are on one body"),
        (
            '[[constraint]]\ntype = "Polynomial"\ndriven = "kne"\ncoefficients = [0.0]',
            "no joint is named 'kne'; did you mean 'knee'",
        ),
    ],
)
def test_what_does_not_fit_the_system(write, text, words):
    path = write(BALL + text)
    with pytest.raises(dl.ModelError, match=words) as caught:
        dl.load(LEG, loops=path)
    assert str(caught.value).startswith(f"{path}: constraint[1]: fourbar_leg: constraint 1, ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"there is no loop in it; add a table \[\[constraint\]\]"),
        ("[[constraint", "this is not TOML"),
        ("[constraint]\ntype = 'Fixed'", r"list of tables: write \[\[constraint\]\]"),
        (BALL + "[[spring]]\nstiffness = 1.0", "'spring' does not belong into a file of loops"),
    ],
)
def test_what_is_no_file_of_loops(write, text, words):
    path = write(text)
    with pytest.raises(dl.ModelError, match=words) as caught:
        read_loops(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there(write):
    path = write(BALL)
    with pytest.raises(FileNotFoundError, match=r"did you mean 'a\.loops\.toml'"):
        dl.load(LEG, loops=path.with_name("b.loops.toml"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "degrees", "redundant"), [("fourbar_leg", 2, 1), ("stewart", 6, 0)]
)
def test_the_machines_in_configs_have_the_mobility_of_their_design(name, degrees, redundant):
    system = dl.load(CONFIGS / f"{name}.urdf", loops=CONFIGS / f"{name}.loops.toml")
    q = system.neutral()
    # As drawn: the leg nearly closed, the platform to the digits of the file.
    assert np.abs(dl.constraint_residual(system, q)).max() < (2e-2 if degrees == 2 else 1e-6)
    assert dl.mobility(system, q) == degrees
    assert len(dl.redundant_equations(system, q)) == redundant


def test_joints_may_have_friction(write):
    text = (
        '[[constraint]]\ntype = "RevoluteConstraint"\n'
        'first = {axis = [0, 2, 0]}\nsecond = {body = "rod"}\n'
    )
    (joint,) = read_loops(write(text + "friction = {coefficient = 0.01}"))
    assert joint.friction.coefficient == 0.01
    with pytest.raises(dl.ModelError, match="no key 'coefficent'; did you mean 'coefficient'"):
        read_loops(write(text + "friction = {coefficent = 0.01}"))
