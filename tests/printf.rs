//! Every line of `data/printf.tsv`, which `tools/reference/make_printf_cases.py` made with `np.savetxt`.

use arrshard::DType;
use arrshard::text::format::{Format, RowFormatter, Style};

/// The row's text, or `None` if any stage refuses.
fn written(formats: &str, dtype: DType, values: &str) -> Option<String> {
    let formats: Vec<_> = formats.split('\u{241f}').collect();
    let columns = values.split(',').count();
    let bytes: Vec<u8> = values.split([',', ':']).flat_map(little_endian).collect();
    let style = Style::parse(&formats).ok()?;
    let formatter = RowFormatter::new(dtype, columns, &style, b";", b"").ok()?;
    let mut out = b"kept".to_vec();
    if formatter.rows_le(&bytes, &mut out).is_err() {
        assert_eq!(out, b"kept");
        return None;
    }
    Some(String::from_utf8(out.split_off(4)).unwrap())
}

fn little_endian(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).rev().map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn as_np_savetxt_writes() {
    let mut wrong = Vec::new();
    let cases = include_str!("data/printf.tsv");
    for line in cases.lines() {
        let mut fields = line.split('\t');
        let [formats, dtype, values, expected] = [(); 4].map(|()| fields.next().unwrap());
        let found = written(formats, DType::from_name(dtype).unwrap(), values);
        if found.as_deref().unwrap_or("!") != expected {
            wrong.push(format!("{line}\n    found {found:?}"));
        }
    }
    assert!(cases.lines().count() > 1000);
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn a_percent_sign_anywhere() {
    // np.savetxt counts percent signs, so it takes `%%` in a list of formats only.
    let style = Style::One(Format::parse("%.0f%%").unwrap());
    let formatter = RowFormatter::new(DType::Float64, 2, &style, b" ", b"\r\n").unwrap();
    let mut out = Vec::new();
    formatter.rows(&[1.0, 2.0, 3.0, 4.0], &mut out).unwrap();
    assert_eq!(out, b"1% 2%\r\n3% 4%\r\n");
}
