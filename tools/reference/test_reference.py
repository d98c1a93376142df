#!/usr/bin/env python3
"""python3 -m unittest discover tools/reference"""

import json
import os
import random
import shutil
import struct
import tempfile
import unittest

import arrshard_reference as ref
import make_vectors

VECTORS = make_vectors.VECTORS


def cases(part):
    root = os.path.join(VECTORS, part)
    for name in sorted(os.listdir(root)):
        with open(os.path.join(root, name, "expected.json"), encoding="utf-8") as file:
            yield name, os.path.join(root, name), json.load(file)


def tree(root):
    """Every path below `root`, with what stands there."""
    out = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            key = os.path.relpath(path, root)
            if os.path.islink(path):
                out[key] = "link to " + os.readlink(path)
            elif os.path.isdir(path):
                out[key] = "folder"
            else:
                with open(path, "rb") as file:
                    out[key] = file.read()
    return out


class Scratch(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.path = os.path.join(self.root, "dataset")


class Vectors(Scratch):
    def test_every_golden_dataset_is_what_is_expected(self):
        for name, folder, expected in cases("golden"):
            with self.subTest(name):
                path = os.path.join(folder, "dataset")
                ref.verify(path)
                found = json.loads(json.dumps(make_vectors.expected(path, expected["shard_bytes"])))
                self.assertEqual(found, expected)

    def test_every_bad_dataset_is_refused_at_its_stage(self):
        for name, folder, expected in cases("bad"):
            with self.subTest(name):
                stage = "open"
                with self.assertRaises(ref.Problem) as caught:
                    with ref.Dataset(os.path.join(folder, expected["path"])) as dataset:
                        stage = "map"
                        dataset.map_all()
                        stage = "verify"
                        dataset.verify()
                text = str(caught.exception)
                self.assertEqual((stage, caught.exception.kind), (expected["stage"], expected["kind"]), text)
                for part in expected["must_mention"]:
                    self.assertIn(part, text)
                self.assertTrue(text.isprintable(), ascii(text))

    def test_writing_the_vectors_again_gives_the_same_bytes(self):
        make_vectors.main(self.root)
        stored = tree(VECTORS)
        for by_hand in ("README.md", ".gitattributes"):
            stored.pop(by_hand)
        again = tree(self.root)
        self.assertEqual(sorted(again), sorted(stored))
        self.assertEqual([k for k in again if again[k] != stored[k]], [])


class Files(Scratch):
    def write(self, arrays, **rest):
        ref.write(self.path, arrays, **rest)

    def test_what_is_written_is_read(self):
        noise = random.Random(1)
        for dtype, (_, size) in ref.DTYPES.items():
            for shape in ((), (0,), (5,), (2, 3), (3, 0), (300, 1000)):
                g = ref.Geometry(shape, size)
                data = noise.randbytes(g.rows * g.row_bytes)
                if dtype == "bool":
                    data = bytes(b & 1 for b in data)
                self.write({"a": (dtype, shape, data), "t": ["x", "", "é"]}, shard_bytes=1)
                ref.verify(self.path)
                self.assertEqual(ref.read(self.path)["a"], (dtype, shape, data))
                shutil.rmtree(self.path)

    def test_rows_above_a_block_are_cut(self):
        data = random.Random(2).randbytes(2 * ((1 << 20) + 4096))
        self.write({"a": ("uint8", (2, (1 << 20) + 4096), data)}, shard_bytes=1)
        ref.verify(self.path)
        self.assertEqual(ref.read(self.path)["a"][2], data)
        self.assertEqual(os.path.getsize(os.path.join(self.path, "a", "00001.crc")), 32 + 2 * 4)

    def test_appending_is_as_writing_at_once(self):
        row = 528384
        data = random.Random(3).randbytes(3 * row)
        self.write({"a": ("uint8", (1, row), data[:row]), "t": ["one"]}, shard_bytes=2 * row)
        ref.append(self.path, {"a": data[row:], "t.offsets": struct.pack("<Q", 3 + 3), "t.bytes": b"two"})
        ref.verify(self.path)
        with ref.Dataset(self.path) as dataset:
            self.assertEqual(dataset.read("a"), data)
            self.assertEqual(dataset.strings("t"), ["one", "two"])
            id_of_two = dataset.manifest["id"]
        other = os.path.join(self.root, "other")
        ref.write(other, {"a": ("uint8", (3, row), data), "t": ["one", "two"]}, shard_bytes=2 * row)
        with ref.Dataset(other) as dataset:
            self.assertEqual(dataset.manifest["id"], id_of_two)

    def test_a_fifo_neither_hangs_nor_passes(self):
        self.write({"a": ("uint8", (3,), b"abc")})
        shard = os.path.join(self.path, "a", "00000.npy")
        os.remove(shard)
        os.mkfifo(shard)
        with self.assertRaises(ref.Problem) as caught:
            ref.read(self.path)
        self.assertEqual(caught.exception.kind, "Corrupt")

    def test_a_manifest_above_the_cap_is_refused(self):
        self.write({})
        os.truncate(os.path.join(self.path, ref.MANIFEST_NAME), ref.MANIFEST_MAX_BYTES + 1)
        with self.assertRaises(ref.Problem) as caught:
            ref.read(self.path)
        self.assertIn("67108864", str(caught.exception))

    def test_every_bit_flip_and_every_length_is_found(self):
        self.write({"a": ("int16", (3, 2), bytes(range(12))), "t": ["é"]}, attributes={"k": [1.5]})
        whole = {k: v for k, v in tree(self.path).items() if isinstance(v, bytes)}
        for name, data in whole.items():
            def refused(changed):
                with open(os.path.join(self.path, name), "wb") as file:
                    file.write(changed)
                with self.assertRaises(ref.Problem, msg=name):
                    ref.verify(self.path)
            # All padding of a header page is alike: every 50th of its bytes will do.
            picked = [i for i in range(len(data)) if i < 128 or i >= 4090 or i % 50 == 0 or not name.endswith(".npy")]
            for i in picked:
                refused(data[:i] + bytes([data[i] ^ (1 << i % 8)]) + data[i + 1:])
                refused(data[:i])
            refused(data + b"\n")
            with open(os.path.join(self.path, name), "wb") as file:
                file.write(data)
        ref.verify(self.path)


class Numbers(unittest.TestCase):
    def test_floats_are_spelled_as_the_spec_says(self):
        for value, text in (
            (0.0, "0.0"), (-0.0, "-0.0"), (1e-5, "0.00001"), (1e-6, "1e-6"), (1.5e-7, "1.5e-7"), (1e15, "1000000000000000.0"),
            (9007199254740993.0, "9007199254740992.0"), (1e16, "1e+16"), (1.5e300, "1.5e+300"), (5e-324, "5e-324"), (12.5, "12.5"),
        ):
            self.assertEqual(ref.json_float(value), text)
        noise = random.Random(4)
        for _ in range(20_000):
            value = struct.unpack("<d", noise.randbytes(8))[0]
            if value - value == 0:
                self.assertEqual(float(ref.json_float(value)), value)
        for exponent in range(-12, 24):
            for digits in ("1", "-1.25", "9.999999999999999"):
                value = float(f"{digits}e{exponent}")
                self.assertEqual(float(ref.json_float(value)), value)

    def test_folders_are_distinct_and_harmless(self):
        names = ["..", ".", "a", "A", "%2E", "%2E.", "arrshard.json", "arrshard%2Ejson", "a/b", "a%2Fb", "é", ".a", "a."]
        folders = [ref.folder_of(n) for n in names]
        self.assertEqual(len(set(folders)), len(names))
        for folder in folders:
            self.assertNotIn("/", folder)
            self.assertFalse(folder.startswith("."))
            self.assertNotEqual(folder, ref.MANIFEST_NAME)

    def test_blocks_cover_a_shard(self):
        for row_bytes in (1, 12, 4097, 524289, 1 << 20, (1 << 20) + 1, 3 << 20):
            for rows in (0, 1, 3, 100):
                g = ref.Geometry((rows, row_bytes), 1)
                blocks = list(g.blocks(rows))
                self.assertEqual(len(blocks), g.block_count(rows))
                self.assertEqual([a for a, _ in blocks], [0, *(b for _, b in blocks)][:len(blocks)])
                self.assertEqual(blocks[-1][1] if blocks else 0, rows * row_bytes)
                self.assertTrue(all(0 < b - a <= ref.BLOCK_BYTES for a, b in blocks))

    def test_the_constants_are_the_specs(self):
        with open(os.path.join(VECTORS, "..", "README.md"), encoding="utf-8") as file:
            table = file.read().split("| constant | value |\n|---|---|\n")[1].split("\n\n")[0]
        for line in table.splitlines():
            name, value = (cell.strip().strip("`") for cell in line.strip("|").split("|"))
            code = getattr(ref, name)
            self.assertEqual(code.hex() if isinstance(code, bytes) else str(code), value, name)


if __name__ == "__main__":
    unittest.main()
