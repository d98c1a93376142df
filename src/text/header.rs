//! Whether the first record is a header, and what the columns are called.

use super::detect::{Class, Classified};
use crate::error::{Error, ErrorKind, Result, quoted};
use std::collections::{HashMap, HashSet};

/// Words that stand for a value that is not there; in a first line they say nothing about it.
const MISSING: [&str; 12] = ["", "na", "n/a", "nan", "null", "none", "-", "--", "?", ".", "<na>", "missing"];

/// Rows read for a guess, as text.
pub(super) struct Row {
    pub(super) line: u64,
    pub(super) next: usize,
    pub(super) fields: Vec<Vec<u8>>,
}

/// What a field of the first lines looks like.
#[derive(Clone, Copy, PartialEq)]
enum Look {
    Nothing,
    Number,
    Word,
}

fn look(field: &[u8], classify: &dyn Fn(&[u8]) -> Classified) -> Look {
    let trimmed = field.trim_ascii();
    if MISSING.iter().any(|word| trimmed.eq_ignore_ascii_case(word.as_bytes())) {
        return Look::Nothing;
    }
    match classify(trimmed).class {
        Class::Empty => Look::Nothing,
        // dates, numbers out of range and numbers of other dialects are no names either
        Class::Text if !is_numberish(trimmed) => Look::Word,
        _ => Look::Number,
    }
}

fn is_numberish(field: &[u8]) -> bool {
    let part = |byte: &u8| byte.is_ascii_digit() || b"+-.,:/eEdDjJ() %'_".contains(byte);
    let unsigned = field.strip_prefix(b"-").unwrap_or(field);
    let hex = unsigned.strip_prefix(b"0x").or(unsigned.strip_prefix(b"0X"));
    let first_is_digit = unsigned.first().is_some_and(u8::is_ascii_digit);
    hex.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit))
        // A name may start with an underscore.
        || field.iter().any(u8::is_ascii_digit)
            && field.iter().all(part)
            && (first_is_digit || !field.contains(&b'_'))
}

/// Whether the first of `rows` is a header.
///
/// - It is none if no field of it is a word: numbers, dates and missing values are data.
/// - If it has words and no numbers, it is one if a word stands over a column of numbers, or
///   mostly numbers.
/// - Otherwise, without numbers in it, it is one in delimited files (`delimited`) if its fields are
///   distinct, not empty, and none comes again in its column; runs of blanks have no header then.
/// - If it has words and numbers, it is one if its numbers count up in equal steps (years) and
///   those of the next rows don't; it is an error if a word stands over three or more numbers
///   and nothing else, since then the line may be a title or damaged; else it is data.
pub(super) fn is_header(
    rows: &[Row],
    delimited: bool,
    classify: &dyn Fn(&[u8]) -> Classified,
) -> Result<bool> {
    let Some((first, rest)) = rows.split_first() else { return Ok(false) };
    let looks: Vec<Look> = first.fields.iter().map(|field| look(field, classify)).collect();
    if !looks.contains(&Look::Word) {
        return Ok(false);
    }
    // how many numbers and words there are below
    let below = |column: usize| {
        let fields = rest.iter().filter_map(|row| row.fields.get(column));
        fields.fold((0, 0), |(numbers, words), field| match look(field, classify) {
            Look::Number => (numbers + 1, words),
            Look::Word => (numbers, words + 1),
            Look::Nothing => (numbers, words),
        })
    };
    let words = || (0..looks.len()).filter(|&column| looks[column] == Look::Word);
    if looks.contains(&Look::Number) {
        let years = counts_up(first) && !rest.iter().take(5).any(counts_up);
        return match words().find(|&column| matches!(below(column), (3.., 0))) {
            _ if years => Ok(true),
            Some(column) => Err(stranger(first, column)),
            None => Ok(false),
        };
    }
    // one bad value far below must not make data of the header
    if words().any(|column| matches!(below(column), (numbers, words) if numbers > 0 && numbers >= words)) {
        return Ok(true);
    }
    let index_above = looks[0] == Look::Nothing
        && first.fields[0].trim_ascii().is_empty()
        && looks[1..].iter().all(|&look| look == Look::Word)
        && rest.first().is_some_and(|row| matches!(row.fields[0].trim_ascii(), b"0" | b"1"))
        && below(0) == (rest.len(), 0);
    if index_above {
        return Ok(true);
    }
    let mut seen = HashSet::new();
    let names = looks.iter().all(|&look| look == Look::Word)
        && first.fields.iter().all(|field| seen.insert(field))
        && (0..looks.len())
            .all(|column| !rest.iter().any(|row| row.fields.get(column) == Some(&first.fields[column])));
    Ok(delimited && names && (looks.len() > 1 || !rest.is_empty()))
}

/// Whether the whole numbers among the fields are at least two and go up in equal steps.
fn counts_up(row: &Row) -> bool {
    let whole = |field: &Vec<u8>| std::str::from_utf8(field.trim_ascii()).ok()?.parse::<i64>().ok();
    let numbers: Vec<i64> = row.fields.iter().filter_map(whole).collect();
    let step = |pair: &[i64]| pair[1].checked_sub(pair[0]);
    numbers.len() > 1
        && numbers.windows(2).all(|pair| step(pair) == step(&numbers[..2]) && step(pair) > Some(0))
}

fn stranger(row: &Row, column: usize) -> Error {
    Error::new(
        ErrorKind::Parse,
        format!("expected a number as in the lines below, found {}", quoted(&row.fields[column])),
    )
    .line(row.line)
    .field(column as u64 + 1)
    .hint("--skip-rows leaves the line out, --header yes takes it as names, --header no as data")
}

/// Column names from the fields of a header: trimmed, distinct, 1 to 255 bytes without control
/// characters. A repeated name gets `.1`, `.2`, and an empty one is `Unnamed: 0` by its place, as
/// pandas has it; one that is not UTF-8 is taken as Latin-1.
pub(super) fn column_names(fields: &[Vec<u8>]) -> Vec<String> {
    let plain: Vec<String> = fields.iter().enumerate().map(|(i, field)| plain_name(field, i)).collect();
    let mut taken: HashSet<String> = plain.iter().cloned().collect();
    let mut met: HashMap<&str, u64> = HashMap::new();
    let mut names = Vec::with_capacity(plain.len());
    for name in &plain {
        let times = met.entry(name).or_insert(0);
        if *times == 0 {
            *times = 1;
            names.push(name.clone());
            continue;
        }
        loop {
            let suffix = format!(".{times}");
            *times += 1;
            let other = cut(name, MAX_NAME - suffix.len()).to_owned() + &suffix;
            if taken.insert(other.clone()) {
                names.push(other);
                break;
            }
        }
    }
    names
}

const MAX_NAME: usize = 255;

fn plain_name(field: &[u8], index: usize) -> String {
    let field = field.trim_ascii();
    let text = match std::str::from_utf8(field) {
        Ok(text) => text.to_owned(),
        Err(_) => field.iter().map(|&byte| char::from(byte)).collect(),
    };
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match cut(text.trim(), MAX_NAME) {
        "" => format!("Unnamed: {index}"),
        name => name.to_owned(),
    }
}

fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The fields of a header that stands in a comment, without the comment's mark.
pub(super) fn without_mark(mut fields: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if let Some(first) = fields.first_mut() {
        let bare = first.iter().position(|&byte| byte != b'#').unwrap_or(first.len());
        first.drain(..bare);
    }
    fields
}

/// Whether a line that starts with a comment mark is data after all: it has as many fields as the
/// rows and numbers among them.
pub(super) fn is_marked_data(row: &Row, width: usize, classify: &dyn Fn(&[u8]) -> Classified) -> bool {
    row.fields.len() == width && row.fields.iter().any(|field| look(field, classify) == Look::Number)
}

/// Whether any field is a number.
pub(super) fn has_numbers(row: &Row, classify: &dyn Fn(&[u8]) -> Classified) -> bool {
    row.fields.iter().any(|field| look(field, classify) == Look::Number)
}

#[cfg(test)]
mod tests {
    use super::super::detect::tests::classify;
    use super::*;

    fn rows(text: &str) -> Vec<Row> {
        let fields = |line: &str| line.split(',').map(|field| field.as_bytes().to_vec()).collect();
        let row = |(i, line)| Row { line: i as u64 + 1, next: 0, fields: fields(line) };
        text.lines().enumerate().map(row).collect()
    }

    fn header(text: &str) -> bool {
        is_header(&rows(text), true, &classify).unwrap()
    }

    #[test]
    fn numbers_are_data() {
        for text in ["2001,2002\n5,6", "1,\n2,3", "nan,NA\n1,2", "1,a\n2,b", "2020-01-01,a\n2020-01-02,b", ""]
        {
            assert!(!header(text), "{text}");
        }
        // out of range, or of another dialect: whoever reads it says so
        for text in ["771E050012,1e999\n1,2\n3,4", "1.5D+13,2d3\n1D0,2D0", "1_000,0x1F\n1,2"] {
            assert!(!header(text), "{text}");
        }
    }

    #[test]
    fn words_over_numbers_are_names() {
        for text in [
            "a,b\n1,2",
            "id,name\n1,x",
            "x\n-1\n257",
            ",a\n0,x\n1,y",
            "t,,x\n1,2,3",
            "a,b\n,2",
            "d_1,e_2\n1,2",
        ] {
            assert!(header(text), "{text}");
        }
        assert!(header("country,code,1960,1961,1962\nAruba,ABW,54211,55438,56225\nAngola,AGO,1,2,9"));
        assert!(!header("a,0,1,2\nb,3,4,5\nc,4,5,6"));
    }

    #[test]
    fn words_over_words_are_names_in_delimited_files() {
        assert!(header("first,last\nAda,Lovelace\nAlan,Turing"));
        assert!(header("id,name"));
        assert!(!header("yes,no\nno,no\nyes,yes"));
        assert!(!header("Ada,Ada\nAlan,Turing"));
        assert!(!header("hello"));
        assert!(!is_header(&rows("first,last\nAda,Lovelace"), false, &classify).unwrap());
    }

    #[test]
    fn a_line_of_another_kind_is_an_error() {
        let text = "150,4,setosa,virginica\n5.1,3.5,1.4,0\n4.9,3,1.4,0\n4.7,3.2,1.3,0";
        let error = is_header(&rows(text), true, &classify).unwrap_err();
        assert_eq!((error.line_number(), error.field_number()), (Some(1), Some(3)));
        assert!(
            error
                .to_string()
                .contains("expected a number as in the lines below, found \"setosa\"; --skip-rows")
        );
        assert!(!header("1.5,abc\n3,2"));
    }

    #[test]
    fn names_are_distinct_and_clean() {
        let names = |fields: &[&[u8]]| column_names(&fields.iter().map(|f| f.to_vec()).collect::<Vec<_>>());
        assert_eq!(
            names(&[b" a ", b"a", b"", b"b\nc", b"a.1", b"a"]),
            ["a", "a.2", "Unnamed: 2", "b c", "a.1", "a.3"]
        );
        assert_eq!(names(&[b"temp\xe9rature", "é".as_bytes()]), ["temp\u{e9}rature", "\u{e9}"]);
        let long = "é".repeat(200);
        let names = names(&[long.as_bytes(), long.as_bytes()]);
        assert!(names.iter().all(|name| name.len() <= MAX_NAME) && names[1].ends_with("é.1"));
    }
}
