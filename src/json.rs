//! JSON without surprises: duplicate keys and deep nesting are errors, not the last value and a
//! deep stack.

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

#[cfg(test)]
mod tests {
    use super::parse;

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
}
