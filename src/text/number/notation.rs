//! Numbers as other programs and countries write them, rewritten as plain ones before they are read.

/// What stands in a number where a plain one has a point, nothing, and an `e`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Notation {
    /// Before the fraction: `.`, or `,` in much of the world.
    pub decimal: u8,
    /// Between groups of three digits before that.
    pub thousands: Option<u8>,
    /// Whether `d` and `D` may stand before an exponent, as Fortran writes doubles.
    pub fortran_exponent: bool,
}

impl Default for Notation {
    fn default() -> Self {
        Self { decimal: b'.', thousands: None, fortran_exponent: false }
    }
}

impl Notation {
    /// Whether nothing has to be rewritten.
    pub fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// The field as a plain number, or as it is if it has no digit (`nan`, a word, nothing). `None` if it
    /// is no number in this notation, whatever it would be in another.
    pub fn plain(self, field: &[u8]) -> Option<Vec<u8>> {
        let field = field.trim_ascii();
        if !field.iter().any(u8::is_ascii_digit) {
            return Some(field.to_vec());
        }
        match self.rewrite(field) {
            // Other forms, such as complex numbers, have the same point in both.
            None if self.decimal == b'.' && self.thousands.is_none() => Some(field.to_vec()),
            rewritten => rewritten,
        }
    }

    fn rewrite(self, field: &[u8]) -> Option<Vec<u8>> {
        let mut plain = Vec::with_capacity(field.len());
        let mut rest = field;
        if let Some((sign @ (b'+' | b'-'), after)) = rest.split_first() {
            plain.push(*sign);
            rest = after;
        }
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = digits(rest);
        // No group follows a zero: 0.123 is a fraction in the notation of somebody else.
        let starts_with_zero = rest.first() == Some(&b'0');
        plain.extend_from_slice(&rest[..whole]);
        rest = &rest[whole..];
        let mut groups = 0;
        while let (Some(mark), Some((first, after))) = (self.thousands, rest.split_first())
            && *first == mark
        {
            // A group of another length is a sign that the mark means something else.
            if digits(after) != 3 || !(1..=3).contains(&whole) || starts_with_zero {
                return None;
            }
            plain.extend_from_slice(&after[..3]);
            rest = &after[3..];
            groups += 1;
        }
        let mut fraction = 0;
        if let Some((first, after)) = rest.split_first()
            && *first == self.decimal
        {
            fraction = digits(after);
            plain.push(b'.');
            plain.extend_from_slice(&after[..fraction]);
            rest = &after[fraction..];
        }
        if whole + groups + fraction == 0 {
            return None;
        }
        if let Some((first, after)) = rest.split_first() {
            let is_mark =
                matches!(first, b'e' | b'E') || self.fortran_exponent && matches!(first, b'd' | b'D');
            let unsigned = after.strip_prefix(b"+").or(after.strip_prefix(b"-")).unwrap_or(after);
            if !is_mark || unsigned.is_empty() || digits(unsigned) != unsigned.len() {
                return None;
            }
            plain.push(b'e');
            plain.extend_from_slice(after);
        }
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(notation: Notation, field: &str) -> Option<String> {
        notation.plain(field.as_bytes()).map(|plain| String::from_utf8(plain).unwrap())
    }

    #[test]
    fn what_other_places_write() {
        let german = Notation { decimal: b',', thousands: Some(b'.'), fortran_exponent: false };
        for (field, expected) in [
            ("1,5", Some("1.5")),
            (" -1.234.567,25 ", Some("-1234567.25")),
            ("1.234", Some("1234")),
            ("12.34", None),
            ("0.123", None),
            ("-00.123", None),
            ("0,123", Some("0.123")),
            ("1234.567", None),
            ("1.5", None),
            (",5", Some(".5")),
            ("5,", Some("5.")),
            ("1,5e-3", Some("1.5e-3")),
            ("1,5d3", None),
            ("1,2,3", None),
            ("nan", Some("nan")),
            ("", Some("")),
            ("-", Some("-")),
            ("word", Some("word")),
            ("a1", None),
            (",", Some(",")),
        ] {
            assert_eq!(plain(german, field).as_deref(), expected, "{field}");
        }
        let fortran = Notation { fortran_exponent: true, ..Notation::default() };
        for (field, expected) in [
            ("1.5D+03", Some("1.5e+03")),
            ("2d0", Some("2e0")),
            ("1.5", Some("1.5")),
            ("(1+2j)", Some("(1+2j)")),
            ("1.5D", Some("1.5D")),
        ] {
            assert_eq!(plain(fortran, field).as_deref(), expected, "{field}");
        }
        assert!(Notation::default().is_plain() && !fortran.is_plain() && !german.is_plain());
    }

    proptest::proptest! {
        #[test]
        fn a_plain_number_stays_what_it_is(text in "[-+]?[0-9]{1,5}(\\.[0-9]{0,4})?([eE][-+]?[0-9]{1,2})?") {
            let fortran = Notation { fortran_exponent: true, ..Notation::default() };
            let rewritten = plain(fortran, &text).unwrap();
            proptest::prop_assert_eq!(rewritten.parse::<f64>().unwrap().to_bits(), text.parse::<f64>().unwrap().to_bits());
        }
    }
}
