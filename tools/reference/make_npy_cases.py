#!/usr/bin/env python3
"""Makes tests/data/npy: what NumPy writes, and what NumPy says to headers that others write.

Needs NumPy (made with 2.4.6) and ml_dtypes. The output doesn't change from run to run.

    python3 tools/reference/make_npy_cases.py            # make the files
    python3 tools/reference/make_npy_cases.py --check    # has np.load read what the library wrote (written.npz)
"""

import ast
import io
import json
import pathlib
import re
import sys
import warnings
import zipfile

import ml_dtypes
import numpy as np
from numpy.lib import format as npy

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/data/npy"
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
EPOCH = (1980, 1, 1, 0, 0, 0)


def saved(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def header_bytes(version, text):
    text = text.encode("utf8" if version == 3 else "latin1")
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text


def describe(dtype):
    """A dtype as the Rust test expects it."""
    if dtype.names is None:
        return dtype.str
    fields = []
    for name in dtype.names:
        base, offset, *title = dtype.fields[name]
        shape = []
        while base.subdtype:
            base, inner = base.subdtype
            shape += inner
        fields.append([name, title[0] if title else None, "record" if base.names else base.str, offset, shape])
    return {"fields": fields, "itemsize": dtype.itemsize}


def verdict(version, text):
    """What np.load makes of this header with zeros after it."""
    try:
        array = np.load(io.BytesIO(header_bytes(version, text) + bytes(1 << 20)))
    except Exception as error:  # any refusal counts
        return "objects" if "allow_pickle" in str(error) else "refused"
    order = ast.literal_eval(re.sub(r"(\d)\s*L", r"\1", text.strip()))["fortran_order"]
    return {"shape": array.shape, "fortran_order": order, "descr": describe(array.dtype)}


def text_of(array, version=None):
    """The dict in the header that NumPy writes for an array."""
    out = io.BytesIO()
    npy.write_array(out, array, version=version)
    head = out.getvalue()
    start = 10 if head[6] == 1 else 12
    length = int.from_bytes(head[8:start], "little")
    return head[6], head[start:start + length].decode("utf8" if head[6] == 3 else "latin1").rstrip() + "\n"


def arrays_of_numpys_own_tests():
    """The arrays that numpy/lib/tests/test_format.py saves and loads."""
    scalars = DTYPES[1:] + ["object"]
    for name in scalars:
        for endian in "<>":
            dtype = np.dtype(name).newbyteorder(endian)
            basic = np.arange(1500 if name != "int8" else 100).astype(dtype)
            yield np.array([], dtype=dtype)
            yield np.array(10, dtype=dtype)
            yield basic
            yield basic.reshape((4, -1))
            yield basic.reshape((4, -1)).T
            yield basic.reshape((4, -1))[::-1, ::5]
    plain = [("x", "i4", (2,)), ("y", "f8", (2, 2)), ("z", "u1")]
    nested = [
        ("x", "i4", (2,)),
        ("Info", [("value", "c16"), ("y2", "f8"), ("Info2", [("name", "S2"), ("value", "c16", (2,))]), ("z2", "b1")]),
        ("color", "S2"),
        ("info", [("Name", "U8"), ("Value", "c16")]),
        ("y", "f8", (2, 2)),
        ("z", "u1"),
    ]
    shifted = np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [1, 6]})
    padded = np.dtype({"names": ["a", "b"], "formats": ["i1", "i1"], "offsets": [0, 4], "itemsize": 8})
    for dtype in [
        np.dtype(plain).newbyteorder("<"),
        np.dtype(plain).newbyteorder(">"),
        np.dtype(nested).newbyteorder("<"),
        np.dtype(nested).newbyteorder(">"),
        np.dtype("i1, i4, i1", align=True),
        shifted,
        np.dtype({"names": ["c", "d"], "formats": ["i4", shifted]}),
        np.dtype({"names": ["a", "", "b"], "formats": ["i4"] * 3}),
        np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [1, 6], "titles": ["aa", "bb"]}),
        np.dtype({"names": [], "formats": [], "itemsize": 8}),
        np.dtype([("a", np.int8), ("b", np.int16), ("c", np.int32)], align=True),
        np.dtype([("x", np.dtype((padded, (3,))), (4,))]),
        np.dtype([("x", ("<f8", (5,)), (2,))]),
        np.dtype([("x", np.dtype((np.dtype((padded, (3,))), (4,))))]),
        np.dtype({"names": ["a", "b"], "formats": [float, "S3"]}),
        np.dtype([("subarray", (int, (2,)))]),
        np.dtype([("int", int), ("\N{CJK UNIFIED IDEOGRAPH-6574}\N{CJK UNIFIED IDEOGRAPH-5F62}", int)]),
        np.dtype([("temp \N{DEGREE SIGN}C", "<f4"), ("it's \"x\"\n", ">u2")]),
    ]:
        yield np.zeros(3, dtype)
    for spaces in (22, 23, 24):
        for size in (1, 10**9):
            yield np.lib.stride_tricks.as_strided(np.zeros(1, [(" " * spaces, int)]), (size, 0), (0, 0))
    yield np.ones(2, "U3")
    yield np.zeros(2, "M8[ns]")
    yield np.zeros(2, "m8")
    yield np.zeros(2, np.longdouble)
    yield np.zeros(2, np.clongdouble)
    yield np.arange(4).astype(ml_dtypes.bfloat16)
    yield np.zeros((2, 3, 0, 4))


DESCRS = """
'f8' '<float64' 'float64' '<ubyte' 'ubyte' '?' '<?' 'd' '>d' '|f8' '=f8' '|b1' '<b1' '>b1' 'b' 'B' 'u8' '<u8\x20'
'\x20<u8' '' '<f4,<f4' '(2,)<f4' '2f4' '<f08' '<i3' '<i16' '<a2' '<V2' '|V2' '>V2' '<V0' '|S0' '<U3' '<M8[ns]' '<m8'
'<m8[us]' '<f16' '>f16' '<c32' '<c4' '<f1' '|O' 'O' '|O8' '<c8' 'complex64' 'float16' 'bool' 'i' '<e' 'F' '<D'
'<bfloat16' u'<f8' b'<f8' '<f\\x38' '=i4' '<u1' '>i1' '<i' '<' '>' '|' '<é8' None 1 True ('<f8',(2,))
('<f8',) [['<f8']] [] [('','|V8')] [('a','|V4')] [('a','|O')] [('a','<f8')] [('a','<f8'),('a','<f4')]
[('','<f8'),('b','<f4')] [('','|V4'),('b','<f4')] [('a','<f8',2)] [('a','<f8',(2,))] [('a','<f8',())]
[('a','<f8',(1,))] [('a','<f8',1)] [(('t','a'),'<f8')] [(('a','b'),'<f8'),('a','<f4')] [('a',[('b','<f8')])]
[('x',('<f8',(5,)),(2,))] [['a','<f8']] [('a','<f8',(0,))] [('a','<f8',[2])] (('a','<f8'),('b','<f4'))
{'names':['a'],'formats':['<f8']} [('a','<f8',(-1,))] [('a','|S2'),('b','<i4')] [('a','|b1'),('b','>b1')]
[('','|V4','x')] [('','|V4',(2,)),('a','<i4')] [('','|S4'),('a','<i4')] [(1,'<i4')] [('a',)] [('a','<f8',(2,),3)]
[('a','<f8',(4294967296,4294967296,16))] [('a','<f8',(9223372036854775807,))] ['<f8'] [[]] [('a',None)]
""".replace("\\x20", " ")

SHAPES = """() (2) (2,) (2,3) (2,3,) [2] (2L,) (2L,3L) (2LL,) (True,) (-0,) (-1,) (0,-1) (00,) (02,) (1*1,) (1+1,) (2.0,)
(1e1,) ('2',) ((2),) ((2,),) (2,,) (,) 2 None (2j,) (%s,) (9223372036854775807,) (4294967296,4294967296,16)
(4611686018427387904,4611686018427387904,0) (0,99999999999999999999) (18446744073709551616,) (%s) (%s)
(3,0) (0,) (1,2,3,4,5,6,7,8) (2:3) (2 3) {2} (2,3 2) (0x2,) (1_0,) (+2,)
""" % ("9" * 30, "1," * 64, "1," * 65)

WHOLE = [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\0",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), } x",
    "  {'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
    "\n{'descr': '<f8',\n 'fortran_order': False, 'shape': (2,), }\n\n\n",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'shape': (3,)}",
    "{'descr': '<f8', 'fortran_order': 0, 'shape': (2,)}",
    "{'descr': '<f8', 'fortran_order': 'True', 'shape': (2,)}",
    "{'descr': '<f8', 'fortran_order': None, 'shape': (2,)}",
    "{'descr': '<f8', 'fortran_order': false, 'shape': (2,)}",
    "({'descr': '<f8', 'fortran_order': True, 'shape': (2,3)})",
    "{b'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
    "{u'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2,),, }",
    "{'descr': '<f8' 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f8',\t'fortran_order':False,\x0c'shape':(2,)}",
    '{"shape":(2,),"fortran_order":False,"descr":"<f8"}   ',
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'x': 1, }",
    "{'descr': '<f8', 'shape': (2,), }",
    "{'shape': (1, 2), 'fortran_order': False, 'descr': 'x', 'extrakey': -1}",
    "[('descr', '<f8'), ('fortran_order', False), ('shape', (2,))]",
    "", "\n", "{}", "{", "}", "None", "{'descr'", "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}}",
    "{'descr': '<f8 , 'fortran_order': False, 'shape': (2,)}",
    "{'descr': " + "[" * 40 + "'<f8'" + "]" * 40 + ", 'fortran_order': False, 'shape': (1,), }",
]


def headers():
    found = {}
    for array in arrays_of_numpys_own_tests():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            versions = [None] if array.nbytes > 1 << 19 or array.dtype.hasobject else [None, (2, 0), (3, 0)]
            for version in versions[: 3 if array.dtype.names else 1]:
                try:
                    found.setdefault(text_of(array, version))
                except UnicodeEncodeError:
                    pass
    # The headers that the doc of NumPy's test module shows, as an older NumPy wrote them.
    source = pathlib.Path(npy.__file__).parent / "tests/test_format.py"
    shown = re.findall(r'\\x00(\{.*\}) *\\n"$', source.read_text(), re.M)
    assert len(shown) > 150, len(shown)
    for text in shown:
        found.setdefault((1, ast.literal_eval('"' + text + '"') + "\n"))
    for descr in split(DESCRS):
        found.setdefault((1, "{'descr': %s, 'fortran_order': False, 'shape': (2,), }\n" % descr))
    for shape in split(SHAPES):
        for version in (1, 3):
            found.setdefault((version, "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }\n" % shape))
    for text in WHOLE:
        found.setdefault((1, text))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [{"version": v, "text": t, "numpy": verdict(v, t)} for v, t in found]


def split(text):
    """Words, but not at blanks in quotes or brackets."""
    word, depth, quoted = "", 0, False
    for c in text.replace("\n", " \n"):
        if c == "'":
            quoted = not quoted
        depth += 0 if quoted else (c in "([{") - (c in ")]}")
        if c.isspace() and not quoted and depth == 0:
            if word:
                yield word
            word = ""
        elif c != "\n":
            word += c


def save_headers():
    """What np.save writes before the data of a C-ordered array."""
    shapes = [(), (0,), (1,), (7,), (3, 4), (3, 0), (123456789012, 3), (2, 3, 4), (1,) * 20, (10**17,), (1, 10**17), (1,) * 64]
    for size in range(40, 60):
        shapes.append((1,) * size)
    rows = []
    for name in DTYPES + ["bfloat16"]:
        descr = "<V2" if name == "bfloat16" else np.lib.format.dtype_to_descr(np.dtype(name))
        for shape in shapes if name == "float32" else shapes[:6]:
            out = io.BytesIO()
            npy.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
            rows.append({"dtype": name, "shape": shape, "header": out.getvalue()[10:].decode(), "len": len(out.getvalue())})
    for array in (np.zeros((3, 4), "f4"), np.arange(4).astype(ml_dtypes.bfloat16), np.array(True)):
        head = saved(array)[: -array.nbytes]
        match = [r for r in rows if r["dtype"] == array.dtype.name and r["shape"] == array.shape]
        assert not match or match[0]["header"].encode() == head[10:], head
    return rows


def archives():
    def archive(name, *members, method=zipfile.ZIP_STORED):
        with warnings.catch_warnings(), zipfile.ZipFile(OUT / name, "w") as out:
            warnings.simplefilter("ignore")
            for member, data in members:
                info = zipfile.ZipInfo(member, EPOCH)
                info.compress_type = method
                out.writestr(info, data)

    np.savez(OUT / "savez.npz", zeta=np.array([[1.0, 2.0]]), alpha=np.array([7, 8]))
    np.savez_compressed(OUT / "compressed.npz", x=np.arange(1000, dtype="i4"), y=np.arange(6, dtype=">u2").reshape(3, 2).T)
    one = saved(np.array([9.0]))
    archive("duplicate.npz", ("a.npy", one), ("a.npy", one))
    archive("same-array.npz", ("a.npy", one), ("a", one))
    archive("not-npy.npz", ("a.npy", one), ("notes.txt", b"hello"))
    archive("folder.npz", ("sub/", b""), ("sub/a.npy", one))
    archive("bzip2.npz", ("a.npy", one), method=zipfile.ZIP_BZIP2)
    archive("empty.npz")
    archive("objects.npz", ("a.npy", one), ("o.npy", saved(np.array([None, 1], dtype=object))))
    archive("short-member.npz", ("a.npy", one), ("b.npy", one[:-1]))
    archive("longer-member.npz", ("a.npy", one + b"tail"))


def arrays():
    padded = np.zeros(5, np.dtype([("flag", "?"), ("wide", ">i8"), ("pair", "<f4", (2,)), ("z", ">c8")], align=True))
    padded["flag"] = [1, 0, 1, 1, 0]
    padded["wide"] = np.arange(5) - 2
    padded["pair"] = np.arange(10).reshape(5, 2) / 2
    padded["z"] = np.arange(5) * (1 - 2j)
    (OUT / "padded.npy").write_bytes(saved(padded))
    (OUT / "fortran.npy").write_bytes(saved(np.asfortranarray(np.arange(2 * 3 * 4, dtype=">f4").reshape(2, 3, 4))))


def check():
    with np.load(OUT / "written.npz") as found:
        assert found.files == ["data", "price/unit", "größe", "scalar", "none", "half"], found.files
        assert found["data"].dtype == np.float32 and (found["data"] == np.arange(12).reshape(3, 4)).all()
        assert found["price/unit"].dtype == np.int64 and (found["price/unit"] == [-1, 2]).all()
        assert found["größe"].dtype == bool and (found["größe"] == [True, False]).all()
        assert found["scalar"].shape == () and found["scalar"] == 1.5
        assert found["none"].shape == (0, 3)
        assert (found["half"].view(ml_dtypes.bfloat16) == [0, 1, 2, 3]).all()
    assert zipfile.ZipFile(OUT / "written.npz").testzip() is None
    assert {i.date_time for i in zipfile.ZipFile(OUT / "written.npz").infolist()} == {EPOCH}
    print("written.npz: read by NumPy", np.__version__)


if __name__ == "__main__":
    if "--check" in sys.argv:
        check()
    else:
        OUT.mkdir(parents=True, exist_ok=True)
        for name, rows in {"headers.json": headers(), "saved.json": save_headers()}.items():
            lines = ",\n".join(json.dumps(row, sort_keys=True) for row in rows)
            (OUT / name).write_text(f"[\n{lines}\n]\n")
        archives()
        arrays()
