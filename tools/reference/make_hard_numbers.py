"""Writes tests/data/numbers/hard.tsv: decimals that are hard to convert, with the right bits.

    python tools/reference/make_hard_numbers.py

needs nothing but Python. Each line: the text, then the bits of the nearest float64, float32 and
float16 in hexadecimal, ties to even, overflow to infinity. Each is rounded from the exact rational
value, so float32 and float16 are never rounded twice. The same file comes out on every run.
"""

import random
import struct
from fractions import Fraction
from pathlib import Path

OUT = Path(__file__).resolve().parents[2] / "tests" / "data" / "numbers" / "hard.tsv"

# (bits of the stored fraction, bits of the exponent)
F64, F32, F16 = (52, 11), (23, 8), (10, 5)


def exact(text):
    """The value of a decimal literal as a fraction, and whether it has a minus sign."""
    body = text.lower()
    minus = body.startswith("-")
    body = body.lstrip("+-")
    mantissa, _, exponent = body.partition("e")
    whole, _, part = mantissa.partition(".")
    digits = int(whole + part)
    scale = int(exponent or 0) - len(part)
    if digits == 0:
        return Fraction(0), minus
    size = len(str(digits)) + scale
    # Beyond every type by far: not worth a power of ten with a billion digits.
    if size > 400:
        return Fraction(10) ** 400, minus
    if size < -420:
        return Fraction(1, 10**420), minus
    return Fraction(digits) * Fraction(10) ** scale, minus


def bits(value, minus, kind):
    """The bits of the nearest number of this kind to `value` >= 0, ties to even."""
    fraction, exponent = kind
    bias = (1 << (exponent - 1)) - 1
    sign = int(minus) << (fraction + exponent)
    if value == 0:
        return sign
    # 2**e <= value < 2**(e+1)
    e = value.numerator.bit_length() - value.denominator.bit_length()
    if value < Fraction(2) ** e:
        e -= 1
    e = max(e, 1 - bias)
    unit = Fraction(2) ** (e - fraction)
    n = round(value / unit)  # Python rounds a Fraction half to even
    # Normal numbers: n has fraction+1 bits; a carry goes into the exponent by itself.
    raw = ((e + bias) << fraction) + n - (1 << fraction) if n >= 1 << fraction else n
    return sign | min(raw, ((1 << exponent) - 1) << fraction)


def number(raw, kind):
    """The value of finite bits without sign, the inverse of `bits`."""
    fraction, exponent = kind
    bias = (1 << (exponent - 1)) - 1
    e, m = raw >> fraction, raw & ((1 << fraction) - 1)
    if e == 0:
        return Fraction(m) * Fraction(2) ** (1 - bias - fraction)
    return Fraction(m | 1 << fraction) * Fraction(2) ** (e - bias - fraction)


def decimal(value):
    """A fraction with a denominator of twos as the exact decimal digits and the exponent of ten."""
    twos = value.denominator.bit_length() - 1
    return str(value.numerator * 5**twos), -twos


def spellings(value, rng):
    """The exact decimal of `value`, and its neighbours one unit of the last digit away."""
    digits, scale = decimal(value)
    for d in (0, 1, -1):
        yield write(str(int(digits) + d), scale, rng)
    # A single digit far beyond the end decides.
    yield write(digits + "0" * 15 + "1", scale - 16, rng)


def write(digits, scale, rng):
    """digits x 10**scale, with the point in a place that does not cost many zeros."""
    where = scale + len(digits)
    if digits.strip("0") and -8 <= where <= 0:
        return "0." + "0" * -where + digits
    if 0 < where < len(digits) and rng.random() < 0.5:
        return digits[:where] + "." + digits[where:]
    if scale == 0:
        return digits
    form = rng.randrange(3)
    if form == 0:
        return f"{digits}e{scale}"
    if form == 1 and len(digits) > 1:
        return f"{digits[0]}.{digits[1:]}E{where - 1:+d}"
    return f"0.{digits}e{where}"


def long_way(value):
    return len(decimal(value)[0])


def rows():
    rng = random.Random(20)

    # Literals people have tripped over, and the edges.
    yield from """0 -0 0.0 -0.0 00 000.000 0e0 0e999999999 -0.0e-99999999999999999999 1 -1 +1 1. .5 5. +.5 -.5e-3
        1e5 1E+05 1e05 00012.5 1e000000000000000000000000000000002 0.1 0.2 0.3 2.5e-1 9.5E-7 .1969E-02 1e-400 10E-617 1e-999999999999
        9007199254740991 9007199254740992 9007199254740993 9007199254740994 9007199254740995
        9007199254740993.0000000000000000000001 9007199254740992.9999999999999999999999
        16777216 16777217 16777218 16777219 2048 2049 2050 2051 2052
        1.00000000000000011102230246251565404 1.00000000000000011102230246251565405
        0.500000000000000166533453693773481063544750213623046875
        2.2250738585072011e-308 2.2250738585072012e-308 2.2250738585072014e-308 2.225073858507201136057409796709131975934819546351645648023426109724822222021076945516529523908135087914149158913039621106870086438694594645527657207407820621743379988141063267329253552286881372149012981122451451889849057222307285255133155755015914397476397983411801999323962548289017107081850690630666655994938275772572015763062690663332647565300009245888316433037779791869612049497390377829704905051080609940730262937128958950003583799967207254304360284078895771796150945516748243471030702609144621572289880258182545180325707018860872113128079512233426288368622321503775666622503982534335974568884423900265498198385487948292206894721689831099698365846814022854243330660339850886445804001034933970427567186443383770486037861622771738545623065874679014086723327636718751234567890123456789012345678901e-308
        1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 8.98846567431158e307 1e308 1e309 1e999999999999 771E050012
        4.9406564584124654e-324 4.94065645841246544e-324 2.4703282292062327e-324 2.4703282292062328e-324 5e-324 3e-324 2e-324
        3.4028234663852886e38 3.4028235677973366e38 3.4028235677973367e38 3.4028235e38 1e39 1.1754943508222875e-38 1.4012984643248170e-45 7.006492321624085e-46 7.006492321624086e-46
        65504 65519 65519.99999999999999999999999 65520 65520.00000000000000000000001 656e2 65536 6.103515625e-05 5.9604644775390625e-8 2.98023223876953125e-8 2.98023223876953126e-8 8.94069671630859375e-8
        6929495644600919.5 3.7455744005952583e15 2.2250738585072011e-308 123456789012345678 18446744073709551615 18446744073709551616 9223372036854775807 9223372036854775808
        1448997445238699 10971553e-323 7.8459735791271921e65 3.571e266 3.08984926168550152811e-32 89255.0e-22 104308485241983990666713401708072175773165034278682682111762656292811e-350""".split()

    # Powers of ten, and the same from digits with trailing zeros.
    for e in range(-350, 311):
        yield f"1e{e}"
    for e in range(-30, 31, 5):
        yield f"123456789{'0' * 25}e{e - 25}"
        yield f"0.{'0' * 25}123456789e{e + 25}"

    # The borders: least and greatest subnormal, least normal, greatest; the midpoints beside them.
    for kind in (F64, F32, F16):
        fraction, exponent = kind
        top = ((1 << exponent) - 1) << fraction
        for raw in (0, 1, 2, (1 << fraction) - 1, 1 << fraction, top - 1):
            here = number(raw, kind)
            half = (number(raw + 1, kind) - here) / 2 if raw + 1 < top else (here - number(raw - 1, kind)) / 2
            if here and (kind != F64 or long_way(here) < 320 or raw in (1, top - 1, 1 << fraction)):
                yield from spellings(here, rng)
            if kind != F64 or raw in (0, (1 << fraction) - 1, top - 1):
                yield from spellings(here + half, rng)

    # Ties between neighbours, where the exact decimal is short enough for a table.
    for kind, count, longest in ((F64, 60, 110), (F32, 90, 60), (F16, 90, 40)):
        fraction, exponent = kind
        made = 0
        while made < count:
            raw = rng.randrange(1, ((1 << exponent) - 1) << fraction)
            if kind == F64:  # where the digits are few: around one
                bias = (1 << (exponent - 1)) - 1
                raw = (rng.randrange(bias - 20, bias + 60) << fraction) | rng.getrandbits(fraction)
            middle = (number(raw, kind) + number(raw + 1, kind)) / 2
            if raw + 1 < ((1 << exponent) - 1) << fraction and long_way(middle) <= longest:
                made += 1
                yield from spellings(middle, rng)
    # A few that need all their digits.
    for raw in (0x0000000000000003, 0x0123456789ABCDEF):
        yield from spellings((number(raw, F64) + number(raw + 1, F64)) / 2, rng)

    # 17 digits and the borders where a 64-bit mantissa ends.
    for _ in range(120):
        yield f"{rng.randrange(10**16, 10**17)}e{rng.randrange(-330, 300)}"
    for n in (15, 16, 17, 18, 19, 20, 21):
        for _ in range(12):
            digits = str(rng.randrange(10 ** (n - 1), 10**n))
            yield write(digits, rng.choice((0, 0, -n, -n // 2, rng.randrange(-40, 30))), rng)
        yield "9" * n
        yield "1" + "0" * (n - 1)
        yield "1" + "0" * (n - 2) + "1"
    for near in (2**53, 2**63, 2**64, 10**19, 10**20):
        for d in range(-4, 5):
            yield f"{near + d}"
            yield f"{near + d}e{rng.randrange(-60, 20)}"

    # Long digit strings, random, and all nines.
    for n in (20, 25, 40, 80, 160, 320, 400, 767, 768, 769, 800):
        for _ in range(8 if n < 100 else 1):
            digits = str(rng.randrange(10 ** (n - 1), 10**n))
            yield write(digits, rng.randrange(-n - 20, -n + 20), rng)
        if n not in (767, 769):
            yield f"0.{'9' * n}"
            yield f"1{'0' * n}1e-{n + 1}"

    # Exponents that undo many zeros, or overflow a careless counter.
    for n in (50, 330):
        yield f"0.{'0' * n}7e{n + 1}"
        yield f"7{'0' * n}e-{n}"
    yield from ("1e2147483647", "1e2147483648", "1e-2147483648", "1e9223372036854775808", "1e-9223372036854775809", "0e18446744073709551616")

    # Doubles of every size, as C and Python write them.
    def double():
        while True:
            value = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0]
            if value == value and abs(value) != float("inf"):
                return value

    for _ in range(130):
        yield f"{double():.17g}"
    for _ in range(130):
        yield f"{double():.16e}"
    for _ in range(130):
        yield repr(double())
    for kind, form in ((F32, "<f"), (F16, "<e")):
        for _ in range(90):
            raw = rng.randrange(1, ((1 << kind[1]) - 1) << kind[0])
            value = struct.unpack(form, struct.pack("<I" if kind == F32 else "<H", raw))[0]
            yield f"{value:.9g}" if kind == F32 else f"{value:.5g}"
    for places in range(31):
        for _ in range(10):
            yield f"{rng.choice((-1, 1)) * rng.random() * 10 ** rng.randrange(-3, 16):.{places}f}"


def main():
    seen, lines = set(), []
    for text in rows():
        if text in seen:
            continue
        seen.add(text)
        value, minus = exact(text)
        f64, f32, f16 = (bits(value, minus, kind) for kind in (F64, F32, F16))
        # Python's own conversion is a second opinion on the doubles.
        assert struct.pack("<d", float(text)) == struct.pack("<Q", f64), text
        lines.append(f"{text}\t{f64:016x}\t{f32:08x}\t{f16:04x}\n")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("".join(lines), encoding="ascii", newline="\n")
    print(f"{len(lines)} lines, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
