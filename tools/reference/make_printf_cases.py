#!/usr/bin/env python3
"""Writes tests/data/printf.tsv: what np.savetxt makes of many formats and values.

Usage: make_printf_cases.py > tests/data/printf.tsv        (needs NumPy 2.3 or later)

One row of a table a line, in four columns: the formats (one, or one per column, joined by U+241F), the dtype,
the bits of each value as hex (joined by commas, the two parts of a complex value by a colon), and the text
that np.savetxt writes with the delimiter `;` and no line end, or `!` where it raises. `%r` and `%a` are taken
from Python's own float, whose repr NumPy wrote before version 2.
"""

import io
import itertools
import random
import sys

import numpy as np

JOIN = "\u241f"
random.seed(5)

DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.125, 1e-4, 9.999e-5, 99.95, 0.1, 1 / 3, -2 / 3, 9.5, 9.995, 999999.5,
    123456.789, 123456789012345.0, 1e15, 1e16, 1e17, 1e22, 1e23, 18446744073709551616.0, 2.5e20, -1e-7, 5e-324,
    2.2250738585072014e-308, 1.7976931348623157e308, 4.35, 0.000123456, -0.00001, 8.41e21, 9007199254740993.0,
    float("nan"), float("inf"), float("-inf"),
]
INTS = [0, 1, -1, 7, -42, 99, 100, 12345, -99999999, 100000000, 2**31 - 1, 10**16, -(10**17), 2**63 - 1, -(2**63)]


def bits(v):
    def one(x):
        return x.tobytes()[::-1].hex()

    return one(v.real) + ":" + one(v.imag) if np.iscomplexobj(v) else one(v)


def case(formats, dtype, values):
    row = np.array([values], dtype=dtype)
    out = io.StringIO()
    try:
        np.savetxt(out, row, fmt=formats[0] if len(formats) == 1 else formats, delimiter=";", newline="")
        text = out.getvalue()
    except (TypeError, ValueError, OverflowError, AttributeError):
        text = "!"
    line(formats, dtype, row[0], text)


def line(formats, dtype, row, text):
    print(JOIN.join(formats), dtype, ",".join(bits(v) for v in row), text, sep="\t")


def spec(letters):
    flags = "".join(f for f in "-+ #0" if random.random() < 0.3)
    width = random.choice(["", "", "5", "12", "30"])
    precision = random.choice(["", ".", ".0", ".1", ".3", ".10", ".17", ".18", ".21", ".30"])
    return "%" + flags + width + precision + random.choice(letters)


def main():
    np.seterr(all="ignore")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    plain = ["%e", "%.0e", "%.18e", "%.5f", "%.0f", "%f", "%g", "%.17g", "%s", "%d", "%#.3g", "%012.4f", "%+.2E", "% G"]
    for fmt, v in itertools.product(plain, DOUBLES):
        case([fmt], "float64", [v])
    for v in DOUBLES:
        for _ in range(12):
            case([spec("eEfFgGd")], "float64", [v if abs(v) < 1e300 else v / 1e290])
        exponent = random.randint(-40, 40)
        v = random.choice([-1, 1]) * random.random() * 10.0**exponent
        for _ in range(5):
            case([spec("eEfFgGsdiu")], "float64", [v])
        fmt = random.choice(["%r", "%a", "%12r", "%-25a|"])
        line([fmt], "float64", [np.float64(v)], fmt % v)

    for v in INTS:
        for fmt in ["%d", "%x", "%o", "%X", "%#x", "%#o", "%e", "%g", "%.2f", "%s", "%5d", "%-5d|", "%05d", "%+i", "% u"]:
            case([fmt], "int64", [v])
        for _ in range(8):
            case([spec("diuxXoegs").replace(".30", ".25")], "int64", [v])
    for dtype in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"]:
        limits = np.iinfo(dtype)
        for v in [limits.min, limits.max, 5]:
            for fmt in ["%d", "%x", "%#012o", "%.3e", "%s", "%7d", "%.18e"]:
                case([fmt], dtype, [v])
    for v in [True, False]:
        for fmt in ["%d", "%x", "%o", "%e", "%g", "%s", "%6s", "%.2s", "%-7s|", "%5.1f", "%+d"]:
            case([fmt], "bool", [v])
    halves = [0.0, -0.0, 1.0, 0.1, 1e-4, 9.9e-5, 6e-8, 999.0, 1000.0, 999.5, 2049.0, 65504.0, float("nan"), float("-inf")]
    floats = [0.1, 1e-4, 1.0001e-4, 999999.94, 1e6, 16777216.0, 1e16, 3.4e38, 1e-45, -0.0, -2.5, 123456789.0, float("inf")]
    for dtype, values in (("float16", halves), ("float32", floats)):
        for v in values:
            for fmt in ["%s", "%d", "%.18e", "%.3f", "%g", "%10.5s|", "%x"]:
                case([fmt], dtype, [v])

    parts = [1.5, -2.0, 0.0, -0.0, 1e-300, float("nan"), float("-inf")]
    for re, im in itertools.product(parts, parts):
        v = complex(re, im)
        for fmt in ["%.18e", "% .2f", "%+.3e", "%s"]:
            case([fmt], "complex128", [v, v.conjugate()])
    for dtype in ["complex64", "complex128"]:
        two = [1.1 - 2.2j, -3.3 + 0.1j]
        for formats in [["%.3e"], ["%6.2f%+6.2fj", "(%g%+gj)"], ["%.3e + %.3ej", "(%.15e%+.15ej)"], ["%g %g|%g %g"], ["%g"] * 2,
                        ["%g %g %g"], ["x=%d+-%d"] * 2, ["%x"], ["%s"], ["%+g++%+g"] * 2]:
            case(formats, dtype, two)
    for formats in [["%d", "%.2f", "%s"], ["%d;%d", "x", "%g"], ["a%db", "%5.1f%%", "%-8s|"], ["%d-%.1f-%e"], ["%d"], ["%d %d"], ["x=%5.2f;"],
                    ["%d", "%d"], ["%x", "%d", "%d"], ["no"], ["%d"] * 4, ["é%gé", "%g", "%g€"], ["%ld", "%hd", "%Lf"], ["%lld", "%d", "%d"]]:
        case(formats, "float64", [1.25, -2.5, 1e10])
        case(formats, "int32", [1, -2, 10])
    for fmt in ["%", "%y", "%d%", "%5.-3d", "%(a)d", "%z", "%.d", "%.e", "%0+-05d|", "%c", "%lg", "%hhd", "x", ""]:
        case([fmt], "float64", [2.5])


main()
