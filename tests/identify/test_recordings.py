"""Measured motions: read, resampled, smoothed; what is wrong with them is said."""

import warnings

import numpy as np
import pytest

import difflie as dl
from difflie.identify import DataError, Recording, log_warnings, read_recording

T = np.linspace(0, 2, 401)


def recording(**given):
    return Recording("run", T, **{"q": np.stack((np.sin(T), T**2), 1), **given})


def written(tmp_path, text, name="run.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_file_with_columns_of_any_order_and_units(tmp_path):
    path = written(tmp_path, "u,angle, time\n1,90,0\n2,,0.5\n3,180,1\n\n")
    found = read_recording(path, q=["angle"], tau=["u"], scale={"q": np.pi / 180})
    np.testing.assert_array_equal(found.t, (0, 0.5, 1))
    np.testing.assert_allclose(found.q[:, 0], (np.pi / 2, np.nan, np.pi))
    np.testing.assert_array_equal(found.tau[:, 0], (1, 2, 3))
    assert found.v is None


def test_an_archive_of_arrays(tmp_path):
    np.savez(tmp_path / "run.npz", time=T, x=np.sin(T))
    found = read_recording(tmp_path / "run.npz", q=["x"])
    np.testing.assert_array_equal(found.q[:, 0], np.sin(T))


def test_a_file_without_header_and_times(tmp_path):
    path = written(tmp_path, "1,90\n2,\n3,180\n")
    found = read_recording(path, names=["u", "angle"], rate=4.0, q=["angle"])
    np.testing.assert_array_equal(found.t, (0, 0.25, 0.5))
    np.testing.assert_array_equal(found.q[:, 0], (90, np.nan, 180))
    with pytest.raises(DataError, match="line 1 has 2 cells, but the header 3"):
        read_recording(path, names=["u", "v", "angle"], rate=4.0, q=["angle"])
    with pytest.raises(DataError, match="no column 'time'"):
        read_recording(path, names=["u", "angle"], q=["angle"])


@pytest.mark.parametrize(
    "text",
    [
        '"time","angle, left"\n0,1\n"0.5", "2"\n',
        "time;angle, left\r\n0;1\r\n0.5;2\r\n",
        "time\tangle, left\n0\t1\n0.5\t2\n",
        '# of a bench\n# time,"angle, left"\n0,1\n0.5,2\n',
        '\ufeff# of a bench\n\ntime,"angle, left"\n0,1\n\n# a pause\n0.5,2',
    ],
)
def test_quotes_separators_and_comments(tmp_path, text):
    path = tmp_path / "run.csv"
    path.write_text(text, encoding="utf-8", newline="")
    found = read_recording(path, q=["angle, left"])
    np.testing.assert_array_equal(found.t, (0, 0.5))
    np.testing.assert_array_equal(found.q[:, 0], (1, 2))


def test_files_that_are_broken_are_one_error(tmp_path):
    """Bytes of any kind as text or archive, and archives of what is no column."""
    np.savez(tmp_path / "good.npz", time=T, p=T, names=np.array(["a"]), wide=np.ones((3, 2)))
    good = (tmp_path / "good.npz").read_bytes()
    rng = np.random.default_rng(0)
    broken = [b"time,p\n0,\xe4\n", b"\xff\xfet\x00", b"PK\x03\x04", b"", b"\x93NUMPY", good[:-30]]
    broken += [rng.integers(0, 256, n, dtype=np.uint8).tobytes() for n in (10, 1000)]
    for content in broken:
        for name in ("run.csv", "run.npz"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(DataError, match=name):
                read_recording(tmp_path / name, q=["p"])
    for at in rng.integers(0, len(good), 50):
        flipped = bytearray(good)
        flipped[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "run.npz").write_bytes(flipped)
        try:
            found = read_recording(tmp_path / "run.npz", q=["p"])
        except DataError:
            continue
        assert found.q.shape == (401, 1)
    for name, said in (("names", "type <U1"), ("wide", r"shape \(3, 2\)")):
        with pytest.raises(DataError, match=said):
            read_recording(tmp_path / "good.npz", q=[name])
    (tmp_path / "run.csv").write_bytes(broken[0])
    with pytest.raises(DataError, match="the byte 0xe4 is not UTF-8"):
        read_recording(tmp_path / "run.csv", q=["p"])


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        ("time,pos1\n0,1\n1,2\n", {"q": ["pos_1"]}, "no column 'pos_1'; did you mean 'pos1'"),
        ("zeit,pos1\n0,1\n1,2\n", {"q": ["pos1"]}, "no column 'time'"),
        ("time,pos1\n0,1\n1,x\n", {"q": ["pos1"]}, "line 3, column 'pos1': 'x' is not a number"),
        ("time,pos1\n0,1\n1\n", {"q": ["pos1"]}, "line 3 has 1 cells, but the header 2"),
        (
            "time,pos1\n0,1\n0,2\n",
            {"q": ["pos1"]},
            "line 3, column 'time': 0.0 s is not after the 0.0 s of line 2",
        ),
        ("time,pos1\n0,1\n,2\n", {"q": ["pos1"]}, "line 3, column 'time': the time is nan"),
        ("time,pos1\n0,1\n", {"q": ["pos1"]}, "two or more are needed"),
        ("time,pos1\n0,1\n1,inf\n", {"q": ["pos1"]}, "line 3, column 'pos1': the number is inf"),
        ("# by me\n\ntime,p\n0,1\n#\n1,2\n1,3\n", {"q": ["p"]}, "line 7, column 'time': 1.0 s is"),
        ("time;p\n0;1\n1;2,5\n", {"q": ["p"]}, "line 3, column 'p': '2,5' is not a number; write"),
        ("time,p\n0,1\n1,1_0\n", {"q": ["p"]}, "'1_0' is not a number"),
        ("time,p\n0,1\n1," + 999 * "x" + "\n", {"q": ["p"]}, r"'x+\.\.\.x+' is not a number"),
        ("time,p,p\n0,1,1\n", {"q": ["p"]}, "there are 2 columns 'p'"),
        ("", {"q": ["p"]}, "there are no rows"),
        ('"', {"q": ["p"]}, "there are no rows"),
        ("time,p\n0,1\n1,2\n", {"q": []}, r"the columns of q are \[\]; give a list"),
        ("time,p\n0,1\n1,2\n", {"q": "p"}, "the columns of q are 'p'; give a list"),
        ("time,p\n0,1\n1,2\n", {}, "run.csv: no columns of q were found.*joints="),
        ("time,p\n0,1\n", {"q": ["p"], "scale": {"q": 0.0}}, "the scale of q is 0.0; it must be"),
        ("time,p\n0,1\n", {"q": ["p"], "rate": 0.0}, "the rate is 0.0; it must be positive"),
        ("time,pos1\n0,1\n1,2\n", {"torque": ["pos1"]}, "scales of 'torque' are not known"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, text, columns, said):
    with pytest.raises(DataError, match=said):
        read_recording(written(tmp_path, text), **columns)


def test_units_that_cannot_be_right_are_doubted():
    hinge = dl.Revolute(axis=(0.0, 1.0, 0.0), lower=-4.0, upper=4.0)
    slide = dl.Prismatic(axis=(1.0, 0.0, 0.0))
    system = dl.chain([dl.Body(name=n, joint=j, mass=1.0) for n, j in (("a", hinge), ("b", slide))])
    q = np.stack((2 * np.sin(T), T**2), 1)
    v = np.stack((2 * np.cos(T), 2 * T), 1)
    good = Recording("run", T, q, v)
    assert log_warnings(system, good) == []
    turn = np.array((180 / np.pi, 1.0))
    (degrees,) = log_warnings(system, Recording("run", T, q * turn, v * turn))
    assert "outside of its limits is q[0] of 'a'" in degrees and "in degrees (scale.q" in degrees
    (rate,) = log_warnings(system, Recording("run", T, q, v * turn))
    assert "the v of 'a' is 57.3 times" in rate
    free = system.replace(lower=np.full(2, -np.inf), upper=np.full(2, np.inf))
    assert "turns to" in log_warnings(free, Recording("run", T, q * turn, v * turn))[0]
    assert "are the times in ms?" in log_warnings(system, Recording("run", 1e3 * T, q, v / 1e3))[0]


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv: there is no such file"):
        read_recording(tmp_path / "none.csv", q=["x"])


def test_resampling_meets_what_is_linear_and_keeps_gaps():
    rng = np.random.default_rng(1)
    t = np.cumsum(rng.uniform(1e-3, 3e-3, 500))
    q = np.stack((2 * t, 1 - t), 1)
    q[200:210, 1] = np.nan
    found = Recording("run", t, q).resampled(2e-3)
    np.testing.assert_allclose(np.diff(found.t), 2e-3)
    np.testing.assert_allclose(found.q[:, 0], 2 * found.t, rtol=1e-12)
    gap = np.isnan(found.q[:, 1])
    inside = (found.t > t[199]) & (found.t < t[210])
    np.testing.assert_array_equal(gap, inside)


@pytest.mark.parametrize("dt", [0.01, 0.05])
def test_missing_rows_are_gaps(dt):
    """Where steps are four times longer than most are; not those that a longer grid hides."""
    t = np.concatenate((np.arange(0, 1, 0.01), np.arange(2, 3, 0.01)))
    with pytest.warns(UserWarning, match="run: rows are missing from 0.99 to 2 s; these are gaps"):
        found = Recording("run", t, t[:, None], tau=t[:, None]).resampled(dt)
    inside = (found.t > 0.99 + 1e-9) & (found.t < 2 - 1e-9)
    assert inside.any()
    np.testing.assert_array_equal(np.isnan(found.q[:, 0]), inside)
    np.testing.assert_array_equal(np.isnan(found.tau[:, 0]), inside)
    assert not np.isnan(Recording("run", t, t[:, None]).resampled(1.5).q).any()


@pytest.mark.parametrize("count", range(2, 60))
def test_resampling_keeps_the_last_sample(count):
    """Whatever the rounding of the times and of the step."""
    t = np.cumsum(np.full(count, 0.1))
    found = Recording("run", t, t[:, None]).resampled(0.1)
    np.testing.assert_allclose(found.t, t, rtol=1e-12)


def test_resampling_turns_attitudes_evenly():
    """Quaternions stay unit and turn at one rate between two measured ones, through either sign."""
    bodies = [
        dl.Body(name="ball", joint=dl.Spherical(), mass=1.0, inertia=np.eye(3)),
        dl.Body(name="arm", joint=dl.Revolute(), mass=1.0, inertia=np.eye(3)),
    ]
    system = dl.chain(bodies)
    angle = np.array((0.0, 1.2, 2.0))
    turns = np.stack((np.cos(angle / 2), 0 * angle, np.sin(angle / 2), 0 * angle, angle**2), 1)
    turns[1, :4] *= -1
    found = Recording("run", np.arange(3.0), turns).resampled(0.25, system.manifold)
    np.testing.assert_allclose(np.linalg.norm(found.q[:, :4], axis=1), 1, rtol=1e-15)
    turned = 2 * np.arctan2(np.abs(found.q[:, 2]), np.abs(found.q[:, 0]))
    np.testing.assert_allclose(turned, np.interp(found.t, np.arange(3), angle), rtol=1e-12)
    np.testing.assert_allclose(found.q[:, 4], np.interp(found.t, np.arange(3), angle**2))


@pytest.mark.parametrize(
    ("dt", "said"),
    [
        (1e-9, "2e.09 samples, .* GiB"),
        (1e-7, "2e.07 samples of .* measured rows; resample near their own step"),
        (5.0, "is longer than all of it"),
        (0.0, "must be positive"),
    ],
)
def test_steps_that_make_no_recording_are_refused(dt, said):
    with pytest.raises(DataError, match=said):
        recording().resampled(dt)


def test_smoothing_gives_the_derivatives_of_a_parabola():
    found = recording(tau=np.stack((T, 1 + T), 1)).smoothed(41, 2)
    np.testing.assert_allclose(found.v[:, 1], 2 * T, atol=1e-9)
    np.testing.assert_allclose(found.a[:, 1], 2, atol=1e-7)
    np.testing.assert_allclose(found.tau[:, 0], T, atol=1e-12)
    # The slope of a parabola through a sine is less by the third derivative.
    bias = (3 * 20 * 21 - 1) / 5 * 5e-3**2 / 6
    np.testing.assert_allclose(found.v[20:-20, 0], (1 - bias) * np.cos(T[20:-20]), atol=1e-5)


def test_smoothing_refuses_what_it_would_spoil():
    gap = np.array(recording().q)
    gap[200, 0] = np.nan
    for given, window, said in (
        (recording(), 999, "fewer than the window"),
        (Recording("run", T**2 + T, recording().q), 41, "not uniform"),
        (Recording("run", T), 41, "no q"),
        (recording(q=np.full((401, 1), np.nan)), 41, "gaps leave no row of q"),
    ):
        with pytest.raises(DataError, match=said), warnings.catch_warnings(action="ignore"):
            given.smoothed(window)


def test_a_part_of_a_recording():
    part = recording().between(0.5, 1.0)
    assert part.t[0] == 0.5 and part.t[-1] < 1.0 and len(part.q) == len(part.t) == 100
    with pytest.raises(DataError, match="two or more"):
        recording().between(5.0, 6.0)
