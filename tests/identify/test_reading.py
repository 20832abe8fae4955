"""Logs of any kind as columns: units in headers, expressions, data frames, bags, and names."""

import sys

import numpy as np
import pandas as pd
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from difflie.identify import DataError, columns_of, read_recording
from difflie.identify.reading.columns import Expression, unit_of


def written(tmp_path, text):
    path = tmp_path / "run.csv"
    path.write_text(text)
    return path


def test_units_in_headers_are_converted_and_said(tmp_path):
    header = "t [ms],q1 (deg),q2[rad],dq1 (deg/s),tau1 [mNm],x (raw)"
    text = f"{header}\n0,90,1,180,500,7\n500,180,2,0,0,8\n"
    path = written(tmp_path, text)
    found = read_recording(path, q=["q1", "q2"], v=["dq1 (deg/s)"], tau=["tau1"])
    np.testing.assert_allclose(found.t, (0, 0.5))
    np.testing.assert_allclose(found.q, ((np.pi / 2, 1), (np.pi, 2)))
    np.testing.assert_allclose(found.v[0], np.pi)
    np.testing.assert_allclose(found.tau[0], 0.5)
    assert "run.csv: q1 in deg are read as rad" in found.notes
    assert "run.csv: t in ms are read as s" in found.notes
    # A header that is odd stays a name as it is.
    with pytest.warns(UserWarning, match=r"'x \(raw\)': its unit is not known"):
        assert read_recording(path, q=["x (raw)"]).q[1, 0] == 8
    for given, said in (
        ({"q": ["x"]}, r"column 'x \(raw\)': the unit 'raw' is not known"),
        ({"tau": ["q1"]}, "its unit is of an angle, and it is given for tau"),
        ({"q": ["tau1"]}, "its unit is of a torque, and it is given for q"),
        ({"q": ["q1"], "scale": {"q": np.pi / 180}}, r"scale.q is 0.017\d+; leave that out"),
    ):
        with pytest.raises(DataError, match=said):
            read_recording(path, **given)


@pytest.mark.parametrize(
    ("written", "factor"),
    [
        *(
            ("N m", 1.0),
            ("N·m", 1.0),
            ("N*m", 1.0),
            ("N.m", 1.0),
            ("mNm", 1e-3),
            ("°", np.pi / 180),
        ),
        *(("Deg", np.pi / 180), ("rad/s^2", 1.0), ("deg/s²", np.pi / 180), ("rad s^-1", 1.0)),
        *(("rpm", np.pi / 30), ("mm/s", 1e-3), ("µs", 1e-6), ("rad/s**2", 1.0)),
    ],
)
def test_units_as_they_are_written(written, factor):
    assert unit_of(written).factor == pytest.approx(factor)


def test_units_that_are_none():
    assert [unit_of(text) for text in ("foo", "NM", "raw", "Ms")] == [None] * 4


def test_names_with_indices_have_no_units(tmp_path):
    path = written(tmp_path, "t,q[0],q(1)\n0,1,2\n1,3,4\n")
    np.testing.assert_array_equal(read_recording(path, q=["q[0]", "q(1)"]).q, ((1, 2), (3, 4)))


def test_columns_as_expressions(tmp_path):
    text = "stamp,th1 [deg],th2 [deg],cur-1,a-b\n0,90,180,2,5\n1000,0,90,4,6\n"
    path = written(tmp_path, text)
    given = {"q": ["th1", "th2 - th1"], "tau": ["-9 * (`cur-1` + 1) / 2", "a-b"]}
    found = read_recording(path, time="stamp / 1000", **given)
    np.testing.assert_allclose(found.t, (0, 1))
    np.testing.assert_allclose(found.q, ((np.pi / 2, np.pi / 2), (0, np.pi / 2)))
    np.testing.assert_allclose(found.tau, ((-13.5, 5), (-22.5, 6)))
    for text, said in (
        ("th1 - th3", "no column 'th3'; did you mean 'th"),
        ("abs(th1)", r"'abs\(th1\)' is not allowed"),
        ("th1 ** 2", "is not allowed"),
        ("__import__('os')", "is not allowed"),
        ("th1.real", "'th1.real' is not allowed"),
        ("2 * pi", "is a number; it must contain a column"),
        ("th1 * (1 / 0)", "divides by zero"),
        ("th1 +", "it is no arithmetic expression"),
        ("(" * 600 + "th1" + ")" * 600, "too long"),
        ("th1 / (th2 - th2)", "the number is"),
    ):
        with pytest.raises(DataError, match=said):
            read_recording(path, time="stamp / 1000", q=[text])


def test_expressions_are_arithmetic():
    """As Python computes them."""
    values = {"x": 3.0, "y": 4.0, "z 1": 5.0}
    found = Expression("-x * (y + 2) / 4 - +pi * `z 1`")
    assert found.names == ["x", "y", "z 1"]
    assert found(values.__getitem__) == pytest.approx(-3 * 6 / 4 - np.pi * 5)


def test_data_frames():
    """Of pandas, with missing cells and times of day; and anything else that has columns."""
    times = pd.to_datetime("2026-01-01") + pd.to_timedelta([0, 10, 20], unit="ms")
    frame = pd.DataFrame({"time": times, "q1 [deg]": [90, 180, 0], "tau1": [1.0, None, 3.0]})
    frame["tau1"] = frame["tau1"].astype("Float64")
    found = read_recording(frame)
    np.testing.assert_allclose(found.t, (0, 0.01, 0.02))
    np.testing.assert_allclose(found.q[:, 0], (np.pi / 2, np.pi, 0))
    np.testing.assert_array_equal(found.tau[:, 0], (1, np.nan, 3))
    assert found.name == "data frame"
    frame["q1 [deg]"] = ["a", "b", "c"]
    with pytest.raises(DataError, match=r"data frame: the array 'q1 \[deg\]' has"):
        read_recording(frame)

    class Own:
        columns = "t", "q"

        def __getitem__(self, name):
            return np.arange(3.0)

    np.testing.assert_array_equal(read_recording(Own()).q[:, 0], (0, 1, 2))


JOINTS = "elbow", "shoulder"


def write_bag(path, storage, stamped=True):
    """Two joints in 5 messages and a gripper in 2, and another topic with one of its own."""
    store = get_typestore(Stores.ROS2_JAZZY)
    state, header = (
        store.types[f"{k}"] for k in ("sensor_msgs/msg/JointState", "std_msgs/msg/Header")
    )
    stamp = store.types["builtin_interfaces/msg/Time"]
    with Writer(path, version=9, storage_plugin=storage) as writer:
        topics = "/joint_states", "/other"
        first, other = (
            writer.add_connection(topic, state.__msgtype__, typestore=store) for topic in topics
        )

        def write(connection, k, names):
            numbers = k + np.arange(len(names), dtype=float)
            at = stamp(sec=5, nanosec=10_000_000 * k) if stamped else stamp(sec=0, nanosec=0)
            message = state(header(at, ""), list(names), numbers, 10 * numbers, np.zeros(0))
            writer.write(
                connection,
                6 * 10**9 + 20_000_000 * k,
                store.serialize_cdr(message, state.__msgtype__),
            )

        for k in range(5):
            write(first, k, JOINTS)
            if k in (1, 3):
                write(first, k, ["finger"])
        write(other, 0, JOINTS)
    return path


@pytest.mark.parametrize("storage", StoragePlugin)
def test_bags_of_joint_states(tmp_path, storage):
    folder = write_bag(tmp_path / "bag", storage)
    (file,) = (p for p in folder.iterdir() if p.suffix in (".mcap", ".db3"))
    for path in (folder, file):
        found = read_recording(path, topic="/joint_states", joints=["shoulder", "elbow"])
        np.testing.assert_allclose(found.t, 0.01 * np.arange(5))
        np.testing.assert_array_equal(found.q, np.stack((np.arange(5) + 1, np.arange(5)), 1))
        np.testing.assert_array_equal(found.v, 10 * found.q)
        assert found.tau is None
        assert f"{path.name}: 2 messages of other joints are left out" in found.notes
    for given, said in (
        ({}, "joint states are in /joint_states, /other; give topic"),
        ({"topic": "/joint_state"}, "no joint states in '/joint_state'; did you mean"),
    ):
        with pytest.raises(DataError, match=said):
            read_recording(folder, **given)


def test_bags_that_cannot_be_read(tmp_path, monkeypatch):
    """Without times in headers those of the recording count."""
    folder = write_bag(tmp_path / "bag", StoragePlugin.MCAP, stamped=False)
    found = read_recording(folder, topic="/joint_states", q=["pos_elbow"])
    np.testing.assert_allclose(found.t, 0.02 * np.arange(5))
    for name in ("x.mcap", "x.db3", "x.bag"):
        (tmp_path / name).write_bytes(b"nothing of that kind")
        with pytest.raises(DataError, match=rf"{name}: this bag cannot be read"):
            read_recording(tmp_path / name)
    with pytest.raises(DataError, match="this is a folder"):
        read_recording(tmp_path)
    monkeypatch.setitem(sys.modules, "rosbags.highlevel", None)
    with pytest.raises(DataError, match=r"extra 'bags' by pip install '\.\[bags\]'"):
        read_recording(folder)


@pytest.mark.parametrize(
    ("names", "joints", "found"),
    [
        ("t q2 q1 dq1 dq2 tau1 tau2", None, {"q": "q1 q2", "v": "dq1 dq2", "tau": "tau1 tau2"}),
        ("time pos_0 pos_1 vel_0 vel_1", ["a", "b"], {"q": "pos_0 pos_1", "v": "vel_0 vel_1"}),
        (
            "q_FL_hip qdes_FL_hip q_FR_hip",
            ["FR_hip_joint", "FL_hip_joint"],
            {"q": "q_FR_hip q_FL_hip"},
        ),
        ("pos_meas1 pos_meas2 pos_filt1 pos_des2", ["a", "b"], {"q": "pos_meas1 pos_meas2"}),
        (
            "position velocity torque",
            ["hinge"],
            {"q": "position", "v": "velocity", "tau": "torque"},
        ),
        ("elbow/position elbow/effort", ["elbow"], {"q": "elbow/position", "tau": "elbow/effort"}),
        (
            "q1 q2 tau_sensor1 tau_sensor2 cur1",
            ["joint_1", "joint_2"],
            {"q": "q1 q2", "tau": "tau_sensor1 tau_sensor2"},
        ),
    ],
)
def test_columns_by_their_names(names, joints, found):
    assert columns_of(names.split(), joints) == {k: x.split() for k, x in found.items()}


@pytest.mark.parametrize(
    ("names", "joints", "said"),
    [
        ("q1 pos1 q2", ["a", "b"], "'q1' and 'pos1' are both q of a"),
        ("q1 q2 tau1", ["a", "b"], "the columns of tau are tau1, and none is that of b"),
        ("q1 q2", ["a", "b", "finger"], "of finger; .*, or lock a joint that the log lacks"),
        ("q1 q2 q4", None, "none is that of joint 3"),
        ("q1 q2 q3", ["a", "b"], "the columns of q are q1, q2, q3, more than the 2"),
        ("t th1 th2", ["a", "b"], "no columns of q were found by their names; the columns are"),
    ],
)
def test_columns_whose_names_do_not_suffice(names, joints, said):
    with pytest.raises(DataError, match=said):
        columns_of(names.split(), joints)


def test_missing_rows_are_named(tmp_path):
    rows = [k for k in range(100) if k not in (40, 41, 42, 70)]
    text = "t,q1\n" + "".join(f"{0.01 * k:.4f},{k}\n" for k in rows)
    said = (
        r"4 rows are missing, by the times: 3 after line 41 \(0.39 s\), 1 after line 68 \(0.69 s\)"
    )
    with pytest.warns(UserWarning, match=said):
        read_recording(written(tmp_path, text))
