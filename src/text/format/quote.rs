//! Fields of text between delimiters (RFC 4180).

use super::sink::Sink;

/// Appends `text` as one field: between quotes, with its quotes doubled, if it holds the delimiter, a
/// quote, CR or LF, starts or ends with a blank, starts with `#`, which many readers take for a
/// comment, or is empty; as it is otherwise.
pub fn quote(text: &[u8], delimiter: &[u8], out: &mut Vec<u8>) {
    let mut sink = Sink::new(out);
    put_field(text, delimiter, &mut sink);
    sink.finish();
}

/// [`quote`] into a sink.
pub(super) fn put_field(text: &[u8], delimiter: &[u8], sink: &mut Sink<'_>) {
    if needs_quotes(text, delimiter) {
        sink.put(b"\"");
        let mut parts = text.split(|&b| b == b'"');
        sink.put(parts.next().unwrap_or_default());
        for part in parts {
            sink.put(b"\"\"");
            sink.put(part);
        }
        sink.put(b"\"");
    } else {
        sink.put(text);
    }
}

fn needs_quotes(text: &[u8], delimiter: &[u8]) -> bool {
    let blank = |b: Option<&u8>| matches!(b, None | Some(b' ' | b'\t'));
    let edges = blank(text.first()) || blank(text.last()) || text.first() == Some(&b'#');
    if edges || memchr::memchr3(b'"', b'\r', b'\n', text).is_some() {
        return true;
    }
    match delimiter {
        [] => false,
        [byte] => memchr::memchr(*byte, text).is_some(),
        _ => memchr::memmem::find(text, delimiter).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_where_needed() {
        for (text, expected) in [
            ("plain", "plain"),
            ("two words", "two words"),
            ("", "\"\""),
            (" a", "\" a\""),
            ("a\t", "\"a\t\""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("\"", "\"\"\"\""),
            ("a\r", "\"a\r\""),
            ("a\nb", "\"a\nb\""),
            ("é;", "é;"),
            ("#1", "\"#1\""),
            ("1#", "1#"),
        ] {
            let mut out = b">".to_vec();
            quote(text.as_bytes(), b",", &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!(">{expected}"));
        }
        let mut out = Vec::new();
        quote(b"a:b", b"::", &mut out);
        quote(b"a::b", b"::", &mut out);
        assert_eq!(out, b"a:b\"a::b\"");
    }
}
