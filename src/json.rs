//! JSON without surprises: duplicate keys and deep nesting are errors, not the last value and a
//! deep stack; a member that is missing, unknown or of another type is an error that names it.

use crate::error::{Error, ErrorKind, Result as Checked, quoted};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Parses one JSON text whose objects and lists nest at most `max_depth` deep.
pub(crate) fn parse(text: &str, max_depth: usize) -> serde_json::Result<Value> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Strict(max_depth).deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

/// Carries how many more levels may open.
#[derive(Clone, Copy)]
struct Strict(usize);

impl Strict {
    fn deeper<E: serde::de::Error>(&self) -> Result<Strict, E> {
        self.0.checked_sub(1).map(Strict).ok_or_else(|| E::custom("nested too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<Value, E> {
        Number::from_f64(v).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(inner)?;
            if members.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate key {key:?}")));
            }
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

/// The largest integer that the manifest may hold.
const MAX_INTEGER: u64 = i64::MAX as u64;

/// The members of an object, taken out one after the other.
pub(crate) struct Members(Map<String, Value>);

impl Members {
    /// Those of `value`, which must be an object.
    pub(crate) fn of(value: Value) -> Checked<Self> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            other => Err(unexpected("an object", &other)),
        }
    }

    fn take<T>(&mut self, name: &str, read: impl FnOnce(Value) -> Checked<T>) -> Checked<T> {
        let value =
            self.0.remove(name).ok_or_else(|| corrupt(format!("expected the member {name}, found none")))?;
        read(value).map_err(|e| within(name, &e))
    }

    pub(crate) fn text(&mut self, name: &str) -> Checked<String> {
        self.take(name, text)
    }

    pub(crate) fn integer(&mut self, name: &str) -> Checked<u64> {
        self.take(name, |value| integer(&value))
    }

    pub(crate) fn object(&mut self, name: &str) -> Checked<Map<String, Value>> {
        self.take(name, |value| Ok(Self::of(value)?.0))
    }

    /// A list whose items `read` takes.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        mut read: impl FnMut(Value) -> Checked<T>,
    ) -> Checked<Vec<T>> {
        self.take(name, |value| match value {
            Value::Array(items) => {
                let items = items.into_iter().enumerate();
                items.map(|(i, item)| read(item).map_err(|e| within(&format!("item {i}"), &e))).collect()
            }
            other => Err(unexpected("a list", &other)),
        })
    }

    /// Refuses what is left, unless a later version may have given it a meaning.
    pub(crate) fn end(self, later: bool) -> Checked<()> {
        match self.0.keys().next() {
            Some(name) if !later => {
                Err(corrupt(format!("expected no other member, found {}", quoted(name.as_bytes()))))
            }
            _ => Ok(()),
        }
    }
}

/// A string.
pub(crate) fn text(value: Value) -> Checked<String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(unexpected("a string", &other)),
    }
}

/// An integer from 0 to 2^63 - 1, spelled as one.
pub(crate) fn integer(value: &Value) -> Checked<u64> {
    value
        .as_u64()
        .filter(|&number| number <= MAX_INTEGER)
        .ok_or_else(|| unexpected(&format!("an integer from 0 to {MAX_INTEGER}"), value))
}

/// The same error, one place further out.
pub(crate) fn within(place: &str, error: &Error) -> Error {
    Error::new(error.kind(), format!("{place}: {error}"))
}

fn corrupt(what: String) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}

fn unexpected(expected: &str, found: &Value) -> Error {
    let found = match found {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => quoted(text.as_bytes()),
        other => other.to_string(),
    };
    corrupt(format!("expected {expected}, found {found}"))
}

/// The value with the members of every object in the order of their names' bytes. serde_json's
/// maps are so by themselves, unless some crate of the program turns its feature
/// `preserve_order` on for all.
pub(crate) fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{Members, integer, parse};
    use serde_json::json;

    #[test]
    fn nothing_is_overwritten_and_nothing_is_deep() {
        assert_eq!(parse(r#"{"a": [1, -2.5, null, "x"]}"#, 2).unwrap()["a"][1], -2.5);
        for bad in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"x": {"a": 1, "a": 2}}"#,
            "[[[]]]",
            "[[{}]]",
            "[1] 2",
            "{\"a\": NaN}",
            "1e999",
        ] {
            assert!(parse(bad, 2).is_err(), "{bad}");
        }
        assert!(parse(&"[".repeat(1_000_000), 16).is_err());
    }

    #[test]
    fn members_are_all_there_and_no_others() {
        let members = || Members::of(json!({"a": 1, "b": ["x"], "c": null})).unwrap();
        assert_eq!(members().integer("a").unwrap(), 1);
        assert_eq!(members().list("b", super::text).unwrap(), ["x"]);
        for (error, says) in [
            (members().integer("d").unwrap_err(), "expected the member d, found none"),
            (members().text("a").unwrap_err(), "a: expected a string, found 1"),
            (members().object("b").unwrap_err(), "b: expected an object, found a list"),
            (members().list("b", |v| integer(&v)).unwrap_err(), "b: item 0: expected an integer"),
            (members().end(false).unwrap_err(), "expected no other member, found \"a\""),
        ] {
            assert!(error.to_string().contains(says), "{error}");
        }
        assert!(members().end(true).is_ok());
        for bad in [json!(-1), json!(1.0), json!(true), json!("1"), json!(1u64 << 63)] {
            assert!(integer(&bad).is_err(), "{bad}");
        }
    }
}
