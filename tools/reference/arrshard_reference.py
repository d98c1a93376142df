#!/usr/bin/env python3
"""A second reader and writer of arrshard datasets, written from format-spec/README.md alone.

Standard library only, Python 3.9 or later, a POSIX system. It holds whole arrays in memory and is
slow on purpose: it is the plain twin that the real implementation is compared with.

    python3 arrshard_reference.py info DIR
    python3 arrshard_reference.py verify DIR
"""

import errno
import hashlib
import json
import os
import re
import stat
import struct
import sys
import zlib
from math import gcd, prod

MAGIC_SIDECAR = bytes.fromhex("9341525343524301")
HEADER_BYTES = 4096
PAGE_BYTES = 4096
BLOCK_BYTES = 1 << 20
DEFAULT_SHARD_BYTES = 1 << 30
MANIFEST_NAME = "arrshard.json"
MANIFEST_MAX_BYTES = 64 << 20
MANIFEST_MAX_DEPTH = 16
MANIFEST_PREFIX_BYTES = 26
NAME_MAX_BYTES = 255
FOLDER_MAX_BYTES = 240
MAX_DIMENSIONS = 64
VERSION_MAJOR = 1
VERSION_MINOR = 0
SIDECAR_HEADER_BYTES = 32

I64_MAX = (1 << 63) - 1
U64_MAX = (1 << 64) - 1

# Name in the manifest: (`descr` in a shard's header, bytes of an element).
DTYPES = {
    "bool": ("|b1", 1), "int8": ("|i1", 1), "int16": ("<i2", 2), "int32": ("<i4", 4),
    "int64": ("<i8", 8), "uint8": ("|u1", 1), "uint16": ("<u2", 2), "uint32": ("<u4", 4),
    "uint64": ("<u8", 8), "float16": ("<f2", 2), "bfloat16": ("<V2", 2), "float32": ("<f4", 4),
    "float64": ("<f8", 8), "complex64": ("<c8", 8), "complex128": ("<c16", 16),
}

MANIFEST_MEMBERS = {
    "_crc32": str, "arrays": list, "attributes": dict, "format": str, "generation": int,
    "id": str, "must_understand": list, "strings": list, "version": dict,
}
ARRAY_MEMBERS = {
    "attributes": dict, "dtype": str, "name": str, "rows_per_shard": int, "shape": list,
    "shards": list,
}
SHARD_MEMBERS = {
    "bytes": int, "crc32": str, "generation": int, "rows": int, "sidecar_crc32": str,
}


class Problem(Exception):
    """What is wrong, where, and of which kind (the names of the library's `ErrorKind`)."""

    def __init__(self, kind, place, text):
        super().__init__(f"{escape(os.fspath(place))}: {text}")
        self.kind = kind


def escape(text, limit=None):
    """Foreign text made safe for a terminal."""
    cut = text if limit is None else text[:limit]
    out = "".join(
        c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode("utf-8", "surrogatepass"))
        for c in cut
    )
    return out + ("..." if len(cut) < len(text) else "")


def quoted(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return '"' + escape(text, 40) + '"'


# --- section 3: geometry ------------------------------------------------------------------------


class Geometry:
    """Rows, blocks and shards of one array; pure arithmetic."""

    def __init__(self, shape, itemsize):
        self.rows = shape[0] if shape else 1
        self.row_bytes = prod(shape[1:]) * itemsize
        if self.row_bytes == 0:
            return
        self.rows_per_block = 1
        while self.rows_per_block * 2 * self.row_bytes <= BLOCK_BYTES:
            self.rows_per_block *= 2
        self.page_rows = PAGE_BYTES // gcd(self.row_bytes, PAGE_BYTES)

    def unit_below(self, less_than_a_block):
        """What rows_per_shard is a multiple of."""
        return self.page_rows if less_than_a_block else max(self.page_rows, self.rows_per_block)

    def rows_per_shard(self, shard_bytes):
        if self.row_bytes == 0:
            return max(1, self.rows)
        unit = self.unit_below(shard_bytes < self.rows_per_block * self.row_bytes)
        return max(1, shard_bytes // (unit * self.row_bytes)) * unit

    def rule(self, rows_per_shard):
        """(whether rows_per_shard keeps the rule, the rule)"""
        if self.row_bytes == 0:
            return rows_per_shard == max(1, self.rows), f"of {max(1, self.rows)}"
        unit = self.unit_below(rows_per_shard < self.rows_per_block)
        return rows_per_shard >= 1 and rows_per_shard % unit == 0, f"that is a multiple of {unit}"

    def shard_count(self, rows_per_shard):
        return max(1, -(-self.rows // rows_per_shard))

    def shard_rows(self, index, rows_per_shard):
        return min(rows_per_shard, self.rows - index * rows_per_shard)

    def block_count(self, rows):
        if self.row_bytes == 0:
            return 0
        if self.row_bytes <= BLOCK_BYTES:
            return -(-rows // self.rows_per_block)
        return rows * -(-self.row_bytes // BLOCK_BYTES)

    def blocks(self, rows):
        """(begin, end) in bytes of each block of a shard's data."""
        if self.row_bytes == 0:
            return
        if self.row_bytes <= BLOCK_BYTES:
            step = self.rows_per_block * self.row_bytes
            for begin in range(0, rows * self.row_bytes, step):
                yield begin, min(begin + step, rows * self.row_bytes)
        else:
            for row in range(0, rows * self.row_bytes, self.row_bytes):
                for begin in range(row, row + self.row_bytes, BLOCK_BYTES):
                    yield begin, min(begin + BLOCK_BYTES, row + self.row_bytes)


# --- sections 2, 4, 5: files and names ----------------------------------------------------------


def header_page(dtype, shape, rows):
    """The header page of a shard of `rows` rows."""
    shown = "()" if not shape else repr((rows, *shape[1:]))
    text = f"{{'descr': '{DTYPES[dtype][0]}', 'fortran_order': False, 'shape': {shown}, }}"
    fixed = b"\x93NUMPY\x01\x00" + struct.pack("<H", HEADER_BYTES - 10)
    return fixed + text.encode("ascii").ljust(HEADER_BYTES - 11) + b"\n"


def sidecar_bytes(geometry, rows, data):
    crcs = [zlib.crc32(data[a:b]) for a, b in geometry.blocks(rows)]
    return MAGIC_SIDECAR + struct.pack(f"<3Q{len(crcs)}I", geometry.row_bytes, rows, len(crcs), *crcs)


def name_problem(name):
    """Why `name` can't be an array's, or None."""
    if not 1 <= len(name.encode("utf-8")) <= NAME_MAX_BYTES:
        return f"expected a name of 1 to {NAME_MAX_BYTES} bytes, found {quoted(name)}"
    if any(ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F for c in name):
        return f"expected a name without control characters, found {quoted(name)}"
    if len(folder_of(name)) > FOLDER_MAX_BYTES:
        return f"expected a name whose folder is at most {FOLDER_MAX_BYTES} bytes, found {quoted(name)}"
    return None


def folder_of(name):
    if name == MANIFEST_NAME:
        return "arrshard%2Ejson"
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
    return "".join(
        chr(b) if b in plain and not (i == 0 and b == ord(".")) else f"%{b:02X}"
        for i, b in enumerate(name.encode("utf-8"))
    )


def shard_name(index, generation, suffix):
    middle = "" if generation == 1 else f".g{generation}"
    return f"{index:05}{middle}.{suffix}"


def open_below(folder_fd, name, place, want_folder=False):
    """A descriptor of a regular file (or folder) called `name`, and its length."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=folder_fd)
    except FileNotFoundError:
        raise Problem("NotFound", place, "expected a file or folder, found none") from None
    except OSError as e:
        kind = "Corrupt" if e.errno in (errno.ELOOP, errno.ENXIO, errno.ENOTDIR) else "Io"
        raise Problem(kind, place, f"could not open: {os.strerror(e.errno).lower()}") from None
    status = os.fstat(fd)
    right = stat.S_ISDIR if want_folder else stat.S_ISREG
    if not right(status.st_mode):
        os.close(fd)
        what = "folder" if want_folder else "regular file"
        raise Problem("Corrupt", place, f"expected a {what}, found something else")
    return fd, status.st_size


def read_exactly(fd, length, place):
    with os.fdopen(fd, "rb") as file:
        data = file.read(length + 1)
    if len(data) != length:
        raise Problem("Corrupt", place, f"expected {length} bytes, found another number")
    return data


# --- section 7: the manifest --------------------------------------------------------------------


def parse_manifest(data, place):
    """The manifest's JSON value, after all checks that concern bytes and syntax."""

    def refuse(text):
        raise Problem("Corrupt", place, text)

    prefix = re.match(rb'\{\n  "_crc32": "([0-9a-f]{8})",\n', data)
    if not prefix:
        refuse(f"expected `_crc32` as the first member, found {quoted(data[:26].decode('latin-1'))}")
    found = zlib.crc32(data[MANIFEST_PREFIX_BYTES:])
    if int(prefix.group(1), 16) != found:
        refuse(f"expected crc32 {prefix.group(1).decode()}, found {found:08x}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        refuse(f"expected UTF-8, found an invalid sequence at byte {e.start}")
    depth = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', text, re.DOTALL):
        if token.group()[0] in "[{":
            depth += 1
            if depth > MANIFEST_MAX_DEPTH:
                refuse(f"expected a depth of at most {MANIFEST_MAX_DEPTH}, found more")
        elif token.group()[0] in "]}":
            depth -= 1

    def object_of(pairs):
        value = dict(pairs)
        if len(value) != len(pairs):
            seen = set()
            twice = next(k for k, _ in pairs if k in seen or seen.add(k))
            refuse(f"expected each key once, found {quoted(twice)} twice: a duplicate key")
        return value

    def real(digits):
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            refuse(f"expected a number that a binary64 can hold, found {quoted(digits)}")
        return value

    def integer(digits):
        if digits == "-0" or len(digits) > 20:
            return real(digits)
        value = int(digits)
        return value if -(1 << 63) <= value <= U64_MAX else real(digits)

    def constant(word):
        refuse(f"expected JSON, found {word}")

    def check_text(value):
        if isinstance(value, str):
            value.encode("utf-8")
        elif isinstance(value, dict):
            for key, member in value.items():
                key.encode("utf-8")
                check_text(member)
        elif isinstance(value, list):
            for member in value:
                check_text(member)

    try:
        value = json.loads(
            text, object_pairs_hook=object_of, parse_float=real, parse_int=integer,
            parse_constant=constant,
        )
        check_text(value)
    except json.JSONDecodeError as e:
        refuse(f"expected JSON, found something else at line {e.lineno}: {e.msg.lower()}")
    except UnicodeEncodeError:
        refuse("expected UTF-8, found a lone surrogate in a string")
    return value


def check_members(value, members, place, what, unknown_allowed):
    if not isinstance(value, dict):
        raise Problem("Corrupt", place, f"{what}: expected an object, found {quoted(value)}")
    for key, kind in members.items():
        if key not in value:
            raise Problem("Corrupt", place, f"{what}: expected the member {key}, found none")
        check_type(value[key], kind, place, f"{what}: {key}")
    if not unknown_allowed:
        for key in value:
            if key not in members:
                raise Problem("Corrupt", place, f"{what}: found the unknown member {quoted(key)}")


def check_type(value, kind, place, what):
    if kind is int:
        good = type(value) is int and 0 <= value <= I64_MAX
    else:
        good = isinstance(value, kind)
    if not good:
        word = {int: "an integer from 0 to 2^63-1", str: "a string", list: "a list", dict: "an object"}
        raise Problem("Corrupt", place, f"{what}: expected {word[kind]}, found {quoted(value)}")


def check_manifest(m, place):
    """All checks of the manifest's content; (geometries by array name)."""

    def need(good, text, kind="Corrupt"):
        if not good:
            raise Problem(kind, place, text)

    # What any version has comes first, so that a reader can tell a future file from a bad one.
    need(isinstance(m, dict), "expected an object")
    need(m.get("format") == "arrshard", f"format: expected \"arrshard\", found {quoted(m.get('format'))}")
    version = m.get("version")
    check_members(version, {"major": int, "minor": int}, place, "version", True)
    need(version["major"] == VERSION_MAJOR,
         f"version: expected major {VERSION_MAJOR}, found {version['major']}", "Unsupported")
    check_type(m.get("must_understand"), list, place, "must_understand")
    for feature in m["must_understand"]:
        check_type(feature, str, place, "must_understand")
    need(not m["must_understand"],
         f"must_understand: expected nothing, found {quoted(m['must_understand'])}", "Unsupported")

    lenient = version["minor"] > VERSION_MINOR
    check_members(version, {"major": int, "minor": int}, place, "version", lenient)
    check_members(m, MANIFEST_MEMBERS, place, "manifest", lenient)
    for i, array in enumerate(m["arrays"]):
        check_members(array, ARRAY_MEMBERS, place, f"arrays[{i}]", lenient)
        for size in array["shape"]:
            check_type(size, int, place, f"arrays[{i}]: shape")
        for k, shard in enumerate(array["shards"]):
            check_members(shard, SHARD_MEMBERS, place, f"arrays[{i}]: shards[{k}]", lenient)
    for name in m["strings"]:
        check_type(name, str, place, "strings")

    need(m["generation"] >= 1, "generation: expected at least 1, found 0")
    names = set()
    for i, array in enumerate(m["arrays"]):
        problem = name_problem(array["name"])
        need(problem is None, f"arrays[{i}]: {problem}")
        need(array["name"] not in names, f"arrays[{i}]: expected distinct names, found {quoted(array['name'])} twice")
        names.add(array["name"])
    geometries = {}
    for array in m["arrays"]:
        name, shape, step = array["name"], array["shape"], array["rows_per_shard"]
        where = f"array {quoted(name)}"
        need(array["dtype"] in DTYPES,
             f"{where}: expected a known dtype, found {quoted(array['dtype'])}", "Unsupported")
        itemsize = DTYPES[array["dtype"]][1]
        need(len(shape) <= MAX_DIMENSIONS,
             f"{where}: expected a shape of at most {MAX_DIMENSIONS} dimensions, found {len(shape)}")
        need(prod(max(1, d) for d in shape) * itemsize <= I64_MAX,
             f"{where}: expected a shape of less than 2^63 bytes, found {quoted(shape)}")
        g = geometries[name] = Geometry(shape, itemsize)
        need(step * g.row_bytes + HEADER_BYTES <= I64_MAX,
             f"{where}: expected a rows_per_shard of less than 2^63 bytes, found {step}")
        good, rule = g.rule(step)
        need(good, f"{where}: expected a rows_per_shard {rule}, found {step}")
        count = g.shard_count(step)
        need(len(array["shards"]) == count,
             f"{where}: expected {count} shards for {g.rows} rows, found {len(array['shards'])}")
        for k, shard in enumerate(array["shards"]):
            here, rows = f"{where}: shards[{k}]", g.shard_rows(k, step)
            need(shard["rows"] == rows, f"{here}: expected {rows} rows, found {shard['rows']}")
            need(shard["bytes"] == rows * g.row_bytes,
                 f"{here}: expected {rows * g.row_bytes} bytes, found {shard['bytes']}")
            need(1 <= shard["generation"] <= m["generation"],
                 f"{here}: expected a generation of 1 to {m['generation']}, found {shard['generation']}")
            for key in ("crc32", "sidecar_crc32"):
                need(re.fullmatch("[0-9a-f]{8}", shard[key]),
                     f"{here}: {key}: expected 8 lower-case hex digits, found {quoted(shard[key])}")

    arrays = {array["name"]: array for array in m["arrays"]}
    seen = set(arrays)
    for name in m["strings"]:
        problem = name_problem(name)
        need(problem is None, f"strings: {problem}")
        need(name not in seen, f"strings: expected distinct names, found {quoted(name)} twice")
        seen.add(name)
        for suffix, dtype, least in ((".offsets", "uint64", 1), (".bytes", "uint8", 0)):
            half = arrays.get(name + suffix)
            need(half is not None, f"strings: expected the array {quoted(name + suffix)}, found none")
            good = half["dtype"] == dtype and len(half["shape"]) == 1 and half["shape"][0] >= least
            need(good, f"strings: {quoted(name + suffix)}: expected {dtype} of one dimension, "
                       f"found {half['dtype']} of shape {quoted(half['shape'])}")
    need(re.fullmatch("[0-9a-f]{32}", m["id"]) and m["id"] == identity(m["arrays"]),
         f"id: expected {identity(m['arrays'])}, found {quoted(m['id'])}")
    return geometries


def identity(arrays):
    lines = []
    for a in arrays:
        shape = ",".join(str(d) for d in a["shape"])
        lines.append(f"array {folder_of(a['name'])} {a['dtype']} {a['rows_per_shard']} {shape}\n")
        lines += [f"shard {s['rows']} {s['crc32']} {s['sidecar_crc32']}\n" for s in a["shards"]]
    return hashlib.sha256("".join(lines).encode("ascii")).hexdigest()[:32]


def manifest_text(value, depth=0):
    """JSON in the one spelling that writers use."""
    pad, end = "\n" + "  " * (depth + 1), "\n" + "  " * depth
    if isinstance(value, dict) and value:
        keys = sorted(value, key=lambda k: k.encode("utf-8"))
        body = ",".join(f"{pad}{json_string(k)}: {manifest_text(value[k], depth + 1)}" for k in keys)
        return "{" + body + end + "}"
    if isinstance(value, (list, tuple)) and value:
        return "[" + ",".join(pad + manifest_text(v, depth + 1) for v in value) + end + "]"
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, float):
        return json_float(value)
    if isinstance(value, int) and not -(1 << 63) <= value <= U64_MAX:
        raise Problem("InvalidArgument", "attributes", f"expected an integer of 64 bits, found {value}")
    return json.dumps(value)


def json_string(text):
    text.encode("utf-8")
    return json.dumps(text, ensure_ascii=False)


def json_float(value):
    if value != value or value in (float("inf"), float("-inf")):
        raise Problem("InvalidArgument", "attributes", f"expected a finite number, found {value}")
    sign, digits, exponent = re.fullmatch(r"(-?)([\d.]+)(?:e([+-]\d+))?", repr(value)).groups()
    whole, _, fraction = digits.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.lstrip("0").rstrip("0")
    if not digits:
        return sign + "0.0"
    if -5 <= point - 1 <= 15:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    mantissa = digits[0] + ("." + digits[1:] if digits[1:] else "")
    return f"{sign}{mantissa}e{point - 1:+d}" if point > 0 else f"{sign}{mantissa}e{point - 1}"


def manifest_bytes(m):
    body = manifest_text({**m, "_crc32": "0" * 8}).encode("utf-8") + b"\n"
    tail = body[MANIFEST_PREFIX_BYTES:]
    return b'{\n  "_crc32": "%08x",\n' % zlib.crc32(tail) + tail


# --- section 8: reading -------------------------------------------------------------------------


class Dataset:
    """An opened dataset: its manifest is checked, its shards are not touched yet."""

    def __init__(self, path):
        self.path = os.fspath(path)
        self.fd = self._open_folder()
        try:
            place = os.path.join(self.path, MANIFEST_NAME)
            fd, length = open_below(self.fd, MANIFEST_NAME, place)
            if not MANIFEST_PREFIX_BYTES <= length <= MANIFEST_MAX_BYTES:
                os.close(fd)
                raise Problem("Corrupt", place, f"expected {MANIFEST_PREFIX_BYTES} to "
                                                f"{MANIFEST_MAX_BYTES} bytes, found {length}")
            self.manifest = parse_manifest(read_exactly(fd, length, place), place)
            self.geometries = check_manifest(self.manifest, place)
        except Problem as problem:
            os.close(self.fd)
            if problem.kind == "NotFound":
                raise self._absent("a folder without a manifest") from None
            raise
        self.arrays = {a["name"]: a for a in self.manifest["arrays"]}

    def _open_folder(self):
        try:
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise self._absent("nothing or no folder") from None
        except OSError as e:
            raise Problem("Io", self.path, f"could not open: {os.strerror(e.errno).lower()}") from None

    def _absent(self, found):
        if self._is_being_built():
            return Problem("Incomplete", self.path, "expected a sealed dataset, found one being written")
        return Problem("NotFound", self.path, f"expected a dataset, found {found}")

    def _is_being_built(self):
        parent, name = os.path.split(os.path.abspath(self.path))
        staged = name.startswith(".") and name.endswith(".building") and len(name) > len("..building")
        return staged or os.path.isdir(os.path.join(parent, f".{name}.building"))

    def close(self):
        os.close(self.fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def shards(self, name):
        """The data of an array's shards, as (place, data), with the checks of the stage `map`."""
        array = self.arrays[name]
        folder = folder_of(name)
        folder_place = os.path.join(self.path, folder)
        folder_fd, _ = open_below(self.fd, folder, folder_place, want_folder=True)
        try:
            for index, shard in enumerate(array["shards"]):
                file = shard_name(index, shard["generation"], "npy")
                place = os.path.join(folder_place, file)
                fd, length = open_below(folder_fd, file, place)
                if length != HEADER_BYTES + shard["bytes"]:
                    os.close(fd)
                    raise Problem("Corrupt", place, f"expected {HEADER_BYTES + shard['bytes']} bytes, found {length}")
                whole = read_exactly(fd, length, place)
                if whole[:HEADER_BYTES] != header_page(array["dtype"], array["shape"], shard["rows"]):
                    raise Problem("Corrupt", place, "expected the npy header of its dtype and shape, found another")
                data = whole[HEADER_BYTES:]
                if array["dtype"] == "bool" and data.translate(None, b"\0\1"):
                    raise Problem("Corrupt", place, "expected bool bytes of 0 or 1, found another value")
                yield place, data
        finally:
            os.close(folder_fd)

    def read(self, name):
        """The bytes of a whole array."""
        return b"".join(data for _, data in self.shards(name))

    def string_halves(self, name):
        raw = self.read(name + ".offsets")
        offsets = struct.unpack(f"<{len(raw) // 8}Q", raw)
        data = self.read(name + ".bytes")
        place = os.path.join(self.path, folder_of(name + ".offsets"))
        if offsets[0] != 0:
            raise Problem("Corrupt", place, f"expected offsets that begin with 0, found {offsets[0]}")
        if offsets[-1] != len(data):
            raise Problem("Corrupt", place, f"expected offsets that end with {len(data)}, found {offsets[-1]}")
        return offsets, data, place

    def strings(self, name):
        """The values of a string array, each one checked."""
        offsets, data, place = self.string_halves(name)
        out = []
        for i, (a, b) in enumerate(zip(offsets, offsets[1:])):
            if not a <= b <= len(data):
                raise Problem("Corrupt", place, f"row {i}: expected offsets in order and within "
                                                f"{len(data)} bytes, found {a} and {b}")
            try:
                out.append(data[a:b].decode("utf-8"))
            except UnicodeDecodeError:
                raise Problem("Corrupt", place, f"row {i}: expected UTF-8, found {quoted(data[a:b].decode('latin-1'))}") from None
        return out

    def map_all(self):
        """The stage `map` for every array."""
        out = {n: (a["dtype"], tuple(a["shape"]), self.read(n)) for n, a in self.arrays.items()}
        for name in self.manifest["strings"]:
            self.string_halves(name)
        return out

    def verify(self):
        """The stage `verify`: everything that a reader can check."""
        self.map_all()
        for name, array in self.arrays.items():
            g = self.geometries[name]
            folder_place = os.path.join(self.path, folder_of(name))
            folder_fd, _ = open_below(self.fd, folder_of(name), folder_place, want_folder=True)
            try:
                for index, (place, data) in enumerate(self.shards(name)):
                    self._verify_blocks(folder_fd, folder_place, index, array["shards"][index], g, place, data)
            finally:
                os.close(folder_fd)
        for name in self.manifest["strings"]:
            self.strings(name)

    def _verify_blocks(self, folder_fd, folder_place, index, shard, g, place, data):
        file = shard_name(index, shard["generation"], "crc")
        side_place = os.path.join(folder_place, file)
        count = g.block_count(shard["rows"])
        fd, length = open_below(folder_fd, file, side_place)
        if length != SIDECAR_HEADER_BYTES + 4 * count:
            os.close(fd)
            raise Problem("Corrupt", side_place, f"expected {SIDECAR_HEADER_BYTES + 4 * count} bytes, found {length}")
        side = read_exactly(fd, length, side_place)
        if f"{zlib.crc32(side):08x}" != shard["sidecar_crc32"]:
            raise Problem("Corrupt", side_place, f"expected crc32 {shard['sidecar_crc32']}, found {zlib.crc32(side):08x}")
        if side[:8] != MAGIC_SIDECAR:
            raise Problem("Corrupt", side_place, "expected the magic of a sidecar, found other bytes")
        fields = struct.unpack_from("<3Q", side, 8)
        for what, want, found in zip(("row_bytes", "rows", "blocks"), (g.row_bytes, shard["rows"], count), fields):
            if want != found:
                raise Problem("Corrupt", side_place, f"expected {what} {want}, found {found}")
        crcs = struct.unpack_from(f"<{count}I", side, SIDECAR_HEADER_BYTES)
        for k, ((a, b), want) in enumerate(zip(g.blocks(shard["rows"]), crcs)):
            if zlib.crc32(data[a:b]) != want:
                raise Problem("Corrupt", place, f"block {k}: expected crc32 {want:08x}, found {zlib.crc32(data[a:b]):08x}")
        if f"{zlib.crc32(data):08x}" != shard["crc32"]:
            raise Problem("Corrupt", place, f"expected crc32 {shard['crc32']}, found {zlib.crc32(data):08x}")


def read(path):
    """Every array of a dataset: {name: (dtype, shape, bytes)}."""
    with Dataset(path) as dataset:
        return dataset.map_all()


def verify(path):
    """Checks everything; raises the first `Problem`."""
    with Dataset(path) as dataset:
        dataset.verify()


# --- section 9: writing -------------------------------------------------------------------------


def physical(arrays):
    """Plain arrays and names of string arrays: a value is (dtype, shape, bytes[, attributes]) or a list of str."""
    plain, strings = [], []
    for name, value in arrays.items():
        if isinstance(value, list):
            encoded = [s.encode("utf-8") for s in value]
            offsets = [0]
            for s in encoded:
                offsets.append(offsets[-1] + len(s))
            strings.append(name)
            plain.append((name + ".offsets", "uint64", (len(offsets),), struct.pack(f"<{len(offsets)}Q", *offsets), {}))
            plain.append((name + ".bytes", "uint8", (offsets[-1],), b"".join(encoded), {}))
        else:
            dtype, shape, data, *rest = value
            plain.append((name, dtype, tuple(shape), data, rest[0] if rest else {}))
    for name in [p[0] for p in plain] + strings:
        problem = name_problem(name)
        if problem:
            raise Problem("InvalidArgument", "name", problem)
    return plain, strings


def write_file(folder, name, data):
    with open(os.path.join(folder, name), "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_array(root, name, dtype, shape, data, attributes, rows_per_shard, generation, kept=()):
    """Writes the shards after the `kept` ones; the array's entry in the manifest."""
    g = Geometry(shape, DTYPES[dtype][1])
    if len(data) != g.rows * g.row_bytes:
        raise Problem("InvalidArgument", name, f"expected {g.rows * g.row_bytes} bytes, found {len(data)}")
    folder = os.path.join(root, folder_of(name))
    shards = list(kept)
    for index in range(len(shards), g.shard_count(rows_per_shard)):
        rows = g.shard_rows(index, rows_per_shard)
        begin = index * rows_per_shard * g.row_bytes
        part = data[begin:begin + rows * g.row_bytes]
        side = sidecar_bytes(g, rows, part)
        write_file(folder, shard_name(index, generation, "npy"), header_page(dtype, shape, rows) + part)
        write_file(folder, shard_name(index, generation, "crc"), side)
        shards.append({
            "bytes": len(part), "crc32": f"{zlib.crc32(part):08x}", "generation": generation,
            "rows": rows, "sidecar_crc32": f"{zlib.crc32(side):08x}",
        })
    sync_folder(folder)
    return {"attributes": attributes, "dtype": dtype, "name": name, "rows_per_shard": rows_per_shard,
            "shape": list(shape), "shards": shards}


def write_manifest(root, name, manifest):
    manifest["id"] = identity(manifest["arrays"])
    data = manifest_bytes(manifest)
    if len(data) > MANIFEST_MAX_BYTES:
        raise Problem("InvalidArgument", root, f"expected a manifest of at most {MANIFEST_MAX_BYTES} bytes")
    check_manifest(parse_manifest(data, root), root)
    write_file(root, name, data)


def write(path, arrays, attributes=None, shard_bytes=DEFAULT_SHARD_BYTES):
    """Writes a new dataset of `arrays`: {name: (dtype, shape, bytes[, attributes]) or list of str}."""
    path = os.path.abspath(path)
    parent, name = os.path.split(path)
    if os.path.lexists(path):
        raise Problem("Exists", path, "already exists")
    plain, strings = physical(arrays)
    staging = os.path.join(parent, f".{name}.building")
    os.mkdir(staging)
    entries = []
    for array, dtype, shape, data, own in plain:
        os.mkdir(os.path.join(staging, folder_of(array)))
        rows_per_shard = Geometry(shape, DTYPES[dtype][1]).rows_per_shard(shard_bytes)
        entries.append(write_array(staging, array, dtype, shape, data, own, rows_per_shard, 1))
    write_manifest(staging, MANIFEST_NAME, {
        "arrays": entries, "attributes": attributes or {}, "format": "arrshard", "generation": 1,
        "must_understand": [], "strings": strings, "version": {"major": VERSION_MAJOR, "minor": VERSION_MINOR},
    })
    sync_folder(staging)
    os.rename(staging, path)
    sync_folder(parent)


def append(path, rows, arrays=None, shard_bytes=DEFAULT_SHARD_BYTES):
    """Writes the next generation: `rows` {name: bytes of more rows}, `arrays` as in `write`."""
    with Dataset(path) as old:
        manifest, before = old.manifest, {n: old.read(n) for n in rows}
    if manifest["version"]["minor"] > VERSION_MINOR:
        raise Problem("Unsupported", path, "expected a version that this program can write, found a newer one")
    generation = manifest["generation"] = manifest["generation"] + 1
    for entry in manifest["arrays"]:
        if entry["name"] not in rows:
            continue
        g = Geometry(entry["shape"], DTYPES[entry["dtype"]][1])
        if not entry["shape"] or g.row_bytes == 0 or len(rows[entry["name"]]) % g.row_bytes:
            raise Problem("InvalidArgument", path, f"{entry['name']}: expected whole rows")
        added = len(rows[entry["name"]]) // g.row_bytes
        shape = (g.rows + added, *entry["shape"][1:])
        kept = [s for s in entry["shards"] if s["rows"] == entry["rows_per_shard"] or not added]
        entry.update(write_array(path, entry["name"], entry["dtype"], shape, before[entry["name"]] + rows[entry["name"]],
                                 entry["attributes"], entry["rows_per_shard"], generation, kept))
    plain, strings = physical(arrays or {})
    for array, dtype, shape, data, own in plain:
        os.mkdir(os.path.join(path, folder_of(array)))
        step = Geometry(shape, DTYPES[dtype][1]).rows_per_shard(shard_bytes)
        manifest["arrays"].append(write_array(path, array, dtype, shape, data, own, step, generation))
    manifest["strings"] += strings
    write_manifest(path, ".arrshard.json.next", manifest)
    os.rename(os.path.join(path, ".arrshard.json.next"), os.path.join(path, MANIFEST_NAME))
    sync_folder(path)


# --- command line -------------------------------------------------------------------------------


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in ("info", "verify"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    command, path = arguments
    try:
        with Dataset(path) as dataset:
            if command == "verify":
                dataset.verify()
                print(f"{escape(path)}: every checksum is right")
            else:
                print(f"id {dataset.manifest['id']}, generation {dataset.manifest['generation']}")
                for name, a in dataset.arrays.items():
                    print(f"{escape(name)}: {a['dtype']} {tuple(a['shape'])}, {len(a['shards'])} shards")
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1 if command == "verify" and problem.kind == "Corrupt" else 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
