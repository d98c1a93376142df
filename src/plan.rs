//! The plan of a dataset that many processes write: what they must agree on before they start.
//!
//! `plan.json` has one spelling, so that equal plans are equal bytes, and its digest, the token, ties
//! block tables to it. Private to arrshard; `format-spec/README.md` tells of it in "Several writers".

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, escape, quoted};
use crate::json;
use crate::layout::ArrayLayout;
use crate::manifest::{Attributes, MANIFEST_MAX_DEPTH, Manifest, VERSION_MAJOR, folder_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fmt::Write as _;

/// File name of the plan.
pub(crate) const PLAN_NAME: &str = "plan.json";
const FORMAT: &str = "arrshard plan";
/// What the inputs of text have besides the files: the same text read in another way gives other values.
pub(crate) const READ_AS: &str = "read as ";
const START: &str = "{\n  \"_token\": \"";
const END: &str = "\",\n";

/// What is going to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) arrays: Vec<PlanArray>,
    pub(crate) attributes: Attributes,
    /// What tells the inputs of a conversion from others; empty if there are none.
    pub(crate) inputs: Vec<String>,
    pub(crate) strings: Vec<String>,
}

/// One array of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanArray {
    pub(crate) name: String,
    pub(crate) layout: ArrayLayout,
    pub(crate) attributes: Attributes,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanJson {
    arrays: Vec<ArrayJson>,
    attributes: Attributes,
    format: String,
    inputs: Vec<String>,
    strings: Vec<String>,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrayJson {
    attributes: Attributes,
    dtype: String,
    name: String,
    rows_per_shard: u64,
    shape: Vec<u64>,
}

fn corrupt(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}

impl Plan {
    /// The file's bytes and the token in them.
    pub(crate) fn to_bytes(&self) -> Result<(Vec<u8>, [u8; 32])> {
        let json = PlanJson {
            arrays: self
                .arrays
                .iter()
                .map(|array| ArrayJson {
                    attributes: array.attributes.clone(),
                    dtype: array.layout.dtype().name().to_owned(),
                    name: array.name.clone(),
                    rows_per_shard: array.layout.by_row().rows_per_shard,
                    shape: array.layout.shape().to_vec(),
                })
                .collect(),
            attributes: self.attributes.clone(),
            format: FORMAT.to_owned(),
            inputs: self.inputs.clone(),
            strings: self.strings.clone(),
            version: VERSION_MAJOR,
        };
        // Through Value, whose maps are sorted.
        let value = serde_json::to_value(&json).map_err(|e| corrupt(e.to_string()))?;
        let mut text = serde_json::to_string_pretty(&value).map_err(|e| corrupt(e.to_string()))?;
        text.push('\n');
        let covered = text.strip_prefix("{\n").unwrap_or(&text);
        let token: [u8; 32] = Sha256::digest(covered.as_bytes()).into();
        Ok((format!("{START}{}{END}{covered}", hex(&token)).into_bytes(), token))
    }

    /// Reads a plan back; it must have been written whole.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<(Self, [u8; 32])> {
        let text = std::str::from_utf8(bytes).map_err(|_| corrupt("expected UTF-8, found other bytes"))?;
        let rest = text.strip_prefix(START).and_then(|rest| rest.split_at_checked(64));
        let covered = rest.and_then(|(token, rest)| Some((token, rest.strip_prefix(END)?)));
        let (found, covered) = covered
            .ok_or_else(|| corrupt("expected a plan that starts with its token, found another file"))?;
        let token: [u8; 32] = Sha256::digest(covered.as_bytes()).into();
        if hex(&token) != found {
            return Err(corrupt(format!(
                "expected the token {}, found {}",
                hex(&token),
                quoted(found.as_bytes())
            )));
        }
        let value =
            json::parse(&format!("{{{covered}"), MANIFEST_MAX_DEPTH).map_err(|e| corrupt(e.to_string()))?;
        let json: PlanJson = serde_json::from_value(value).map_err(|e| corrupt(e.to_string()))?;
        if json.format != FORMAT || json.version != VERSION_MAJOR {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "expected {FORMAT} of version {VERSION_MAJOR}, found {} of version {}",
                    quoted(json.format.as_bytes()),
                    json.version
                ),
            ));
        }
        let mut arrays = Vec::with_capacity(json.arrays.len());
        for array in json.arrays {
            let dtype = DType::from_name(&array.dtype).ok_or_else(|| {
                corrupt(format!("expected a known dtype, found {}", quoted(array.dtype.as_bytes())))
            })?;
            let layout = ArrayLayout::with_rows_per_shard(dtype, &array.shape, array.rows_per_shard)?;
            arrays.push(PlanArray { name: array.name, layout, attributes: array.attributes });
        }
        let plan = Self { arrays, attributes: json.attributes, inputs: json.inputs, strings: json.strings };
        plan.check_names().map_err(|e| corrupt(e.to_string()))?;
        Ok((plan, token))
    }

    /// Names must be ones that a folder can have, and distinct.
    pub(crate) fn check_names(&self) -> Result<()> {
        let mut names = HashSet::new();
        for name in self.arrays.iter().map(|array| &array.name).chain(&self.strings) {
            folder_name(name)?;
            if !names.insert(name) {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("expected distinct array names, found {} twice", quoted(name.as_bytes())),
                ));
            }
        }
        Ok(())
    }

    /// What a sealed dataset was built by, as far as it still tells.
    pub(crate) fn of_manifest(manifest: &Manifest) -> Self {
        let arrays = manifest.arrays.iter().map(|array| PlanArray {
            name: array.name.clone(),
            layout: array.layout.clone(),
            attributes: array.attributes.clone(),
        });
        Self {
            arrays: arrays.collect(),
            attributes: manifest.attributes.clone(),
            inputs: Vec::new(),
            strings: manifest.strings.clone(),
        }
    }

    /// An error that names the first setting in which `other` differs from this plan.
    pub(crate) fn agree(&self, other: &Self) -> Result<()> {
        let list = |names: &mut dyn Iterator<Item = &String>| {
            let names: Vec<_> = names.map(|name| quoted(name.as_bytes())).collect();
            escape(names.join(", ").as_bytes(), 400)
        };
        let names = |plan: &Self| list(&mut plan.arrays.iter().map(|array| &array.name));
        differ("arrays", names(self), names(other))?;
        differ("strings", list(&mut self.strings.iter()), list(&mut other.strings.iter()))?;
        for (mine, theirs) in self.arrays.iter().zip(&other.arrays) {
            let place = format!("array {}: ", quoted(mine.name.as_bytes()));
            let check = |what: &str, of: &dyn Fn(&PlanArray) -> String| {
                differ(&format!("{place}{what}"), of(mine), of(theirs))
            };
            check("dtype", &|array| array.layout.dtype().to_string())?;
            check("shape", &|array| format!("{:?}", array.layout.shape()))?;
            check("rows_per_shard", &|array| array.layout.by_row().rows_per_shard.to_string())?;
            check("attributes", &|array| shown(&array.attributes))?;
        }
        differ("attributes", shown(&self.attributes), shown(&other.attributes))?;
        same_inputs(&self.inputs, &other.inputs)
    }
}

/// The last of the inputs may say how they are read.
fn same_inputs(mine: &[String], theirs: &[String]) -> Result<()> {
    let files = |inputs: &[String]| inputs.iter().filter(|input| !input.starts_with(READ_AS)).count();
    differ("number of inputs", files(mine).to_string(), files(theirs).to_string())?;
    for (number, (mine, theirs)) in (1..).zip(mine.iter().zip(theirs)) {
        if mine.starts_with(READ_AS) {
            differ("options for reading the inputs", mine.clone(), theirs.clone())?;
        }
        differ(&format!("input {number}"), mine.clone(), theirs.clone())?;
    }
    differ("inputs", mine.join(", "), theirs.join(", "))
}

fn shown(attributes: &Attributes) -> String {
    Value::Object(attributes.clone()).to_string()
}

fn differ(what: &str, mine: String, theirs: String) -> Result<()> {
    if mine == theirs {
        return Ok(());
    }
    let cut = |text: &str| escape(text.as_bytes(), 200);
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!("{what}: expected {} as in the plan, found {}", cut(&theirs), cut(&mine)),
    )
    .hint("write with the same settings, or abandon what has been written"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[u64]) -> Plan {
        let layout = ArrayLayout::new(DType::Float32, shape, 1 << 20).unwrap();
        Plan {
            arrays: vec![PlanArray { name: "x/y".into(), layout, attributes: Attributes::new() }],
            attributes: Attributes::from_iter([("b".to_owned(), 1.into()), ("a".to_owned(), "é".into())]),
            inputs: vec!["in".into()],
            strings: Vec::new(),
        }
    }

    #[test]
    fn a_plan_comes_back_and_damage_is_found() {
        let (bytes, token) = plan(&[1000, 7]).to_bytes().unwrap();
        assert_eq!(Plan::from_bytes(&bytes).unwrap(), (plan(&[1000, 7]), token));
        assert_ne!(plan(&[1001, 7]).to_bytes().unwrap().1, token);
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(Plan::from_bytes(&bad).unwrap_err().kind(), ErrorKind::Corrupt);
            assert!(Plan::from_bytes(&bytes[..at]).is_err());
        }
    }

    #[test]
    fn a_difference_is_named() {
        let mine = plan(&[1000, 7]);
        assert!(mine.agree(&mine).is_ok());
        let says = |other: &Plan, text: &str| {
            let error = mine.agree(other).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        };
        says(&plan(&[999, 7]), "array \"x/y\": shape: expected [999, 7] as in the plan, found [1000, 7]");
        says(&Plan { inputs: Vec::new(), ..plan(&[1000, 7]) }, "number of inputs: expected 0");
        let read = |inputs: &[&str]| Plan {
            inputs: inputs.iter().map(|&input| input.into()).collect(),
            ..plan(&[1000, 7])
        };
        says(&read(&["other"]), "input 1: expected other as in the plan, found in");
        let error = read(&["in", "read as 1"]).agree(&read(&["in", "read as 2"])).unwrap_err();
        assert!(error.to_string().contains("options for reading the inputs"), "{error}");
        says(&Plan { attributes: Attributes::new(), ..plan(&[1000, 7]) }, "attributes");
        let mut other = plan(&[1000, 7]);
        other.arrays[0].name = "z".into();
        says(&other, "arrays: expected \"z\"");
    }
}
