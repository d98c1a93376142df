"""Writes tests/data/real/expected.json and tests/data/real/expected/: what `arrshard pack` must
give for each real file, as NumPy and pandas read it.

    python tools/reference/make_real_expected.py

needs numpy and pandas. The same packages give the same bytes. Text numbers are read by pandas with
float_precision="round_trip" (its other modes are off by one unit in the last place now and then)
and checked here a second time, field by field, with Python's csv module and float().
"""

import csv
import io
import json
import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / "tests" / "data" / "real"
OUT = REAL / "expected"


def save(stem, array):
    path = OUT / f"{stem}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.ascontiguousarray(array), allow_pickle=False)
    return path.relative_to(REAL).as_posix()


def save_strings(stem, strings):
    path = OUT / f"{stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(strings, ensure_ascii=False, indent=0) + "\n", encoding="utf-8", newline="\n")
    return path.relative_to(REAL).as_posix()


def unique(names):
    """pandas' rule for names that come twice: ANOM, ANOM.1, ANOM.2."""
    seen, out = {}, []
    for name in names:
        n = seen.get(name, 0)
        out.append(name if n == 0 else f"{name}.{n}")
        seen[name] = n + 1
    return out


def fields(file, sep, skip, comment=None, quote='"'):
    """The records of a file by the plainest means, as a check on pandas."""
    text = (ROOT / file).read_bytes().decode("utf-8-sig")
    lines = re.split(r"\r\n|\r|\n", text)[skip:]
    lines = [line for line in lines if line.strip() and not (comment and line.startswith(comment))]
    if sep == "blanks":
        return [line.split() for line in lines]
    return list(csv.reader(io.StringIO("\n".join(lines)), delimiter=sep, quotechar=quote))


def frame(file, sep=",", header=True, skip=0, missing=False, comment=None, quote='"'):
    table = pd.read_csv(
        ROOT / file,
        sep=r"\s+" if sep == "blanks" else sep,
        header=0 if header else None,
        skiprows=skip,
        comment=comment,
        quotechar=quote,
        float_precision="round_trip",
        keep_default_na=False,
        na_values=[""] if missing else [],
        encoding="utf-8-sig",
    )
    rows = fields(file, sep, skip, comment, quote)
    names = unique(rows.pop(0)) if header else []
    assert table.shape == (len(rows), len(rows[0])), (file, table.shape)
    if header:
        assert [n for n in names if n] == [n for n in table.columns if not n.startswith("Unnamed")], file
    for j in range(table.shape[1]):
        column = table.iloc[:, j]
        texts = [row[j] for row in rows]
        if column.dtype.kind in "if":
            want = [float(t) if t.strip() else float("nan") for t in texts]
            assert np.array_equal(np.array(want), column.to_numpy(np.float64), equal_nan=True), (file, j)
            if column.dtype.kind == "i":
                assert [int(t) for t in texts] == column.tolist(), (file, j)
        else:
            assert column.fillna("").tolist() == texts, (file, j)
    return table, names


# pandas 3 reads correctly rounded without being told to and says so at each call.
warnings.filterwarnings("ignore", message=".*float_precision")
# win64python2.npy is meant to be old.
warnings.filterwarnings("ignore", message=".*created on Python 2")

entries = []


def entry(file, args, about, **result):
    if "/" not in file:
        file = f"tests/data/real/{file}"
    entries.append({"file": file, "args": args, "about": about, **result})


def matrix(file, args, about, stem=None, dtype=None, **how):
    path = file if "/" in file else f"tests/data/real/{file}"
    table, names = frame(path, **how)
    kinds = {d.kind for d in table.dtypes}
    assert kinds <= {"i", "f"}, (file, table.dtypes)
    array = table.to_numpy(dtype or (np.int64 if kinds == {"i"} else np.float64))
    if dtype or kinds == {"i", "f"}:
        assert np.array_equal(array, table.to_numpy(np.float64), equal_nan=True)
    stem = stem or Path(file).name
    result = {
        "layout": "matrix",
        "columns": names,
        "arrays": [{"name": "data", "dtype": array.dtype.name, "shape": list(array.shape), "expected": save(stem, array)}],
    }
    entry(file, args, about, **result)
    return result


def columns(file, args, about, names=None, **how):
    table, found = frame(f"tests/data/real/{file}", **how)
    names = names or found
    arrays = []
    for j in range(table.shape[1]):
        column = table.iloc[:, j]
        stem = f"{file}/{j:02}"
        name = names[j] if names else None
        if column.dtype.kind in "if":
            arrays.append({"name": name, "dtype": column.dtype.name, "shape": [len(column)], "expected": save(stem, column.to_numpy())})
        else:
            arrays.append({"name": name, "dtype": "string", "shape": [len(column)], "expected": save_strings(stem, column.fillna("").tolist())})
    entry(file, args, about, layout="columns", arrays=arrays)


def arrays(file, about):
    loaded = np.load(REAL / file, allow_pickle=False)
    named = {"data": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    result = []
    for name, array in named.items():
        stem = file if isinstance(loaded, np.ndarray) else f"{file}/{name}"
        result.append({"name": name, "dtype": array.dtype.name, "shape": list(array.shape), "expected": save(stem, array)})
    entry(file, [], about, layout="arrays", arrays=result)


def error(file, args, about, line=None, field=None, mention=()):
    entry(file, args, about, error=failure(line, field, mention))


def failure(line=None, field=None, mention=()):
    return {"line": line, "field": field, "mention": list(mention)}


def either(file, args, about, *outcomes):
    entry(file, args, about, one_of=list(outcomes))


def main():
    shutil.rmtree(OUT, ignore_errors=True)

    matrix("tools/demo/elnino.csv", [], "quoted names; years are integers, temperatures are not: one float matrix", stem="demo_elnino.csv")
    matrix("elnino.dat", [], "blanks, aligned, with a header that has ANOM four times; known only by its content", sep="blanks")
    matrix("macrodata.csv", [], "quoted names, integers and decimals")
    matrix("inv_gaussian.csv", [], "no digit before the point: .3134754, -.5")
    matrix("test_data.txt", [], "right-aligned: every line starts with blanks", sep="blanks", header=False)

    good = matrix("survival_data_1000_10.csv", ["--from", "text"], "blanks between fields in a file called .csv", sep="blanks", header=False)
    either("survival_data_1000_10.csv", [], "by content it is the matrix; going by the name alone must be an error, never one column of strings",
           good, {"error": failure(mention=["--from"])}, {"error": failure(mention=["--delimiter"])})
    good = matrix("modechoice.csv", ["--delimiter", ";"], "semicolons, all integers", sep=";")
    either("modechoice.csv", [], "as above with semicolons", good, {"error": failure(mention=["--delimiter"])})
    good = matrix("anes96.csv", ["--from", "tsv", "--quote", "'"], "tabs in a file called .csv, names in single quotes", sep="\t", quote="'")

    randhie = frame("tests/data/real/randhie.csv", missing=True)[0].isna().to_numpy()
    row, column = (int(k[0]) for k in np.nonzero(randhie))
    error("randhie.csv", [], "45 columns, some values missing", line=row + 2, field=column + 1, mention=["--missing"])
    matrix("randhie.csv", ["--missing", "nan"], "empty fields are NaN when that is asked for", missing=True)

    filardo = frame("tests/data/real/mar_filardo.csv", missing=True)[0].isna().to_numpy()
    row, column = (int(k[0]) for k in np.nonzero(filardo))
    either("mar_filardo.csv", [], "lines end in CR alone, no last line end, values missing",
           {"error": failure(row + 2, column + 1, ["--missing"])}, {"error": failure(mention=["CR"])})
    good = matrix("mar_filardo.csv", ["--missing", "nan"], "lines end in CR alone; never one row of thousands of fields", missing=True)
    entries.pop()
    either("mar_filardo.csv", ["--missing", "nan"], "lines end in CR alone; never one row of thousands of fields",
           good, {"error": failure(mention=["CR"])})

    columns("danish_data.csv", [], "a byte-order mark before the first name, a text column of quarters")
    good = matrix("iris.csv", [], "line 1 is a count and class names, as wide as the rest: pandas takes it for a header")
    entries.pop()
    either("iris.csv", [], "line 1 is a count and class names, as wide as the rest: pandas takes it for a header, we refuse it",
           good, {"error": failure(line=1, field=3, mention=["setosa", "--skip-rows"])})
    matrix("iris.csv", ["--skip-rows", "1"], "the same without line 1: no names", stem="iris.csv.skip1", skip=1, header=False)
    either("wine_data.csv", [], "line 1 is a count and class names, narrower than the rest",
           {"error": failure(line=2, mention=["14", "5"])}, {"error": failure(line=1, mention=["14", "5"])})
    matrix("wine_data.csv", ["--skip-rows", "1"], "without line 1", skip=1, header=False)
    matrix("diabetes_target.csv", [], "np.savetxt of one column, %.18e: floats", header=False)
    matrix("diabetes_target.csv", ["--dtype", "i8"], "whole numbers in that notation, wanted as integers", stem="diabetes_target.csv.i8", dtype=np.int64, header=False)
    matrix("digits.csv", [], "300 rows of 65 integers, no header", header=False)
    matrix("digits.csv", ["--dtype", "u1"], "the same in one byte each", stem="digits.csv.u1", dtype=np.uint8, header=False)
    columns("CGM.csv", [], "CRLF, but the last line ends in LF; text between two numeric columns")
    columns("elements.csv", ["--missing", "nan"], "21 columns of all kinds with holes; # is data in a CSV; [288] makes a column text", missing=True)
    error("elements.csv", [], "helium has no electronegativity; the hole before it is in a text column and is the empty string", line=3, field=7, mention=["--missing"])
    error("lincoln_weather.csv", [], "every field quoted, numbers in quotes are numbers; one day has no temperature",
          line=170, field=4, mention=["--missing"])
    columns("lincoln_weather.csv", ["--missing", "nan"], "commas in the names, numbers in quotes are numbers", missing=True)
    columns("titanic_all.csv", ["--missing", "nan"], "commas and doubled quotes in names, ages missing", missing=True)
    ages = frame("tests/data/real/titanic_all.csv", missing=True)[0]["age"].isna().to_numpy()
    error("titanic_all.csv", [], "the first passenger without an age", line=int(np.argmax(ages)) + 2, field=3, mention=["--missing"])
    matrix("multicenter_aids_cohort.tsv", [], "tabs, header, integers and decimals", sep="\t")
    names = frame("tests/data/real/weighted_unifrac_dm.txt", sep="\t")[1]
    columns("weighted_unifrac_dm.txt", ["--from", "tsv"], "a distance matrix with row labels; the first name is empty, so any name will do",
            names=[name or None for name in names], sep="\t")
    columns("iso3166.tab", ["--from", "tsv", "--header", "no", "--comment", "#"], "comments, UTF-8, two text columns without names",
            sep="\t", header=False, comment="#")

    zone = (REAL / "zone1970.tab").read_text(encoding="utf-8").splitlines()
    width = [(n, line.count("\t") + 1) for n, line in enumerate(zone, 1) if not line.startswith("#")]
    wrong = next(n for n, w in width if w != width[0][1])
    error("zone1970.tab", ["--from", "tsv", "--header", "no", "--comment", "#"], "three fields or four", line=wrong, mention=["3", "4"])

    arrays("win64python2.npy", "shape (2L,), as Python 2 wrote it; data at byte 80")
    arrays("estimate_gradients_hang.npy", "data at byte 80")
    arrays("gcvspl.npz", "three arrays, stored")
    arrays("bug-1310.npz", "one array, deflated")
    error("py3-objarr.npy", [], "a pickle, which is never run", mention=["object"])
    error("fftpack_test.npz", [], "two of its nineteen arrays are byte strings", mention=["|S"])

    text = json.dumps(entries, ensure_ascii=False, indent=1, allow_nan=False)
    # Lists of plain values on one line: the file is for reading too.
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda m: "[" + re.sub(r",\s+", ", ", m[1]) + "]", text)
    assert json.loads(text) == json.loads(json.dumps(entries))
    (REAL / "expected.json").write_text(text + "\n", encoding="utf-8", newline="\n")
    total = sum(p.stat().st_size for p in REAL.rglob("*") if p.is_file())
    print(f"{len(entries)} entries over {len({e['file'] for e in entries})} files, {total} bytes in tests/data/real")


main()
