//! The subset of Python literals that a `.npy` header may hold, read in one pass without backtracking.
//!
//! Why not the parser of npyz (py_literal): it backtracks exponentially on nested brackets, and its
//! grammar is not the one that NumPy accepts. It refuses the `2L` of Python 2, blank lines inside
//! the dict and `(x)` for a bracketed `x`; it takes sums such as `1+1`, and complex numbers. Here each
//! byte is looked at a bounded number of times, and the depth of brackets is capped.
//!
//! What Python would read and this doesn't, since no writer is known to write it: triple-quoted and
//! raw strings, strings side by side, `\N{…}`, `0x2`, `1_000`, `+2`, comments, sets, floats.

/// Brackets inside brackets; a dict of nested records with titles and shapes needs seven.
const MAX_DEPTH: u32 = 16;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal<'a> {
    Str(String),
    /// Digits, with `-` before them if negative, as they stand: a dimension may have any number of them.
    Int(&'a str),
    Bool(bool),
    None,
    Tuple(Vec<Literal<'a>>),
    List(Vec<Literal<'a>>),
    Dict(Vec<(Literal<'a>, Literal<'a>)>),
}

impl Literal<'_> {
    /// What an error calls it.
    pub(super) fn describe(&self) -> String {
        use crate::error::quoted;
        match self {
            Literal::Str(s) => quoted(s.as_bytes()),
            Literal::Int(digits) => quoted(digits.as_bytes()),
            Literal::Bool(true) => "True".into(),
            Literal::Bool(false) => "False".into(),
            Literal::None => "None".into(),
            Literal::Tuple(items) => format!("a tuple of {}", items.len()),
            Literal::List(items) => format!("a list of {}", items.len()),
            Literal::Dict(items) => format!("a dict of {}", items.len()),
        }
    }
}

/// Where the text stops being a literal, and what could have stood there.
#[derive(Debug)]
pub(super) struct Fault {
    /// Bytes from the start of the text.
    pub(super) at: usize,
    pub(super) expected: &'static str,
}

/// Reads the one literal that `text` holds, with blanks around it. `longs` allows the `L` that
/// Python 2 wrote after some integers.
pub(super) fn parse(text: &str, longs: bool) -> Result<Literal<'_>, Fault> {
    let mut parser = Parser { text, at: 0, depth: 0, longs };
    let value = parser.value()?;
    parser.blanks();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.fault("nothing after the literal")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    longs: bool,
}

impl<'a> Parser<'a> {
    fn fault(&self, expected: &'static str) -> Fault {
        Fault { at: self.at, expected }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0C)) {
            self.at += 1;
        }
    }

    /// Steps over `byte` and the blanks before it, if it is next.
    fn eat(&mut self, byte: u8) -> bool {
        self.blanks();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let found = rest.starts_with(word.as_bytes())
            && !rest.get(word.len()).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80);
        if found {
            self.at += word.len();
        }
        found
    }

    fn value(&mut self) -> Result<Literal<'a>, Fault> {
        const EXPECTED: &str = "a string, an integer, True, False, or a bracket";
        self.blanks();
        match self.peek() {
            Some(b'\'' | b'"') => self.string().map(Literal::Str),
            Some(b'u' | b'U') if matches!(self.text.as_bytes().get(self.at + 1), Some(b'\'' | b'"')) => {
                self.at += 1;
                self.string().map(Literal::Str)
            }
            Some(b'0'..=b'9' | b'-') => self.integer(),
            Some(open @ (b'(' | b'[' | b'{')) => {
                if self.depth == MAX_DEPTH {
                    return Err(self.fault("at most 16 brackets inside each other"));
                }
                self.at += 1;
                self.depth += 1;
                let value = match open {
                    b'(' => self.tuple(),
                    b'[' => self.list(),
                    _ => self.dict(),
                };
                self.depth -= 1;
                value
            }
            Some(b'T') if self.word("True") => Ok(Literal::Bool(true)),
            Some(b'F') if self.word("False") => Ok(Literal::Bool(false)),
            Some(b'N') if self.word("None") => Ok(Literal::None),
            _ => Err(self.fault(EXPECTED)),
        }
    }

    fn integer(&mut self) -> Result<Literal<'a>, Fault> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let first = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        let digits = &self.text[first..self.at];
        // Python refuses `02` too: in Python 2 it was octal.
        if digits.is_empty() || (digits.starts_with('0') && digits.bytes().any(|b| b != b'0')) {
            self.at = start;
            return Err(self.fault("a decimal integer"));
        }
        let value = Literal::Int(&self.text[start..self.at]);
        if self.longs && self.peek() == Some(b'L') {
            self.at += 1;
        }
        if matches!(self.peek(), Some(b) if b.is_ascii_alphanumeric() || b == b'_' || b == b'.') {
            return Err(self.fault("the end of an integer"));
        }
        Ok(value)
    }

    fn tuple(&mut self) -> Result<Literal<'a>, Fault> {
        if self.eat(b')') {
            return Ok(Literal::Tuple(Vec::new()));
        }
        let first = self.value()?;
        if self.eat(b')') {
            // Without a comma these are mere brackets.
            return Ok(first);
        }
        let mut items = vec![first];
        loop {
            if !self.eat(b',') {
                return Err(self.fault("\",\" or \")\""));
            }
            if self.eat(b')') {
                return Ok(Literal::Tuple(items));
            }
            items.push(self.value()?);
            if self.eat(b')') {
                return Ok(Literal::Tuple(items));
            }
        }
    }

    fn list(&mut self) -> Result<Literal<'a>, Fault> {
        let mut items = Vec::new();
        loop {
            if self.eat(b']') {
                return Ok(Literal::List(items));
            }
            items.push(self.value()?);
            if !self.eat(b',') {
                return if self.eat(b']') {
                    Ok(Literal::List(items))
                } else {
                    Err(self.fault("\",\" or \"]\""))
                };
            }
        }
    }

    fn dict(&mut self) -> Result<Literal<'a>, Fault> {
        let mut items = Vec::new();
        loop {
            if self.eat(b'}') {
                return Ok(Literal::Dict(items));
            }
            let key = self.value()?;
            if !self.eat(b':') {
                return Err(self.fault("\":\""));
            }
            items.push((key, self.value()?));
            if !self.eat(b',') {
                return if self.eat(b'}') {
                    Ok(Literal::Dict(items))
                } else {
                    Err(self.fault("\",\" or \"}\""))
                };
            }
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let quote = self.text.as_bytes()[self.at];
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = rest.iter().position(|&b| b == quote || matches!(b, b'\\' | b'\n' | b'\r' | 0));
            let Some(plain) = plain else {
                self.at = self.text.len();
                return Err(self.fault("the closing quote of a string"));
            };
            // All bytes searched for are ASCII, so the cut is at the edge of a character.
            out.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain;
            match self.peek() {
                Some(b) if b == quote => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err(self.fault("the closing quote of a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        const EXPECTED: &str = "an escape such as \\n, \\' or \\u1234";
        let fault = self.fault(EXPECTED);
        let Some(&code) = self.text.as_bytes().get(self.at + 1) else { return Err(fault) };
        self.at += 2;
        let digits = match code {
            b'\\' | b'\'' | b'"' => return Ok(char::from(code)),
            b'n' => return Ok('\n'),
            b'r' => return Ok('\r'),
            b't' => return Ok('\t'),
            b'a' => return Ok('\x07'),
            b'b' => return Ok('\x08'),
            b'f' => return Ok('\x0C'),
            b'v' => return Ok('\x0B'),
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            _ => return Err(fault),
        };
        let hex = self.text.as_bytes().get(self.at..self.at + digits).unwrap_or_default();
        let mut value = 0u32;
        for &b in hex {
            let Some(digit) = char::from(b).to_digit(16) else { return Err(fault) };
            value = value << 4 | digit;
        }
        self.at += digits;
        // An empty `hex` (the text ends here) would else read as NUL.
        if hex.is_empty() {
            return Err(fault);
        }
        char::from_u32(value).ok_or(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_tuples_are_told_apart() {
        let int = |s| Literal::Int(s);
        assert_eq!(parse("(2)", false).unwrap(), int("2"));
        assert_eq!(parse("(2,)", false).unwrap(), Literal::Tuple(vec![int("2")]));
        assert_eq!(parse(" ( ) ", false).unwrap(), Literal::Tuple(vec![]));
        assert_eq!(parse("(2\n, -3,)", false).unwrap(), Literal::Tuple(vec![int("2"), int("-3")]));
        assert_eq!(parse("[(1),]", false).unwrap(), Literal::List(vec![int("1")]));
    }

    #[test]
    fn what_python_refuses_is_refused_at_its_place() {
        for (text, at) in [
            ("", 0),
            ("(,)", 1),
            ("(2,,)", 3),
            ("(1*1,)", 2),
            ("[1 2]", 3),
            ("(02,)", 1),
            ("(2.0,)", 2),
            ("(2L,)", 2),
            ("'abc", 4),
            ("'a\nb'", 2),
            ("'\\ud800'", 1),
            ("'\\u12", 1),
            ("'\\", 1),
            ("{'a' 1}", 5),
            ("{1: 2} x", 7),
            ("Truely", 0),
            ("-", 0),
            ("nan", 0),
        ] {
            let fault = parse(text, false).expect_err(text);
            assert_eq!(fault.at, at, "{text}: {fault:?}");
        }
        assert!(parse("(2L,)", true).is_ok());
        assert!(parse("(2LL,)", true).is_err());
    }

    #[test]
    fn strings_are_unescaped() {
        let text = r#"'it\'s \x41\u6574\U0001F600\\\n' "#;
        assert_eq!(parse(text, false).unwrap(), Literal::Str("it's A整😀\\\n".into()));
        assert_eq!(parse("u\"'\"", false).unwrap(), Literal::Str("'".into()));
    }

    #[test]
    fn depth_is_capped() {
        let nested = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(&nested(16), false).is_ok());
        assert!(parse(&nested(17), false).is_err());
        assert!(parse(&"([{".repeat(10_000), false).is_err());
    }
}
