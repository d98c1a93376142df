#!/usr/bin/env python3
"""Writes format-spec/vectors/golden and format-spec/vectors/bad anew, always with the same bytes.

    python3 make_vectors.py [FOLDER]

A bad dataset has one thing wrong; whatever depends on it (the manifest's CRC, the id, a sidecar's
CRC) is made right again, so that the rule named is the first that fails.
"""

import hashlib
import json
import os
import shutil
import struct
import sys
import zlib

import arrshard_reference as ref

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "..", "..", "format-spec", "vectors")

# --- expected.json ------------------------------------------------------------------------------

STRUCT = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
    "uint32": "I", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
}
BITS = {2: "H", 4: "I", 8: "Q"}


def show(value):
    """A float as JSON can hold it."""
    return value if value - value == 0 else "nan" if value != value else "inf" if value > 0 else "-inf"


def elements(dtype, data):
    """(values, hex bits or None) of an array's elements in C order."""
    if dtype.startswith("complex"):
        values, bits = elements("float32" if dtype == "complex64" else "float64", data)
        return list(zip(values[::2], values[1::2])), list(zip(bits[::2], bits[1::2]))
    size = ref.DTYPES[dtype][1]
    count = len(data) // size
    if dtype == "bfloat16":
        words = struct.unpack(f"<{count}H", data)
        values = struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(w << 16 for w in words)))
        return [show(v) for v in values], [f"{w:04x}" for w in words]
    values = struct.unpack(f"<{count}{STRUCT[dtype]}", data)
    if not dtype.startswith("float"):
        return list(values), None
    words = struct.unpack(f"<{count}{BITS[size]}", data)
    return [show(v) for v in values], [f"{w:0{2 * size}x}" for w in words]


def expected(path, shard_bytes):
    with ref.Dataset(path) as dataset:
        manifest = dataset.manifest
        arrays = []
        for name, entry in dataset.arrays.items():
            data = dataset.read(name)
            about = {
                "attributes": entry["attributes"], "dtype": entry["dtype"], "folder": ref.folder_of(name),
                "name": name, "rows_per_shard": entry["rows_per_shard"],
                "sha256": hashlib.sha256(data).hexdigest(), "shape": entry["shape"],
                "shards": len(entry["shards"]),
            }
            if len(data) <= 4096:
                values, bits = elements(entry["dtype"], data)
                about["values"] = values
                if bits is not None:
                    about["bits"] = bits
            else:
                row_bytes, step = dataset.geometries[name].row_bytes, entry["rows_per_shard"]
                last = entry["shape"][0] - 1
                picked = sorted({0, min(step, 1024) - 1, min(step, 1024), last - 1, last})
                about["rows"] = {
                    r: elements(entry["dtype"], data[r * row_bytes:(r + 1) * row_bytes])[0] for r in picked
                }
            arrays.append(about)
        strings = [{"name": n, "values": dataset.strings(n)} for n in manifest["strings"]]
        return {
            "arrays": arrays, "attributes": manifest["attributes"], "generation": manifest["generation"],
            "id": manifest["id"], "shard_bytes": shard_bytes, "strings": strings,
        }


def write_json(path, value):
    """One member a line, lists of objects one object a line."""
    lines = []
    for key, member in value.items():
        if isinstance(member, list) and member and isinstance(member[0], dict):
            body = ",\n".join("    " + json.dumps(m, ensure_ascii=False, allow_nan=False) for m in member)
            lines.append(f"  {json.dumps(key)}: [\n{body}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(member, ensure_ascii=False, allow_nan=False)}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


# --- golden -------------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")


def ints(dtype):
    size = ref.DTYPES[dtype][1]
    low, high = (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1) if dtype[0] == "i" else (0, (1 << 8 * size) - 1)
    values = [0, 1, low, high, high - 1, 42]
    return dtype, (len(values),), struct.pack(f"<{len(values)}{STRUCT[dtype]}", *values)


def words(dtype, code, values):
    size = ref.DTYPES[dtype][1]
    data = struct.pack(f"<{len(values)}{code}", *values)
    return dtype, (len(data) // size,), data


def every_dtype():
    return {
        "bool": ("bool", (5,), b"\0\1\1\0\1"),
        **{d: ints(d) for d in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
        # zero, -0, one, the largest, the least, an infinity, a quiet NaN with a payload, 1/3
        "float16": words("float16", "H", [0, 0x8000, 0x3C00, 0x7BFF, 1, 0xFC00, 0x7E01, 0x3555]),
        "bfloat16": words("bfloat16", "H", [0, 0x8000, 0x3F80, 0x7F7F, 1, 0xFF80, 0x7FC1, 0x3EAB]),
        "float32": words("float32", "I", [0, 1 << 31, 0x3F800000, 0x7F7FFFFF, 1, 0xFF800000, 0x7FC00001, 0x3EAAAAAB]),
        "float64": words("float64", "Q", [0, 1 << 63, 0x3FF << 52, 0x7FEFFFFFFFFFFFFF, 1, 0xFFF << 52,
                                          0x7FF8000000000001, 0x3FD5555555555555]),
        "complex64": words("complex64", "f", [1.5, -2.25, 0.0, -0.0, INF, 0.1]),
        "complex128": words("complex128", "d", [1.5, -2.25, 0.0, -0.0, -INF, 0.1]),
    }


def counting(dtype, shape):
    count = ref.prod(shape)
    return dtype, shape, struct.pack(f"<{count}{STRUCT[dtype]}", *range(count))


def shapes():
    return {
        "scalar": ("float64", (), struct.pack("<d", 2.5)),
        "one": counting("int16", (7,)),
        "two": counting("float32", (5, 3)),
        "three": counting("int32", (2, 3, 4)),
        "five": counting("uint8", (1, 3, 1, 2, 1)),
        "no rows": counting("int64", (0,)),
        "no rows of three": counting("float32", (0, 3)),
        "rows of nothing": counting("float32", (3, 0)),
        "nothing of nothing": counting("uint8", (0, 0, 2)),
    }


def several_shards():
    return {
        "bytes": ("uint8", (20_000,), bytes(i % 251 for i in range(20_000))),
        "bools": ("bool", (8193,), bytes(i % 3 == 0 for i in range(8193))),
        "matrix": counting("int32", (2500, 3)),
        "last is full": counting("float64", (2048,)),
        "wide": ("complex128", (3, 256), struct.pack("<1536d", *range(1536))),
        "text": [f"{i}: größe" for i in range(1100)],
    }


def two_blocks():
    # 516 bytes a row: 1024 rows a block, the least a full block can be.
    values = [r * 1000 + c for r in range(1027) for c in range(129)]
    return {"data": ("int32", (1027, 129), struct.pack(f"<{len(values)}i", *values))}


TEXTS = ["", "plain", "größe", "日本語", "", "🦀 and \"quotes\"", "line\nbreak\ttab", "nul \0 inside", ""]
NAMES = ["price/unit", "..", ".hidden", "arrshard.json", "100%", "größe", "a b", "%2E", "日本"]
ATTRIBUTES = {
    "": "an empty key", "nested": {"list": [1, [2, [3, []]], {}], "null": None, "true": True, "false": False},
    "floats": [0.1, 1.0, -0.0, 1e-4, 1e-5, 1.234e-5, 1e-6, 1e15, 1e16, 1.5e300, 5e-324, 123456789.125],
    "integers": [0, -1, (1 << 63) - 1, -(1 << 63), (1 << 64) - 1], "ünïcode": "日本 🦀 \u007f",
    "escapes": "\" \\ / \b \f \n \r \t \u0001 \u001f", "deep": [[[[[[[[[[[["fourteen"]]]]]]]]]]]],
}


def golden(root):
    shard_sizes = {}

    def new(name, arrays, attributes=None, shard_bytes=ref.DEFAULT_SHARD_BYTES):
        path = os.path.join(root, name, "dataset")
        os.makedirs(os.path.dirname(path))
        ref.write(path, arrays, attributes, shard_bytes)
        shard_sizes[name] = shard_bytes
        return path

    new("dtypes", every_dtype())
    new("shapes", shapes())
    new("several-shards", several_shards(), shard_bytes=10_000)
    new("two-blocks", two_blocks())
    new("strings", {"id": counting("uint32", (9,)), "text": TEXTS, "no text": []})
    new("names", {n: counting("uint8", (2,)) for n in NAMES})
    new("no-arrays", {})
    column = (*counting("int16", (3,)), {"unit": "m", "scale": 0.5})
    new("attributes", {"a": column}, ATTRIBUTES)

    # Of `long`, the first shard stays, the second is written anew, the third is new.
    long = [counting("int64", (n,))[2] for n in (600, 1100)]
    path = new("generation-2", {
        "grown": counting("int32", (3, 2)), "kept": counting("uint8", (4,)), "long": ("int64", (600,), long[0]), "text": TEXTS[:2],
    }, shard_bytes=1)
    more = {
        "grown": struct.pack("<4i", 6, 7, 8, 9), "long": long[1][len(long[0]):],
        "text.offsets": struct.pack("<1Q", 5 + 7), "text.bytes": TEXTS[2].encode("utf-8"),
    }
    ref.append(path, more, {"added": counting("float64", (2,))}, shard_bytes=1)

    # Of a later minor version: members that 1.0 does not know, wherever an object can have them.
    path = new("later-minor", {"a": counting("int32", (3,))})
    manifest = load(path)
    manifest["version"].update({"minor": 7, "patch": 1})
    manifest["colour"] = {"a": ["b"]}
    manifest["arrays"][0]["units"] = "m"
    manifest["arrays"][0]["shards"][0]["host"] = 1.5
    store(path, manifest)

    # Another spelling of the same JSON: other order, spacing and escapes, no newline at the end.
    path = new("other-spelling", {"a": counting("int32", (3,))}, {"é/": 1.5})
    manifest = load(path)
    del manifest["_crc32"]
    compact = json.dumps(dict(reversed(list(manifest.items()))), separators=(" ,\t", ":\r\n"))
    seal_text(path, compact[1:].replace("/", "\\/").replace("1.5", "15E-1").encode())

    for name, shard_bytes in shard_sizes.items():
        path = os.path.join(root, name, "dataset")
        ref.verify(path)
        write_json(os.path.join(root, name, "expected.json"), expected(path, shard_bytes))


# --- bad ----------------------------------------------------------------------------------------


def load(path):
    with open(os.path.join(path, ref.MANIFEST_NAME), encoding="utf-8") as file:
        return json.load(file)


def store(path, manifest, new_id=True):
    """Writes a changed manifest with its CRC, and unless told otherwise its id, made right."""
    if new_id:
        manifest["id"] = ref.identity(manifest["arrays"])
    put(path, ref.MANIFEST_NAME, ref.manifest_bytes(manifest))


def seal_text(path, tail):
    """Writes a manifest of the bytes `tail` after its first 26."""
    put(path, ref.MANIFEST_NAME, b'{\n  "_crc32": "%08x",\n' % zlib.crc32(tail) + tail)


def get(path, name):
    with open(os.path.join(path, name), "rb") as file:
        return file.read()


def put(path, name, data):
    with open(os.path.join(path, name), "wb") as file:
        file.write(data)


def flip(path, name, offset, mask=1):
    data = bytearray(get(path, name))
    data[offset] ^= mask
    put(path, name, bytes(data))


def rebuild(path, name="a", data=None, page=None, side=None):
    """Changes the only shard of an array and makes every checksum of it right again."""
    manifest = load(path)
    entry = next(a for a in manifest["arrays"] if a["name"] == name)
    g = ref.Geometry(entry["shape"], ref.DTYPES[entry["dtype"]][1])
    file, shard = f"{ref.folder_of(name)}/00000", entry["shards"][0]
    whole = get(path, file + ".npy")
    page, data = page or whole[:4096], whole[4096:] if data is None else data
    side = side or ref.sidecar_bytes(g, shard["rows"], data)
    put(path, file + ".npy", page + data)
    put(path, file + ".crc", side)
    shard.update({"crc32": f"{zlib.crc32(data):08x}", "sidecar_crc32": f"{zlib.crc32(side):08x}"})
    store(path, manifest)


class Bad:
    """Makes the bad datasets one by one."""

    def __init__(self, root):
        self.root = root

    def case(self, name, stage, kind, mention, why, change, arrays=None, opened="dataset"):
        folder = os.path.join(self.root, name)
        os.makedirs(folder)
        path = os.path.join(folder, "dataset")
        ref.write(path, {"a": counting("int32", (3, 2))} if arrays is None else arrays)
        change(path)
        if stage == "open" and os.path.isdir(path):
            # Refused by the manifest: the shards would only be dead weight.
            for entry in os.listdir(path):
                if entry != ref.MANIFEST_NAME:
                    shutil.rmtree(os.path.join(path, entry))
        write_json(os.path.join(folder, "expected.json"),
                   {"kind": kind, "must_mention": mention, "path": opened, "stage": stage, "why": why})

    def text(self, name, why, change, mention=(), arrays=()):
        """The manifest's bytes after the first 26 are changed."""
        def rewrite(path):
            seal_text(path, change(get(path, ref.MANIFEST_NAME)[ref.MANIFEST_PREFIX_BYTES:]))
        self.case(name, "open", "Corrupt", ["arrshard.json", *mention], why, rewrite, dict(arrays))

    def member(self, name, why, change, mention=(), kind="Corrupt", arrays=None, new_id=True):
        """The manifest's content is changed; `change` gets the manifest, its first array and that one's first shard."""
        def rewrite(path):
            manifest = load(path)
            first = manifest["arrays"][0]
            change(manifest, first, first["shards"][0])
            store(path, manifest, new_id)
        self.case(name, "open", kind, ["arrshard.json", *mention], why, rewrite, arrays)


def bad_places(bad):
    def gone(path):
        shutil.rmtree(path)

    def staged(path):
        os.rename(path, os.path.join(os.path.dirname(path), ".dataset.building"))
        os.remove(os.path.join(os.path.dirname(path), ".dataset.building", ref.MANIFEST_NAME))

    def file_instead(path):
        shutil.rmtree(path)
        put(os.path.dirname(path), "dataset", b"not a folder\n")

    def unmanifested(path):
        os.rename(os.path.join(path, ref.MANIFEST_NAME), os.path.join(path, "a", "note"))
        os.remove(os.path.join(path, "a", "note"))

    def manifest_link(path):
        os.rename(os.path.join(path, ref.MANIFEST_NAME), os.path.join(path, "..", "elsewhere.json"))
        os.symlink("../elsewhere.json", os.path.join(path, ref.MANIFEST_NAME))

    def manifest_folder(path):
        os.remove(os.path.join(path, ref.MANIFEST_NAME))
        os.mkdir(os.path.join(path, ref.MANIFEST_NAME))
        put(path, ref.MANIFEST_NAME + "/keep", b"git stores no empty folders\n")

    bad.case("dataset-missing", "open", "NotFound", ["dataset"], "there is nothing at the path", gone)
    bad.case("dataset-is-a-file", "open", "NotFound", ["dataset"], "the dataset is a file", file_instead)
    bad.case("dataset-being-built", "open", "Incomplete", ["dataset"], "only its staging folder is there", staged)
    bad.case("staging-opened", "open", "Incomplete", [".dataset.building"], "the staging folder itself is opened",
             staged, opened=".dataset.building")

    # An empty folder can't be stored, so this one keeps its shard.
    folder = os.path.join(bad.root, "manifest-missing")
    os.makedirs(folder)
    ref.write(os.path.join(folder, "dataset"), {"a": counting("int32", (3, 2))})
    unmanifested(os.path.join(folder, "dataset"))
    write_json(os.path.join(folder, "expected.json"),
               {"kind": "NotFound", "must_mention": ["dataset"], "path": "dataset", "stage": "open",
                "why": "a folder without a manifest is no dataset"})
    bad.case("manifest-is-a-link", "open", "Corrupt", ["arrshard.json"], "symbolic links are not followed", manifest_link, {})
    bad.case("manifest-is-a-folder", "open", "Corrupt", ["arrshard.json"], "the manifest is no regular file", manifest_folder, {})

    def on_manifest(change):
        return lambda path: put(path, ref.MANIFEST_NAME, change(get(path, ref.MANIFEST_NAME)))

    for name, why, change in (
        ("manifest-empty", "0 bytes", lambda m: b""),
        ("manifest-of-25-bytes", "one byte less than the prefix", lambda m: m[:25]),
        ("manifest-truncated", "the last byte is missing", lambda m: m[:-1]),
        ("manifest-crc-wrong", "the digits of _crc32 are another number's", lambda m: m[:15] + b"01234567" + m[23:]),
        ("manifest-bit-flip", "one bit of the text is flipped", lambda m: m[:40] + bytes([m[40] ^ 4]) + m[41:]),
        ("manifest-bom", "a byte-order mark comes before the JSON", lambda m: b"\xef\xbb\xbf" + m),
        ("manifest-prefix-spelled-otherwise", "_crc32 is right but not in its place", lambda m: b"{ " + m[2:]),
    ):
        bad.case(name, "open", "Corrupt", ["arrshard.json"], why, on_manifest(change), {})

    def uppercase(path):
        # The CRC must have a letter, or upper case would be no change.
        for pad in range(100):
            body = get(path, ref.MANIFEST_NAME)[ref.MANIFEST_PREFIX_BYTES:] + b"\n" * pad
            digits = f"{zlib.crc32(body):08X}"
            if digits != digits.lower():
                return put(path, ref.MANIFEST_NAME, b'{\n  "_crc32": "%s",\n' % digits.encode() + body)
    bad.case("manifest-crc-uppercase", "open", "Corrupt", ["arrshard.json"], "hex digits are lower-case", uppercase, {})


def bad_json(bad):
    def attribute(text):
        return lambda tail: tail.replace(b'"attributes": {}', b'"attributes": {"x": ' + text + b"}", 1)

    bad.text("json-trailing-bytes", "something follows the JSON", lambda t: t + b"{}\n")
    bad.text("json-trailing-nul", "a NUL follows the JSON", lambda t: t + b"\0")
    bad.text("json-unclosed", "the last brace is missing", lambda t: t[:-2])
    bad.text("json-trailing-comma", "a comma before the last brace", lambda t: t[:-3] + b",\n}\n")
    bad.text("json-nan", "NaN is not JSON", attribute(b"NaN"))
    bad.text("json-infinity", "Infinity is not JSON", attribute(b"-Infinity"))
    bad.text("json-number-too-big", "no binary64 holds it", attribute(b"1e999"))
    bad.text("json-leading-zero", "01 is not JSON", attribute(b"01"))
    bad.text("json-control-character", "a raw newline in a string", attribute(b'"a\nb"'))
    bad.text("json-lone-surrogate", "half a surrogate pair is no character", attribute(b'"\\ud800"'))
    bad.text("json-invalid-utf8", "the byte FF is never UTF-8", attribute(b'"\xff"'))
    bad.text("json-utf8-surrogate", "ED A0 80 is not UTF-8", attribute(b'"\xed\xa0\x80"'))
    bad.text("json-depth-17", "17 brackets open at once", attribute(b"[" * 15 + b"]" * 15))
    bad.text("json-depth-10000", "enough brackets to overflow a stack", attribute(b"[" * 10_000 + b"]" * 10_000))
    bad.text("json-duplicate-key", "format stands there twice", lambda t: b'  "format": "arrshard",\n' + t, ["format"])
    bad.text("json-duplicate-crc", "_crc32 stands there twice", lambda t: b'  "_crc32": "00000000",\n' + t, ["_crc32"])
    bad.text("json-duplicate-key-in-attributes", "a key twice deep in an attribute", attribute(b'[{"k": 1, "\\u006b": 2}]'))


def bad_members(bad):
    huge = 1 << 62

    def set_in(index, **members):
        return lambda *parts: parts[index].update(members)

    def drop(index, key):
        return lambda *parts: parts[index].pop(key)

    member = bad.member
    member("format-other", "another program's manifest", set_in(0, format="zarr"), ["format"])
    member("version-major-2", "a later major version", set_in(0, version={"major": 2, "minor": 0}), ["version", "2"], "Unsupported")
    member("version-major-2-of-other-members", "a later major version may have other members",
           lambda m, *_: m.update({"version": {"major": 2, "minor": 0}, "sheaves": [], "generation": "third", "strings": {}}),
           ["version", "2"], "Unsupported")
    member("version-major-0", "a major version that never was", set_in(0, version={"major": 0, "minor": 9}), ["version"], "Unsupported")
    member("must-understand", "a feature that 1.0 does not know", set_in(0, must_understand=["zstd"]), ["must_understand", "zstd"], "Unsupported")
    member("must-understand-of-later-minor", "a later minor version with such a feature",
           set_in(0, must_understand=["zstd"], version={"major": 1, "minor": 3}), ["must_understand", "zstd"], "Unsupported")
    member("member-missing", "generation is missing", drop(0, "generation"), ["generation"])
    member("member-missing-in-shard", "rows is missing", drop(2, "rows"), ["rows"], new_id=False)
    member("member-unknown", "1.0 knows all its members", set_in(0, colour=1), ["colour"])
    member("member-unknown-in-array", "1.0 knows all its members", set_in(1, colour=1), ["colour"])
    member("member-unknown-in-shard", "1.0 knows all its members", set_in(2, colour=1), ["colour"])
    member("member-unknown-in-version", "1.0 knows all its members",
           set_in(0, version={"colour": 1, "major": 1, "minor": 0}), ["colour"])
    member("type-rows-a-string", "rows is a string", set_in(2, rows="3"))
    member("type-rows-a-fraction", "3.0 is not spelled as an integer", set_in(2, rows=3.0))
    member("type-rows-negative", "rows is negative", set_in(2, rows=-3))
    member("type-rows-true", "true is no integer", set_in(2, rows=True))
    member("type-rows-above-i64", "2^63 is out of range", set_in(2, rows=1 << 63))
    member("type-arrays-an-object", "arrays is a list", lambda m, *_: m.update(arrays={}), ["arrays"], new_id=False)
    member("type-attributes-a-list", "attributes is an object", set_in(0, attributes=[]), ["attributes"])
    member("type-attributes-null", "attributes is an object", set_in(1, attributes=None), ["attributes"])
    member("generation-0", "generations count from 1", set_in(0, generation=0), ["generation"])

    member("name-empty", "a name has at least one byte", set_in(1, name=""))
    member("name-with-nul", "control characters are refused", set_in(1, name="a\0b"))
    member("name-with-newline", "control characters are refused", set_in(1, name="a\nb"))
    member("name-with-escape", "a terminal would obey it; the error must not hold the raw byte", set_in(1, name="\x1b[31mred"))
    member("name-with-c1", "U+009B is a control character too", set_in(1, name="\x9b31mred"))
    member("name-of-256-bytes", "one byte too long", set_in(1, name="n" * 256))
    member("name-with-folder-of-243-bytes", "81 bytes of name, 243 of folder", set_in(1, name="/" * 81))
    member("names-twice", "two arrays of one name", lambda m, a, _: m["arrays"].append(dict(a)), ['"a"'])

    member("dtype-unknown", "no such dtype", set_in(1, dtype="decimal128"), ["decimal128"], "Unsupported")
    member("dtype-short-name", "the manifest has the long names", set_in(1, dtype="i4"), ["i4"], "Unsupported")
    member("dtype-float8", "reserved, not in 1.0", set_in(1, dtype="float8_e4m3fn"), ["float8_e4m3fn"], "Unsupported")
    member("shape-of-65-dimensions", "64 at most", set_in(1, shape=[3, 2] + [1] * 63), ["65"])
    member("shape-overflows-u64", "the product is 0 modulo 2^64", set_in(1, shape=[3, 1 << 32, 1 << 32]), ["shape"])
    member("shape-overflows-i64", "2^63 bytes", set_in(1, shape=[1 << 61]), ["shape"])
    member("shape-overflows-behind-a-zero", "a dimension of 0 hides nothing", set_in(1, shape=[0, huge, huge]), ["shape"])
    member("shape-negative", "a dimension is negative", set_in(1, shape=[-3, 2]))
    member("rows-per-shard-0", "at least 1", set_in(1, rows_per_shard=0), ["rows_per_shard"])
    member("rows-per-shard-of-part-of-a-page", "less than a block, but no multiple of the page's 512 rows",
           set_in(1, rows_per_shard=512 + 3), ["rows_per_shard"])
    member("rows-per-shard-of-a-block-and-a-page", "whole pages, but more than a block and no multiple of its 131072 rows",
           set_in(1, rows_per_shard=131072 + 512), ["rows_per_shard"])
    member("rows-per-shard-overflows", "2^63 bytes a shard", set_in(1, rows_per_shard=1 << 60), ["rows_per_shard"])
    member("rows-per-shard-overflows-by-the-header", "a full shard would have 2^63 - 4096 bytes of data, and the header page",
           set_in(1, rows_per_shard=1, shape=[0, (1 << 63) - 4096]), ["rows_per_shard"], arrays={"a": counting("uint8", (0, 1))})
    member("rows-per-shard-of-rows-of-nothing", "3 for 3 rows of 0 bytes", set_in(1, rows_per_shard=4), ["rows_per_shard"],
           arrays={"a": ("int32", (3, 0), b"")})

    def extra(*parts):
        parts[1]["shards"].append(dict(parts[2], rows=0, bytes=0))

    def short_first(_, a, s):
        a.update(shape=[4, 2], rows_per_shard=131072, shards=[dict(s), dict(s, rows=1, bytes=8)])

    def short_before_last(_, a, s):
        a.update(shape=[131074, 2], rows_per_shard=131072,
                 shards=[dict(s, rows=131071, bytes=131071 * 8), dict(s, rows=3, bytes=24)])

    member("shards-none", "even no rows need one shard", set_in(1, shards=[]), ["shard"])
    member("shards-one-more", "an empty shard behind the last", extra, ["shard"])
    member("shards-one-missing", "the shape has more rows than one shard", set_in(1, shape=[500_000_000, 2]), ["shard"])
    member("shards-two-for-the-rows-of-one", "3 + 1 rows where one shard takes 131072", short_first, ["shard"])
    member("shards-short-before-the-last", "all but the last are full", short_before_last, ["rows"])
    member("rows-too-few", "2 of 3 rows", set_in(2, rows=2, bytes=16), ["rows"])
    member("rows-too-many", "4 of 3 rows", set_in(2, rows=4, bytes=32), ["rows"])
    member("bytes-wrong", "bytes is rows times row_bytes", set_in(2, bytes=32), ["bytes"])
    member("shard-generation-0", "generations count from 1", set_in(2, generation=0), ["generation"])
    member("shard-generation-ahead", "later than the manifest's", set_in(2, generation=2), ["generation"])
    member("crc-uppercase", "hex digits are lower-case", set_in(2, crc32="ABCDEF01"), ["crc32"])
    member("crc-of-7-digits", "eight digits", set_in(2, sidecar_crc32="1234567"), ["sidecar_crc32"])
    member("crc-a-number", "a string of hex digits", set_in(2, crc32=12345678), ["crc32"], new_id=False)

    text = {"t": ["ab", "c"]}
    member("strings-without-offsets", "half of the pair is missing", lambda m, *_: m["arrays"].pop(0), ["t.offsets"], arrays=text)
    member("strings-without-bytes", "half of the pair is missing", lambda m, *_: m["arrays"].pop(1), ["t.bytes"], arrays=text)
    member("strings-twice", "each once", set_in(0, strings=["t", "t"]), ['"t"'], arrays=text)
    member("strings-of-a-taken-name", "arrays and string arrays share one name space", set_in(0, strings=["t"]), ['"t"'],
           arrays={"t": counting("uint8", (1,)), "t.offsets": counting("uint64", (1,)), "t.bytes": counting("uint8", (0,))})
    member("strings-of-other-dtype", "offsets are uint64", set_in(1, dtype="int64"), ["t.offsets"], arrays=text)
    member("strings-of-two-dimensions", "bytes have one dimension", set_in(0, strings=["t"]), ["t.bytes"],
           arrays={"t.offsets": counting("uint64", (1,)), "t.bytes": counting("uint8", (0, 1))})
    member("strings-without-a-first-offset", "n + 1 is at least 1", set_in(0, strings=["t"]), ["t.offsets"],
           arrays={"t.offsets": counting("uint64", (0,)), "t.bytes": counting("uint8", (0,))})
    member("strings-with-nul", "a name like any other", set_in(0, strings=["t\0"]), arrays=text)
    member("id-wrong", "another dataset's", set_in(0, id="0123456789abcdef" * 2), ["id"], new_id=False)
    member("id-uppercase", "hex digits are lower-case", lambda m, *_: m.update(id=m["id"].upper()), ["id"], new_id=False)


def bad_files(bad):
    def on(change, *arguments, **named):
        return lambda path: change(path, *arguments, **named)

    def remove(path, name):
        os.remove(os.path.join(path, name))

    def resize(path, name, by):
        data = get(path, name)
        put(path, name, data[:by] if by < 0 else data + b"\0" * by)

    def link(path, name):
        outside = "elsewhere" + os.path.splitext(name)[1]
        os.rename(os.path.join(path, name), os.path.join(path, "..", outside))
        os.symlink("../" * (name.count("/") + 1) + outside, os.path.join(path, name))

    def folder_instead(path, name):
        remove(path, name)
        os.mkdir(os.path.join(path, name))
        put(path, name + "/keep", b"git stores no empty folders\n")

    def file_instead(path, name):
        shutil.rmtree(os.path.join(path, name))
        put(path, name, b"not a folder\n")

    def swap(path, one, two, suffixes):
        for suffix in suffixes:
            x, y = get(path, one + suffix), get(path, two + suffix)
            put(path, one + suffix, y)
            put(path, two + suffix, x)

    case, shard, side = bad.case, "a/00000.npy", "a/00000.crc"
    case("folder-missing", "map", "NotFound", ["dataset/a"], "the array's folder is gone", lambda p: (
        shutil.rmtree(os.path.join(p, "a"))))
    case("folder-is-a-link", "map", "Corrupt", ["dataset/a"], "symbolic links are not followed", on(link, "a"))
    case("folder-is-a-file", "map", "Corrupt", ["dataset/a"], "the array's folder is a file", on(file_instead, "a"))
    case("shard-missing", "map", "NotFound", ["00000.npy"], "the shard is gone", on(remove, shard))
    case("shard-truncated", "map", "Corrupt", ["00000.npy"], "one byte short", on(resize, shard, -1))
    case("shard-longer", "map", "Corrupt", ["00000.npy"], "one byte too long", on(resize, shard, 1))
    case("shard-of-a-header-alone", "map", "Corrupt", ["00000.npy"], "all data is missing", on(resize, shard, -24))
    case("shard-is-a-link", "map", "Corrupt", ["00000.npy"], "symbolic links are not followed", on(link, shard))
    case("shard-is-a-folder", "map", "Corrupt", ["00000.npy"], "the shard is a folder", on(folder_instead, shard))
    case("bool-2", "map", "Corrupt", ["00000.npy"], "every checksum is right, but a bool is 2",
         on(rebuild, data=b"\0\1\2"), {"a": ("bool", (3,), b"\0\1\1")})

    texts = {"t": ["ab", "é", "c"]}

    def offsets(*values):
        return on(rebuild, name="t.offsets", data=struct.pack("<4Q", *values))

    case("offsets-first-not-0", "map", "Corrupt", ["t.offsets"], "the first offset is 1", offsets(1, 2, 4, 5), texts)
    case("offsets-last-below-the-end", "map", "Corrupt", ["t.offsets"], "the last offset is not the number of bytes",
         offsets(0, 2, 4, 4), texts)
    case("offsets-last-past-the-end", "map", "Corrupt", ["t.offsets"], "the last offset is not the number of bytes",
         offsets(0, 2, 4, 6), texts)
    case("offsets-backwards", "verify", "Corrupt", ["t.offsets"], "an offset is below the one before it", offsets(0, 4, 2, 5), texts)
    case("offsets-past-the-end", "verify", "Corrupt", ["t.offsets"], "an offset is above the number of bytes",
         offsets(0, 2, (1 << 64) - 1, 5), texts)
    case("offsets-split-a-character", "verify", "Corrupt", ["UTF-8"], "all bytes are UTF-8, but a string ends within é",
         offsets(0, 3, 4, 5), texts)
    case("strings-not-utf8", "verify", "Corrupt", ["UTF-8"], "the bytes are no UTF-8",
         on(rebuild, name="t.bytes", data=b"ab\xc3\x28c"), texts)

    case("data-bit-flip", "verify", "Corrupt", ["00000.npy"], "one bit of the data", on(flip, shard, 4096 + 13, 0x10))
    case("header-bit-flip", "map", "Corrupt", ["00000.npy"], "one space of the padding", on(flip, shard, 3000))

    def header(old, new):
        def change(path):
            text = get(path, shard)[10:4095].replace(old, new).rstrip()
            rebuild(path, page=get(path, shard)[:10] + text.ljust(4085) + b"\n")
        return change

    case("header-big-endian", "map", "Corrupt", ["00000.npy"], "the header says >i4", header(b"<i4", b">i4"))
    case("header-of-other-dtype", "map", "Corrupt", ["00000.npy"], "the header says <f4", header(b"<i4", b"<f4"))
    case("header-fortran-order", "map", "Corrupt", ["00000.npy"], "the header says Fortran order", header(b"False", b"True"))
    case("header-of-other-shape", "map", "Corrupt", ["00000.npy"], "(2, 3) instead of (3, 2)", header(b"(3, 2)", b"(2, 3)"))
    case("header-of-other-spelling", "map", "Corrupt", ["00000.npy"], "the same, without the last comma", header(b", }", b"}"))
    case("header-all-zero", "map", "Corrupt", ["00000.npy"], "a page that was never written", on(rebuild, page=bytes(4096)))

    whole = ref.sidecar_bytes(ref.Geometry((3, 2), 4), 3, counting("int32", (3, 2))[2])

    def field(offset, value):
        return on(rebuild, side=whole[:offset] + struct.pack("<Q", value) + whole[offset + 8:])

    case("sidecar-missing", "verify", "NotFound", ["00000.crc"], "the sidecar is gone", on(remove, side))
    case("sidecar-is-a-link", "verify", "Corrupt", ["00000.crc"], "symbolic links are not followed", on(link, side))
    case("sidecar-is-a-folder", "verify", "Corrupt", ["00000.crc"], "the sidecar is a folder", on(folder_instead, side))
    case("sidecar-truncated", "verify", "Corrupt", ["00000.crc"], "one byte short", on(resize, side, -1))
    case("sidecar-longer", "verify", "Corrupt", ["00000.crc"], "one byte too long", on(resize, side, 1))
    case("sidecar-bit-flip-in-magic", "verify", "Corrupt", ["00000.crc"], "one bit of the magic", on(flip, side, 1))
    case("sidecar-bit-flip-in-rows", "verify", "Corrupt", ["00000.crc"], "one bit of the number of rows", on(flip, side, 16))
    case("sidecar-bit-flip-in-crc", "verify", "Corrupt", ["00000.crc"], "one bit of a block's CRC", on(flip, side, 32))
    case("sidecar-of-other-magic", "verify", "Corrupt", ["00000.crc"], "its CRC is right, its magic another version's",
         on(rebuild, side=whole[:7] + b"\x02" + whole[8:]))
    case("sidecar-of-other-row-bytes", "verify", "Corrupt", ["00000.crc"], "its CRC is right, row_bytes is not", field(8, 4))
    case("sidecar-of-other-rows", "verify", "Corrupt", ["00000.crc"], "its CRC is right, rows is not", field(16, 4))
    case("sidecar-of-other-blocks", "verify", "Corrupt", ["00000.crc"], "its CRC is right, the number of blocks is not",
         field(24, (1 << 64) - 1))
    case("sidecar-that-lies", "verify", "Corrupt", ["dataset/a/00000"], "its CRC is right, a block's is not",
         on(rebuild, side=whole[:32] + b"\0\0\0\0"))

    def data_crc(path):
        manifest = load(path)
        manifest["arrays"][0]["shards"][0]["crc32"] = "00000000"
        store(path, manifest)
    case("shard-crc-wrong", "verify", "Corrupt", ["dataset/a/00000"], "each block is right, the manifest's CRC of the data is not", data_crc)

    def empty_crc(path):
        manifest = load(path)
        manifest["arrays"][0]["shards"][0]["crc32"] = "00000001"
        store(path, manifest)
    case("shard-crc-wrong-of-no-data", "verify", "Corrupt", ["dataset/a/00000"], "the CRC of nothing is 00000000", empty_crc,
         {"a": counting("int32", (0, 2))})

    pair = {"a": counting("int32", (3, 2)), "b": ("int32", (3, 2), bytes(24))}
    case("shards-exchanged", "verify", "Corrupt", ["00000.npy"], "two shards of one shape, each in the other's place",
         on(swap, "a/00000", "b/00000", [".npy"]), pair)
    case("shards-exchanged-with-sidecars", "verify", "Corrupt", ["00000.crc"], "the same, and their sidecars with them",
         on(swap, "a/00000", "b/00000", [".npy", ".crc"]), pair)
    case("sidecar-of-another-shard", "verify", "Corrupt", ["00000.crc"], "the sidecars of two shards exchanged",
         on(swap, "a/00000", "b/00000", [".crc"]), pair)


# --- numbers alone ------------------------------------------------------------------------------


def geometry_table():
    """What section 3 makes of many shapes: sizes that no stored dataset could have."""
    rows = []
    for row_bytes in (0, 1, 4, 8, 12, 40, 129, 516, 4095, 4096, 4097, 65536, 524287, 524288,
                      524289, 528384, 1048575, 1048576, 1048577, 3145728, 1 << 33, (1 << 40) + 1):
        for shard_bytes in (1, 10_000, 1 << 19, (1 << 20) - 1, 1 << 20, 1 << 26, 1 << 30, 10**12):
            step = ref.Geometry((1, row_bytes), 1).rows_per_shard(shard_bytes)
            for count in sorted({0, 1, step, 7 * step + 3} if row_bytes else {0, 1, 7}):
                g = ref.Geometry((count, row_bytes), 1)
                step = g.rows_per_shard(shard_bytes)
                shards = g.shard_count(step)
                last = g.shard_rows(shards - 1, step)
                rows.append({
                    "row_bytes": row_bytes, "rows": count, "shard_bytes": shard_bytes, "rows_per_shard": step,
                    "shards": shards, "last_rows": last, "last_blocks": g.block_count(last),
                })
    return rows


def rule_table():
    """Which rows_per_shard keep the rule of section 3."""
    rows = []
    for row_bytes in (1, 8, 12, 516, 4095, 4096, 524289, 1048577, 3145728):
        g = ref.Geometry((1, row_bytes), 1)
        page, block = g.page_rows, g.rows_per_block
        for step in sorted({0, 1, page - 1, page, page + 1, 3 * page, block - 1, block, block + 1, block + page, 3 * block, 3 * block // 2}):
            rows.append({"row_bytes": row_bytes, "rows_per_shard": step, "good": g.rule(step)[0]})
    return rows


def sidecar_table():
    """CRC-32s of sidecars and data of shards whose byte i is i mod 251."""
    pattern, rows = bytes(range(251)), []
    for row_bytes, count in ((1, 0), (1, 1), (1, 1048576), (1, 1048577), (12, 65536), (12, 200_001), (516, 2051),
                             (4096, 513), (4097, 256), (1048576, 2), (1048577, 2), (3145728, 1), (2097153, 2), (0, 5)):
        data = (pattern * (count * row_bytes // 251 + 1))[:count * row_bytes]
        g = ref.Geometry((count, row_bytes), 1)
        side = ref.sidecar_bytes(g, count, data)
        rows.append({
            "row_bytes": row_bytes, "rows": count, "blocks": g.block_count(count),
            "crc32": f"{zlib.crc32(data):08x}", "sidecar_crc32": f"{zlib.crc32(side):08x}",
        })
    return rows


def main(vectors):
    for part in ("golden", "bad"):
        path = os.path.join(vectors, part)
        if os.path.exists(path):
            shutil.rmtree(path)
        os.makedirs(path)
    golden(os.path.join(vectors, "golden"))
    bad = Bad(os.path.join(vectors, "bad"))
    bad_places(bad)
    bad_json(bad)
    bad_members(bad)
    bad_files(bad)
    write_json(os.path.join(vectors, "geometry.json"), {"cases": geometry_table(), "rules": rule_table()})
    write_json(os.path.join(vectors, "sidecars.json"), {"cases": sidecar_table()})


if __name__ == "__main__":
    main(*(sys.argv[1:] or [VECTORS]))
