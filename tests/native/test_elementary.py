"""Elementary functions in LLVM IR: how exact they are, and the same in all widths."""

import ctypes
import math

import mpmath
import numpy as np
import pytest

from difflie.native.cpu.elementary import NAMES, definitions, symbol

llvm = pytest.importorskip("llvmlite.binding")

TYPES = {"f64": (np.float64, "double"), "f32": (np.float32, "float")}
WIDTHS = {"f64": (1, 8), "f32": (1, 16)}
BOUNDS = {"sin": 0.8, "cos": 0.8, "tan": 1.1, "exp": 0.8, "tanh": 0.9, "logistic": 0.8}
PERIODIC = ("sin", "cos", "tan")
ALL = [(name, dtype, n) for dtype, widths in WIDTHS.items() for name in NAMES for n in widths]
WRITTEN = [(name, dtype) for dtype in TYPES for name in BOUNDS]


def loop(name, dtype, lanes):
    """A function `run_...` that applies one of ours to arrays, so many lanes at a time."""
    one, callee = TYPES[dtype][1], symbol(name, dtype, lanes)
    t = one if lanes == 1 else f"<{lanes} x {one}>"
    results = [t, t] if name == "sincos" else [t]
    whole = f"{{{t}, {t}}}" if name == "sincos" else t
    given, lines = [], []
    for x in ("x", "y")[: NAMES[name]]:
        lines.append(f"  %at_{x} = getelementptr {one}, ptr %{x}, i64 %i")
        lines.append(
            f"  %in_{x} = load {t}, ptr %at_{x}, align {np.dtype(TYPES[dtype][0]).itemsize}"
        )
        given.append(f"{t} %in_{x}")
    lines.append(f"  %all = call {whole} {callee}({', '.join(given)})")
    for i in range(len(results)):
        found = "%all"
        if name == "sincos":
            found = f"%found{i}"
            lines.append(f"  {found} = extractvalue {whole} %all, {i}")
        lines.append(f"  %to{i} = getelementptr {one}, ptr %out{i}, i64 %i")
        lines.append(f"  store {t} {found}, ptr %to{i}, align {np.dtype(TYPES[dtype][0]).itemsize}")
    return "\n".join(
        [
            f"define void @run_{callee[1:]}(i64 %n, ptr %x, ptr %y, ptr %out0, ptr %out1) {{",
            "  br label %body",
            "body:",
            "  %i = phi i64 [0, %0], [%next, %body]",
            *lines,
            f"  %next = add i64 %i, {lanes}",
            "  %more = icmp ult i64 %next, %n",
            "  br i1 %more, label %body, label %end",
            "end:",
            "  ret void",
            "}",
        ]
    )


@pytest.fixture(scope="module")
def call():
    """A function (name, dtype, lanes, x, y) of arrays; all functions are compiled in one go."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(definitions(ALL) + "\n".join(loop(*one) for one in ALL))
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
    )
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 4)

    def called(name, dtype, lanes, x, y=0.0):
        f = kind(engine.get_function_address(f"run_{symbol(name, dtype, lanes)[1:]}"))
        x, y = np.broadcast_arrays(np.asarray(x, TYPES[dtype][0]), np.asarray(y, TYPES[dtype][0]))
        n = x.size
        x, y = (np.r_[v, np.ones(-n % lanes, v.dtype)] for v in (x, y))
        out = np.empty((2, len(x)), x.dtype)
        f(len(x), *(v.ctypes.data for v in (x, y, *out)))
        return out[:, :n] if name == "sincos" else out[0, :n]

    called.engine = engine  # the code lives as long as this
    return called


def exact(name, x):
    if name == "logistic":
        return 1 / (1 + mpmath.exp(-x))
    return getattr(mpmath, name)(x)


def ulps(name, found, xs):
    """The largest distance from the true results, in units of their last place."""
    info, worst = np.finfo(found.dtype), 0.0
    # near a zero of the sine 1e22 and 1e300 have no digits to spare
    with mpmath.workprec(1300 if max(abs(xs)) > 1e9 else 200):
        for y, x in zip(found, xs, strict=True):
            true = exact(name, mpmath.mpf(float(x)))
            exponent = max(mpmath.frexp(true)[1] - 1, info.minexp) if true else info.minexp
            unit = mpmath.ldexp(1, int(exponent) - info.nmant)
            worst = max(worst, float(abs(mpmath.mpf(float(y)) - true) / unit))
    return worst


def arguments(name, dtype):
    """Ordinary and tiny ones, and those at which the function turns or ends."""
    rng = np.random.default_rng(list(NAMES).index(name))
    tiny = np.finfo(TYPES[dtype][0]).tiny
    parts = [rng.uniform(-1, 1, 150), rng.uniform(-6, 6, 150), 10.0 ** rng.uniform(-12, 0, 100)]
    parts.append(np.array([tiny, -tiny, tiny / 8, -tiny / 1024, 3 * tiny]))
    if name in PERIODIC:
        k = np.round(np.r_[np.arange(-20, 20), rng.uniform(-6e4, 6e4, 200)])
        parts += [k * (np.pi / 2), k * (np.pi / 2) * (1 + 1e-6), k * (np.pi / 4)]
        parts += [rng.uniform(-1e5, 1e5, 150), [99_999.9, -1e5, 1.00001e5, 573204.0]]
        parts.append(almost_multiples(TYPES[dtype][0]))
        if dtype == "f64":
            parts.append(np.round(rng.uniform(-6e8, 6e8, 100)) * (np.pi / 2))
            parts.append(rng.uniform(-1e9, 1e9, 100))
    elif name == "tanh":
        parts.append(rng.uniform(-25, 25, 300))
    else:
        end = {"f64": 709.7, "f32": 88.7}[dtype]
        parts += [rng.uniform(-end, end, 300), rng.uniform(-1.05 * end, -0.97 * end, 150)]
    return np.concatenate(parts).astype(TYPES[dtype][0])


def almost_multiples(kind):
    """The numbers below 1e5 that are closest to multiples of pi / 2."""
    with mpmath.workprec(300):
        half = int(mpmath.ldexp(mpmath.pi / 2, 200))
    near = [(k, kind(k * half / 2**200)) for k in range(1, 63_662)]
    near.sort(key=lambda pair: abs(pair[0] * half - (int(math.ldexp(pair[1], 60)) << 140)))
    return np.array([x for _, x in near[:60]])


@pytest.mark.parametrize(("name", "dtype"), WRITTEN)
def test_exact_within_the_bound(call, name, dtype):
    """The bounds that the module states hold over all ranges."""
    x = arguments(name, dtype)
    assert ulps(name, call(name, dtype, WIDTHS[dtype][1], x), x) < BOUNDS[name]


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for d in TYPES for n in PERIODIC])
def test_far_out(call, name, dtype):
    """Huge arguments are reduced as exactly as small ones, and leave the other lanes alone."""
    kind = TYPES[dtype][0]
    x = np.array([1e6, 1e9, -1.1e9, 1e22, 0.9e38, -3e38, 1e300, -1.7e308])
    x = x[abs(x) < np.finfo(kind).max].astype(kind)
    width = WIDTHS[dtype][1]
    assert ulps(name, call(name, dtype, width, x), x) < 1.1
    mixed = np.tile(np.linspace(-3, 3, width, dtype=kind), 2)
    near = call(name, dtype, width, mixed)
    mixed[3] = 1e30
    found = call(name, dtype, width, mixed)
    assert np.array_equal(np.delete(found, 3), np.delete(near, 3)) and found[3] != near[3]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", TYPES)
def test_same_in_all_widths(call, name, dtype):
    """A lane's result has the same bits whatever the number of lanes, and sincos those of both."""
    rng = np.random.default_rng(5)
    x = np.r_[
        rng.uniform(-3, 3, 300), 10.0 ** rng.uniform(-30, 30, 100), rng.uniform(-1e4, 1e4, 97)
    ]
    x = np.r_[x, 0.0, -0.0, math.inf, -math.inf, math.nan]
    one, many = (call(name, dtype, n, x, x[::-1]) for n in WIDTHS[dtype])
    assert np.array_equal(one, many, equal_nan=True)
    assert np.array_equal(np.signbit(one[one == 0]), np.signbit(many[many == 0]))
    if name == "sincos":
        for which, found in zip(("sin", "cos"), many, strict=True):
            lanes = WIDTHS[dtype][1]
            assert np.array_equal(found, call(which, dtype, lanes, x), equal_nan=True)


SPECIAL = {
    "sin": ([0.0, -0.0, math.inf, -math.inf, math.nan], [0.0, -0.0, *[math.nan] * 3]),
    "cos": ([0.0, -0.0, math.inf, -math.inf, math.nan], [1.0, 1.0, *[math.nan] * 3]),
    "tan": ([0.0, -0.0, math.inf, -math.inf, math.nan], [0.0, -0.0, *[math.nan] * 3]),
    "exp": (
        [0.0, -0.0, math.inf, -math.inf, math.nan, 709.79, -745.2, 1e30, -1e30],
        [1.0, 1.0, math.inf, 0.0, math.nan, math.inf, 0.0, math.inf, 0.0],
    ),
    "tanh": (
        [0.0, -0.0, math.inf, -math.inf, math.nan, 20.0, -20.0, 1e30],
        [0.0, -0.0, 1.0, -1.0, math.nan, 1.0, -1.0, 1.0],
    ),
    "logistic": (
        [0.0, -0.0, math.inf, -math.inf, math.nan, 40.0, 1e30, -1e30],
        [0.5, 0.5, 1.0, 0.0, math.nan, 1.0, 1.0, 0.0],
    ),
}


@pytest.mark.parametrize(("name", "dtype"), WRITTEN)
def test_special_numbers(call, name, dtype):
    """Zeros keep their signs; overflow, infinities and NaN give what they should."""
    x, expected = (np.array(v, TYPES[dtype][0]) for v in SPECIAL[name])
    for lanes in WIDTHS[dtype]:
        found = call(name, dtype, lanes, x)
        assert np.array_equal(found, expected, equal_nan=True)
        numbers = ~np.isnan(expected)
        assert np.array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


LIBM = {
    "log": np.log,
    "pow": np.power,
    "atan2": np.arctan2,
    "rem": np.fmod,
    **{n: getattr(np, n) for n in ("exp2", "expm1", "log1p", "sinh", "cosh", "cbrt")},
    **{n: getattr(np, n.replace("a", "arc", 1)) for n in ("asin", "acos", "atan")},
    **{n: getattr(np, n.replace("a", "arc", 1)) for n in ("asinh", "acosh", "atanh")},
    **{n: np.vectorize(getattr(math, n)) for n in ("erf", "erfc")},
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(BOUNDS) - {"sincos"}))
def test_functions_of_libm(call, name, dtype):
    """Every function of libm that is called is found in the process, and is the right one."""
    kind = TYPES[dtype][0]
    x = np.linspace(0.05, 0.95, 40).astype(kind) + (name == "acosh")
    y = np.linspace(-3, 3, 40).astype(kind)[::-1]
    operands = (x, y)[: NAMES[name]]
    expected = LIBM[name](*(v.astype(float) for v in operands))
    found = call(name, dtype, WIDTHS[dtype][1], *operands)
    np.testing.assert_allclose(found, expected, rtol=4 * float(np.finfo(kind).eps))


def test_text():
    """Each function and declaration is there once, whatever the order in which they are asked."""
    used = [("sin", "f64", 8), ("log", "f32", 4), ("sincos", "f64", 8), ("exp", "f64", 1)]
    text = definitions(used)
    assert text == definitions([*reversed(used), used[0]])
    heads = [line for line in text.splitlines() if line.startswith(("declare", "define"))]
    assert len(heads) == len(set(heads))
    assert all(symbol(*one) + "(" in text for one in used)
    llvm.parse_assembly(text).verify()
    with pytest.raises(ValueError, match="no elementary function floor"):
        symbol("floor", "f64", 8)
