//! Drives the cases of `tests/data/cases` and the files of `tests/data/real` through the binary.
//!
//! Both are described by a README beside them. Each case must have the same outcome from a file and
//! from a pipe, with one thread and with two.

mod command;
mod values;

use command::{Ended, names, root, run, run_piped};
use serde_json::Value;
use std::fs;
use std::path::Path;
use values::{Found, from_json, from_npy, strings_of};

#[test]
fn cases_of_text() {
    let cases: Value =
        serde_json::from_slice(&fs::read(root().join("tests/data/cases/text.json")).unwrap()).unwrap();
    let cases = cases.as_array().unwrap().iter().filter(|case| case["scope"] == "0.1");
    let failures = cases.flat_map(|case| {
        let id = case["id"].as_str().unwrap().to_owned();
        text_case(case).err().map(|reason| (id, reason))
    });
    report(&failures.collect::<Vec<_>>());
}

#[test]
fn real_files() {
    let cases: Value =
        serde_json::from_slice(&fs::read(root().join("tests/data/real/expected.json")).unwrap()).unwrap();
    let failures = cases.as_array().unwrap().iter().flat_map(|case| {
        let id = format!("{} {}", case["file"].as_str().unwrap(), texts(&case["args"]).join(" "));
        real_case(case).err().map(|reason| (id, reason))
    });
    report(&failures.collect::<Vec<_>>());
}

/// Fails with a line for each case that does.
fn report(failures: &[(String, String)]) {
    let list: Vec<_> = failures.iter().map(|(id, reason)| format!("{id}: {reason}")).collect();
    assert!(list.is_empty(), "{} cases fail:\n{}", list.len(), list.join("\n"));
}

type Check = Result<(), String>;

fn text_case(case: &Value) -> Check {
    let input = input(case);
    let name = case["name"].as_str();
    for jobs in ["1", "2"] {
        if case["stdin"] != true {
            pack_file(case, name.unwrap_or("input"), &input, jobs).map_err(|e| format!("-j {jobs}: {e}"))?;
        }
        if name.is_none() {
            let tmp = tempfile::tempdir().unwrap();
            let mut args = pack_args(case, "-");
            args.extend(["-j", jobs].map(str::to_owned));
            let ended = run_piped(tmp.path(), args, &input);
            outcome(case, &ended, tmp.path(), 0, &in_place).map_err(|e| format!("from a pipe: {e}"))?;
        }
    }
    Ok(())
}

fn pack_file(case: &Value, name: &str, input: &[u8], jobs: &str) -> Check {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join(name), input).unwrap();
    let mut args = pack_args(case, name);
    args.extend(["-j", jobs].map(str::to_owned));
    outcome(case, &run(tmp.path(), args), tmp.path(), 1, &in_place)?;
    if let Some(unpack) = case.get("unpack") {
        let args = ["unpack", "OUT", "-o", "-"].into_iter().map(str::to_owned);
        let ended = run(tmp.path(), args.chain(texts(&unpack["args"])));
        let text = unpack["text"].as_str().unwrap();
        if ended.code != Some(0) || ended.out != text {
            return Err(format!("unpack: expected {text:?}, found {ended:?}"));
        }
    }
    match case["roundtrip"].as_str() {
        Some(format) => roundtrip(case, format, tmp.path()).map_err(|e| format!("roundtrip: {e}")),
        None => Ok(()),
    }
}

fn roundtrip(case: &Value, format: &str, at: &Path) -> Check {
    let out = format!("again.{format}");
    let mut args = vec!["unpack", "OUT", "--no-sync", "-o", &out];
    let expect = &case["expect"];
    if expect["layout"] == "columns" || expect["columns"].is_array() {
        args.push("--header");
    }
    let ended = run(at, args);
    if ended.code != Some(0) {
        return Err(format!("expected to unpack, found {ended:?}"));
    }
    let again = at.join("again");
    fs::create_dir(&again).unwrap();
    let input = format!("../{out}");
    let ended = run(&again, ["pack", "-q", "--no-sync", &input, "-o", "OUT"]);
    outcome(case, &ended, &again, 0, &in_place)
}

fn pack_args(case: &Value, input: &str) -> Vec<String> {
    let fixed = ["pack", "-q", "--no-sync", input, "-o", "OUT"].into_iter().map(str::to_owned);
    fixed.chain(texts(&case["args"])).collect()
}

fn real_case(case: &Value) -> Check {
    let file = root().join(case["file"].as_str().unwrap());
    let folder = root().join("tests/data/real");
    let expected = move |array: &Value, dtype: &str| -> Result<Vec<String>, String> {
        let path = folder.join(array["expected"].as_str().unwrap());
        let bytes = fs::read(path).unwrap();
        if dtype == "string" {
            return Ok(strings_of(&serde_json::from_slice(&bytes).unwrap()));
        }
        from_npy(&bytes)
    };
    for jobs in ["1", "2"] {
        let tmp = tempfile::tempdir().unwrap();
        let args = pack_args(case, file.to_str().unwrap());
        let ended = run(tmp.path(), args.into_iter().chain(["-j", jobs].map(str::to_owned)));
        outcome(case, &ended, tmp.path(), 0, &expected)?;
    }
    Ok(())
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn input(case: &Value) -> Vec<u8> {
    if let Some(text) = case["input"].as_str() {
        return text.into();
    }
    if let Some(hex) = case["input_hex"].as_str() {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        return digits.chunks(2).map(byte).collect();
    }
    if let Some(parts) = case["repeat"].as_array() {
        let part = |part: &Value| part[0].as_str().unwrap().repeat(part[1].as_u64().unwrap() as usize);
        return parts.iter().map(part).collect::<String>().into();
    }
    let ends = &case["lines_of_integers"];
    let lines = ends[0].as_i64().unwrap()..=ends[1].as_i64().unwrap();
    lines.map(|i| format!("{i}\n")).collect::<String>().into()
}

/// Where the values of an array are expected.
type Expected<'a> = &'a dyn Fn(&Value, &str) -> Result<Vec<String>, String>;

fn in_place(array: &Value, dtype: &str) -> Result<Vec<String>, String> {
    if dtype == "string" { Ok(strings_of(&array["strings"])) } else { from_json(array, dtype) }
}

/// Compares the end of a run with a case or with any of its `one_of`; `beside` files were there before.
fn outcome(case: &Value, ended: &Ended, at: &Path, beside: usize, expected: Expected<'_>) -> Check {
    if let Some(several) = case["one_of"].as_array() {
        let tried: Vec<_> = several.iter().map(|one| outcome(one, ended, at, beside, expected)).collect();
        if tried.iter().any(Result::is_ok) {
            return Ok(());
        }
        return Err(tried.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; or "));
    }
    if let Some(error) = case.get("error") {
        return failed(error, ended, at, beside);
    }
    if ended.code != Some(0) {
        return Err(format!("expected a dataset, found {:?} {}", ended.code, ended.err.trim_end()));
    }
    if names(at).len() != beside + 1 {
        return Err(format!("something is left: {:?}", names(at)));
    }
    dataset(case.get("expect").unwrap_or(case), &at.join("OUT"), expected)
}

fn failed(error: &Value, ended: &Ended, at: &Path, beside: usize) -> Check {
    let message = ended.err.trim_end();
    let wrong = |what: String| Err(format!("expected {what}, found {:?} {message}", ended.code));
    if ended.code != Some(2) {
        return wrong(format!("an error with {error}"));
    }
    if message.lines().count() != 1 || !message.starts_with("arrshard: ") || !ended.out.is_empty() {
        return wrong("one line".to_owned());
    }
    if names(at).len() != beside {
        return Err(format!("something is left: {:?}", names(at)));
    }
    if let Some(line) = error["line"].as_u64()
        && !message.contains(&format!(":{line}: "))
    {
        return wrong(format!("line {line}"));
    }
    if let Some(field) = error["field"].as_u64()
        && ![' ', ':'].iter().any(|end| message.contains(&format!(" field {field}{end}")))
    {
        return wrong(format!("field {field}"));
    }
    match texts(&error["mention"]).into_iter().find(|text| !message.contains(text)) {
        Some(text) => wrong(format!("{text:?}")),
        None => Ok(()),
    }
}

/// Compares a dataset with the arrays expected of it.
fn dataset(expect: &Value, path: &Path, expected: Expected<'_>) -> Check {
    let found = Found::open(path)?;
    let arrays = expect["arrays"].as_array().unwrap();
    if expect["layout"] == "svmlight" {
        return sparse(expect, path, &found, expected);
    }
    let summary = |arrays: &[(String, String, Vec<u64>)]| format!("{arrays:?}");
    if found.arrays.len() != arrays.len() {
        return Err(format!("expected {} arrays, found {}", arrays.len(), summary(&found.arrays)));
    }
    let dimensions = match expect["layout"].as_str() {
        Some("matrix") => Some(2),
        Some("columns") => Some(1),
        _ => None,
    };
    for (array, (name, dtype, shape)) in arrays.iter().zip(&found.arrays) {
        let wanted_dtype = array["dtype"].as_str().unwrap();
        let wanted_shape: Vec<u64> =
            array["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap()).collect();
        if array["name"].as_str().is_some_and(|wanted| wanted != name)
            || wanted_dtype != dtype
            || wanted_shape != *shape
            || dimensions.is_some_and(|dimensions| dimensions != shape.len())
        {
            let wanted = format!("{} {wanted_dtype} {wanted_shape:?}", array["name"]);
            return Err(format!("expected {wanted}, found {name:?} {dtype} {shape:?}"));
        }
        let values = found.values(name, dtype)?;
        if let Some(rows) = array["rows"].as_object() {
            let width = shape[1..].iter().product::<u64>() as usize;
            for (row, wanted) in rows {
                let start = row.parse::<usize>().unwrap() * width;
                let wanted = from_json(&serde_json::json!({ "values": wanted }), dtype)?;
                same(&wanted, &values[start..start + width])
                    .map_err(|e| format!("{name}, row {row}: {e}"))?;
            }
            continue;
        }
        same(&expected(array, dtype)?, &values).map_err(|e| format!("{name}: {e}"))?;
    }
    match expect["columns"].as_array() {
        Some(_) if found.columns != texts(&expect["columns"]) => {
            Err(format!("expected columns {}, found {:?}", expect["columns"], found.columns))
        }
        _ => Ok(()),
    }
}

/// Compares a dataset with a sparse matrix, which is expected dense, and what stands beside it.
fn sparse(expect: &Value, path: &Path, found: &Found, expected: Expected<'_>) -> Check {
    let whole = |name: &str| -> Result<Vec<usize>, String> {
        let values = found.values(name, "int64")?;
        values
            .iter()
            .map(|value| value.parse::<usize>().map_err(|e| format!("{name}: {value:?}: {e}")))
            .collect()
    };
    let manifest: Value = serde_json::from_slice(&fs::read(path.join("arrshard.json")).unwrap()).unwrap();
    let lists = |name: &str, values: &[String]| -> Result<Vec<Vec<String>>, String> {
        Ok(whole(name)?.windows(2).map(|ends| values[ends[0]..ends[1]].to_vec()).collect())
    };
    for array in expect["arrays"].as_array().unwrap() {
        let (name, dtype) = (array["name"].as_str().unwrap(), array["dtype"].as_str().unwrap());
        if !found.arrays.iter().any(|(found, as_dtype, _)| found == name && as_dtype == dtype) {
            return Err(format!("expected {name} {dtype}, found {:?}", found.arrays));
        }
        let values = found.values(name, dtype)?;
        if name != "data" {
            same(&expected(array, dtype)?, &values).map_err(|e| format!("{name}: {e}"))?;
            continue;
        }
        if manifest["attributes"]["csr"]["shape"] != array["shape"] {
            return Err(format!("expected shape {}, found {}", array["shape"], manifest["attributes"]));
        }
        let width = array["shape"][1].as_u64().unwrap() as usize;
        let zero = from_json(&serde_json::json!({ "values": [0] }), dtype)?.remove(0);
        let indices: Vec<String> = whole("indices")?.iter().map(usize::to_string).collect();
        let rows = lists("indptr", &indices)?.into_iter().zip(lists("indptr", &values)?);
        let mut dense: Vec<String> = Vec::new();
        for (indices, values) in rows {
            let start = dense.len();
            dense.resize(start + width, zero.clone());
            indices.iter().zip(values).for_each(|(i, v)| dense[start + i.parse::<usize>().unwrap()] = v);
        }
        if let Some(rows) = array["rows"].as_object() {
            for (row, wanted) in rows {
                let start = row.parse::<usize>().unwrap() * width;
                let wanted = from_json(&serde_json::json!({ "values": wanted }), dtype)?;
                same(&wanted, &dense[start..start + width]).map_err(|e| format!("row {row}: {e}"))?;
            }
            continue;
        }
        same(&expected(array, dtype)?, &dense).map_err(|e| format!("{name}: {e}"))?;
    }
    let Some(labels) = expect["labels"].as_array() else { return Ok(()) };
    let wanted: Vec<Vec<String>> =
        labels.iter().map(|list| list.as_array().unwrap().iter().map(Value::to_string).collect()).collect();
    let labels = lists("labels_indptr", &found.values("labels", "int64")?)?;
    if labels == wanted { Ok(()) } else { Err(format!("expected labels {wanted:?}, found {labels:?}")) }
}

fn same(wanted: &[String], found: &[String]) -> Check {
    if wanted.len() != found.len() {
        return Err(format!("expected {} values, found {}", wanted.len(), found.len()));
    }
    match wanted.iter().zip(found).position(|(wanted, found)| wanted != found) {
        Some(at) => Err(format!("value {at}: expected {}, found {}", wanted[at], found[at])),
        None => Ok(()),
    }
}
