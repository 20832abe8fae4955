"""Files with something wrong in them: small robots and configurations, changed at random."""

import random
import re
from collections.abc import Callable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

_INERTIA = '<inertia ixx="{0}" ixy="0" ixz="0" iyy="{0}" iyz="0" izz="{0}"/>'


def _link(name: str, mass: float) -> str:
    about = _INERTIA.format(0.1 * mass)
    return (
        f'<link name="{name}"><inertial><origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="{mass}"/>'
        f'{about}</inertial><visual><geometry><box size="1 1 1"/></geometry></visual></link>'
    )


def _joint(name: str, kind: str, parent: str, child: str, more: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0 0 0.5" rpy="0.1 0 0"/><axis xyz="0 1 0"/>'
        f'<limit lower="-1" upper="2" velocity="3" effort="4"/>'
        f'<dynamics damping="0.5" friction="0.25"/>{more}</joint>'
    )


URDF = (
    '<robot name="r">\n'
    + "\n".join(_link(name, mass) for name, mass in zip("abcde", (1, 2, 3, 4, 5), strict=True))
    + "\n"
    + _joint("j", "revolute", "a", "b", '<difflie armature="0.1" spring_reference="0.2"/>')
    + _joint("k", "prismatic", "b", "c")
    + _joint("l", "continuous", "b", "d", '<mimic joint="j" multiplier="2" offset="0.1"/>')
    + _joint("m", "fixed", "d", "e")
    + "\n</robot>"
)

MJCF = """<mujoco model="r"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
<default><joint armature="0.1" damping="0.2"/></default>
<worldbody><body name="a" pos="0 0 1"><freejoint name="f"/>
<inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/><site name="s" pos="0.1 0 0"/>
<body name="b" pos="0.5 0 0" quat="1 0 0 0"><joint name="j" axis="0 1 0" range="-1 1"/>
<inertial pos="0 0 0.1" mass="2" diaginertia="0.1 0.2 0.2"/><site name="t" pos="0 0 0.1"/></body>
<body name="c" pos="-0.5 0 0"><joint name="k" type="slide" axis="1 0 0" stiffness="3"/>
<geom type="sphere" size="0.1" mass="3"/></body></body></worldbody>
<equality><connect name="e" body1="b" body2="c" anchor="0 0 0.2"/></equality>
<tendon><spatial name="n" stiffness="5"><site site="s"/><site site="t"/></spatial></tendon>
<actuator><motor name="m" joint="j" gear="2" ctrlrange="-1 1"/></actuator></mujoco>"""

CONFIG = """[system]
file = "r.urdf"
base = "fixed"
gravity = [0.0, 0.0, -9.81]

[initial]
v = [0.0, 0.1]
[initial.joints]
j = 0.3

[simulation]
dt = 1e-3
steps = 200
method = "RKMK4"
save_every = 10

[control]
effort = [0.0, 1.0]
stiffness = [1.0, 2.0]
target = [0.1, 0.2]

[[spring]]
path = [{body = "b", point = [0.1, 0.0, 0.0]}, {point = [0.0, 0.0, 1.0]}]
stiffness = 200.0
rest_length = 0.3

[[contact]]
path = [{point = [0.0, 0.0, 0.0]}, {body = "c", point = [0.0, 0.0, 0.1]}]
normal = [0.0, 0.0, 1.0]
stiffness = 1e5

[[joint_stop]]
joints = ["j"]
stiffness = 500.0

[[constraint]]
type = "SphericalConstraint"
first = {body = "c", position = [0.3, 0.0, 0.0]}
second = {position = [1.0, 0.0, 0.2], axis = [0, 1, 0]}
"""

STUDY = """[system]
file = "r.urdf"
gravity = [0.0, 0.0, -9.81]

[data]
columns.q = ["q1", "q2"]
columns.tau = ["t1", "t2"]
time = "time"
scale.q = 0.0174533
smooth = 5
order = 2

[[run]]
file = "r.csv"
from = 0.0
to = 3.0
weight = 2.0

[[run]]
file = "r.csv"
use = "validate"

[[parameter]]
path = "*/inertial"

[[parameter]]
path = "j/friction"
start = 0.1
lower = 0.0
prior = [0.1, 0.05]

[[drive]]
joint = "j"
load_friction = 0.1

[[sensor]]
name = "imu"
kind = "gyroscope"
body = "b"
rotation = [0.0, 0.0, 1.57]
columns = ["t1", "t2", "q1"]
deviation = [0.1, 0.2, 0.1]

[fit]
error = "torque"
torque = 0.1
loss = "huber"
steps = 10

[validation]
window = 0.5
"""

CSV = "time,q1,q2,t1,t2\n" + "".join(
    f"{0.1 * k:.1f},{k % 7},{k % 5 - 2.5},{0.5 * k},{-k}e-1\n" for k in range(20)
)

FILES = {"urdf": URDF, "mjcf": MJCF, "config": CONFIG, "study": STUDY, "csv": CSV}

_VALUES = (
    *("", " ", "0", "-0.0", "1", "-1", "2.5", "1e-320", "1e-30", "1e30", "1e308", "-1e308"),
    *("nan", "NaN", "inf", "-inf", "1e999", "0x10", "1_0", "1,5", "1 2 3", "0 0 0", "1 0 0 0"),
    *(str(2**31), str(2**63), str(-(2**63) - 1), "9" * 5000, "0." + "1" * 5000, "1" + "0" * 400),
    *("true", "[]", "[[1]]", "{}", "{a = 1}", '"x"', "1979-05-27", "''", "[1.0]", "[1, 2, 3, 4]"),
    *("a", "b", "j", "k", "world", "revolute", "free", "ball", "deg", "radian", "fixed"),
    *(
        "x" * 5000,
        "x y",
        "ä",
        "日本",
        "\u202e",
        "\u0663",
        "\ud7ff",
        "a\u0000",
        "%s",
        "${x}",
        "&#0;",
    ),
    *("&amp;", "&no;", "<", ">", '"', "'", "]]>", "../../etc/passwd", "/", ".", "~", "\\", "#"),
)
_TAGS = (
    *("link", "joint", "robot", "mimic", "inertial", "origin", "axis", "limit", "difflie", "body"),
    *("geom", "include", "mujoco", "xacro:if", "x", "é", "a.b", "frame", "replicate", "attach"),
)


def mutated(kind: str, seed: int) -> bytes:
    """The file of a kind after one to three changes; the same for the same seed."""
    rng = random.Random(f"{kind} {seed}")
    text = FILES[kind]
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = _changed(kind, text, rng)
    data = text.encode("utf-8", "replace")
    if rng.random() < 0.2:
        data = rng.choice(_OF_BYTES)(data, rng)
    return data


def _changed(kind: str, text: str, rng: random.Random) -> str:
    if kind in ("urdf", "mjcf") and rng.random() < 0.7:
        try:
            root = ElementTree.fromstring(text)
        except (ElementTree.ParseError, ValueError):
            return text
        rng.choice(_OF_TREES)(root, rng)
        try:
            return ElementTree.tostring(root, encoding="unicode")
        except (TypeError, RecursionError):
            return text
    return rng.choice(_OF_XML if kind in ("urdf", "mjcf") else _OF_LINES)(text, rng)


# Of elements.


def _some(root: Element, rng: random.Random) -> Element:
    return rng.choice(list(root.iter()))


def _parent(root: Element, rng: random.Random) -> Element:
    return rng.choice([e for e in root.iter() if len(e)] or [root])


def _delete(root: Element, rng: random.Random) -> None:
    parent = _parent(root, rng)
    if len(parent):
        parent.remove(rng.choice(list(parent)))


def _duplicate(root: Element, rng: random.Random) -> None:
    parent = _parent(root, rng)
    if len(parent):
        child = rng.choice(list(parent))
        for _ in range(rng.choice((1, 1, 30))):
            parent.append(child)


def _swap(root: Element, rng: random.Random) -> None:
    one, other = _parent(root, rng), _parent(root, rng)
    if len(one) and len(other):
        i, j = rng.randrange(len(one)), rng.randrange(len(other))
        if not {one, other} & {*one[i].iter(), *other[j].iter()}:
            one[i], other[j] = other[j], one[i]


def _nest(root: Element, rng: random.Random) -> None:
    parent = _parent(root, rng)
    if len(parent):
        i = rng.randrange(len(parent))
        wrapped = Element(rng.choice((*_TAGS, parent.tag)))
        wrapped.append(parent[i])
        parent[i] = wrapped


def _rename(root: Element, rng: random.Random) -> None:
    element = _some(root, rng)
    near = element.tag[:-1] or "x"
    element.tag = rng.choice((*_TAGS, near, element.tag + "s", element.tag.upper()))


def _attribute(root: Element, rng: random.Random) -> None:
    """One is set, dropped, renamed, or gets the value of another."""
    element = rng.choice([e for e in root.iter() if e.attrib] or [root])
    name = rng.choice([*element.attrib, "name"])
    value = element.attrib.pop(name, "")
    others = [v for e in root.iter() for v in e.attrib.values()]
    words = value.split()
    new = rng.choice(
        (
            lambda: {name: rng.choice(_VALUES)},
            lambda: {name: rng.choice(_VALUES)},
            lambda: {name: rng.choice(others or [""])},
            dict,
            lambda: {name[:-1] or "n": value},
            lambda: {rng.choice(("name", "type", "mass", "xyz", "pos", "axis")): value},
            lambda: {name: " ".join([*words, rng.choice(_VALUES)])},
            lambda: {name: " ".join(words[1:])},
            lambda: {name: " ".join([rng.choice(_VALUES), *words[1:]])},
        )
    )()
    element.attrib.update({k: _spoken(v) for k, v in new.items()})


def _add(root: Element, rng: random.Random) -> None:
    tags = [*_TAGS, *(e.tag for e in root.iter())]
    new = Element(rng.choice(tags), {"name": rng.choice(("a", "b", "j", "new"))})
    _some(root, rng).append(new)


def _deepen(root: Element, rng: random.Random) -> None:
    element, tag = _some(root, rng), rng.choice(_TAGS[:6])
    for _ in range(rng.choice((5, 90, 400))):
        new = Element(tag, {"name": "a"})
        element.append(new)
        element = new


def _cycle(root: Element, rng: random.Random) -> None:
    """The ends of joints are exchanged or made one link."""
    ends = [e for e in root.iter() if "link" in e.attrib or "body1" in e.attrib]
    for element in rng.sample(ends, min(len(ends), 2)):
        for name in element.attrib:
            element.set(name, rng.choice("abcde"))


_OF_TREES: tuple[Callable[[Element, random.Random], None], ...] = (
    *(_delete, _duplicate, _swap, _nest, _rename, _attribute, _attribute, _attribute, _attribute),
    *(_add, _deepen, _cycle),
)


def _spoken(value: str) -> str:
    """Without what no XML can hold; that comes in as text."""
    return value.replace("\u0000", "")


# Of texts.


def _value(text: str, rng: random.Random) -> str:
    """A number, word or quoted text becomes another."""
    places = list(re.finditer(r'"[^"]*"|-?[\d.]+(?:e-?\d+)?|\b\w+\b', text))
    if not places:
        return text
    at, new = rng.choice(places), rng.choice(_VALUES)
    if at[0].startswith('"') and rng.random() < 0.7:
        new = f'"{new}"'
    return text[: at.start()] + new + text[at.end() :]


def _line(text: str, rng: random.Random) -> str:
    """A line is left out, comes twice or elsewhere, or is cut."""
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    change = rng.randrange(5)
    if change == 0:
        del lines[i]
    elif change == 1:
        lines.insert(j, lines[i])
    elif change == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif change == 3:
        lines[i] = lines[i][: rng.randrange(len(lines[i]) + 1)]
    else:
        lines[i] += rng.choice(_VALUES)
    return "\n".join(lines)


def _key(text: str, rng: random.Random) -> str:
    """A key or a table's name is misspelt, or a table is made another kind of table."""
    places = list(re.finditer(r"(?m)^(\[*)([\w.]+)|([{,] ?)(\w+)(?= =)", text))
    if not places:
        return text
    at = rng.choice(places)
    word, front = at[2] or at[4] or "x", at[1] or at[3] or ""
    near = rng.choice((word[:-1] or "x", word + "s", word.upper(), word[::-1], f'"{word}"', "new"))
    return text[: at.start()] + front + near + text[at.end() :]


def _table(text: str, rng: random.Random) -> str:
    old, new = rng.choice(
        (("[[", "["), ("]]", "]"), ("[", "[["), ("=", ":"), ("{", "["), (",", ""))
    )
    places = [m.start() for m in re.finditer(re.escape(old), text)]
    if not places:
        return text
    at = rng.choice(places)
    return text[:at] + new + text[at + len(old) :]


def _deep(text: str, rng: random.Random) -> str:
    depth = rng.choice((5, 30, 3000))
    new = rng.choice(
        (
            f"deep = {'[' * depth}{']' * depth}",
            f"deep = {'{a = ' * depth}1{'}' * depth}",
            f"{'a.' * depth}a = 1",
            f"[{'a.' * depth}a]",
            f"{'[' * depth}a{']' * depth}",
        )
    )
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines)), new)
    return "\n".join(lines)


def _cut(text: str, rng: random.Random) -> str:
    start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return rng.choice((text[:start], text[start:], text[:start] + text[end:], "", text * 2))


def _character(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice("<>&\"'=[]{}#\u0000\n\r\t\ufeff\u200b,;") + text[at:]


def _entity(text: str, rng: random.Random) -> str:
    declared = rng.choice(
        (
            '<!ENTITY x "1">',
            "<!ENTITY x \"<link name='x'/>\">",
            '<!ENTITY x SYSTEM "other.xml">',
            '<!ENTITY % x SYSTEM "other.dtd"> %x;',
            '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;"><!ENTITY x "&b;&b;&b;&b;">',
            '<!ENTITY x "&x;">',
            '<!ATTLIST joint type CDATA "fixed">',
            '<!ATTLIST mass value CDATA "7">',
            "<!ELEMENT robot ANY>",
        )
    )
    doctype = rng.choice(
        (
            f"<!DOCTYPE r [{declared}]>",
            '<!DOCTYPE r SYSTEM "r.dtd">',
            f'<!DOCTYPE r SYSTEM "r" [{declared}]>',
        )
    )
    used = rng.random() < 0.7
    if used:
        places = [m.end() for m in re.finditer(r'>|="', text)]
        if places:
            at = rng.choice(places)
            text = text[:at] + "&x;" + text[at:]
    return doctype + text


_OF_XML = (_value, _value, _line, _cut, _character, _entity, _entity)
_OF_LINES = (*(_value,) * 6, _line, _line, _key, _key, _table, _deep, _cut, _character)


# Of bytes.


def _flip(data: bytes, rng: random.Random) -> bytes:
    new = bytearray(data)
    for _ in range(rng.choice((1, 3, 20))):
        if new:
            new[rng.randrange(len(new))] ^= 1 << rng.randrange(8)
    return bytes(new)


_OF_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip,
    lambda data, rng: b"\xef\xbb\xbf" + data,
    lambda data, rng: data.replace(b"\n", b"\r\n"),
    lambda data, rng: data.replace(b"\n", b"\r"),
    lambda data, rng: data.decode("utf-8", "replace").encode("utf-16"),
    lambda data, rng: data[: rng.randrange(len(data) + 1)],
    lambda data, rng: data + bytes(rng.randrange(256) for _ in range(50)),
    lambda data, rng: b'<?xml version="1.0" encoding="latin-1"?>' + data,
)
