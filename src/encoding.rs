//! Text in other encodings, as a stream of UTF-8.

use crate::error::{Error, ErrorKind, Result, quoted};
use encoding_rs::{Decoder, DecoderResult, Encoding};
use std::io::{self, Cursor, Read};

/// How the characters of a text are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    /// Each byte is the character of that number: ISO 8859-1, which is not what the web calls so.
    Latin1,
    Other(&'static Encoding),
}

const PIECE_BYTES: usize = 64 << 10;

impl Charset {
    /// By the name that a user or a standard has for it; `None` for UTF-8, which needs no change.
    pub(crate) fn of_name(name: &str) -> Result<Option<Self>> {
        let plain: String =
            name.to_ascii_lowercase().chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect();
        if ["latin1", "iso88591", "l1"].contains(&plain.as_str()) {
            return Ok(Some(Self::Latin1));
        }
        let label = match plain.as_str() {
            "utf16" | "utf16le" => "utf-16le",
            "utf16be" => "utf-16be",
            "cp1252" => "windows-1252",
            _ => name,
        };
        match Encoding::for_label(label.as_bytes()) {
            Some(encoding) if encoding == encoding_rs::UTF_8 => Ok(None),
            Some(encoding) if encoding != encoding_rs::REPLACEMENT => Ok(Some(Self::Other(encoding))),
            _ => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "expected an encoding such as utf-16, latin-1 or windows-1252, found {}",
                    quoted(name.as_bytes())
                ),
            )),
        }
    }

    /// By the mark that a text starts with, if that is one of UTF-16.
    pub(crate) fn of_mark(start: &[u8]) -> Option<Self> {
        match start {
            // UTF-32 starts so too.
            [0xff, 0xfe, 0, 0, ..] => None,
            [0xff, 0xfe, ..] => Some(Self::Other(encoding_rs::UTF_16LE)),
            [0xfe, 0xff, ..] => Some(Self::Other(encoding_rs::UTF_16BE)),
            _ => None,
        }
    }

    /// This charset, which was called `name`, for a text with this mark: UTF-16 alone leaves the order of
    /// bytes to the mark; any other must agree with it.
    pub(crate) fn with_mark(self, name: &str, mark: Option<Self>) -> Result<Self> {
        let leaves_order = matches!(&*name.to_ascii_lowercase(), "utf-16" | "utf16" | "utf_16");
        match mark {
            Some(mark) if leaves_order => Ok(mark),
            Some(mark) if mark != self => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("expected {}, found the byte-order mark of {}", self.name(), mark.name()),
            )),
            _ => Ok(self),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Latin1 => "ISO-8859-1",
            Self::Other(encoding) => encoding.name(),
        }
    }

    /// The text of `input` in UTF-8, without its mark.
    pub(crate) fn decode<R: Read>(self, input: R) -> Decoded<R> {
        let decoder = match self {
            Self::Latin1 => None,
            Self::Other(encoding) => Some(encoding.new_decoder_with_bom_removal()),
        };
        Decoded {
            input,
            charset: self,
            decoder,
            raw: Vec::new(),
            text: Cursor::default(),
            before: 0,
            ended: false,
        }
    }
}

/// A reader of UTF-8 over one of another encoding.
pub(crate) struct Decoded<R> {
    input: R,
    charset: Charset,
    /// `None` for ISO 8859-1.
    decoder: Option<Decoder>,
    raw: Vec<u8>,
    text: Cursor<Vec<u8>>,
    /// Bytes of the input that are decoded.
    before: u64,
    ended: bool,
}

impl<R: Read> Decoded<R> {
    fn fill(&mut self) -> io::Result<()> {
        self.raw.resize(PIECE_BYTES, 0);
        let found = loop {
            match self.input.read(&mut self.raw) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.ended = found == 0;
        self.text.set_position(0);
        let text = self.text.get_mut();
        text.clear();
        let raw = &self.raw[..found];
        let Some(decoder) = &mut self.decoder else {
            text.resize(found * 2, 0);
            let len = encoding_rs::mem::convert_latin1_to_utf8(raw, text);
            text.truncate(len);
            return Ok(());
        };
        let room = decoder.max_utf8_buffer_length_without_replacement(found).unwrap_or(found * 3 + 16);
        text.resize(room, 0);
        let (result, read, written) = decoder.decode_to_utf8_without_replacement(raw, text, self.ended);
        text.truncate(written);
        if let DecoderResult::Malformed(len, _) = result {
            let at = (self.before + read as u64).saturating_sub(u64::from(len));
            let start = read.saturating_sub(usize::from(len));
            let found = match &raw[start..read] {
                [] => "the end within a character".to_owned(),
                bytes => quoted(bytes),
            };
            let what = format!("expected {}, found {found}", self.charset.name());
            let error = Error::new(ErrorKind::Parse, what);
            return Err(io::Error::other(error.offset(at)));
        }
        debug_assert!(result == DecoderResult::InputEmpty && read == found);
        self.before += found as u64;
        Ok(())
    }
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = self.text.read(out)?;
            if len > 0 || out.is_empty() || self.ended {
                return Ok(len);
            }
            self.fill()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, so that characters are cut everywhere.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let len = self.0.len().min(out.len()).min(1);
            out[..len].copy_from_slice(&self.0[..len]);
            self.0 = &self.0[len..];
            Ok(len)
        }
    }

    fn decode(charset: Charset, bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        charset.decode(Drops(bytes)).read_to_string(&mut text)?;
        let mut whole = String::new();
        charset.decode(bytes).read_to_string(&mut whole)?;
        assert_eq!(whole, text);
        Ok(text)
    }

    #[test]
    fn text_of_any_encoding_is_utf8() {
        let text = "a,é\n1,𝄞\u{feff}\n";
        let utf16 = |mark: bool, big: bool| -> Vec<u8> {
            let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
            units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
        };
        for (mark, big) in [(true, false), (true, true), (false, false), (false, true)] {
            let bytes = utf16(mark, big);
            let name = if big { "utf-16be" } else { "UTF-16" };
            let charset = Charset::of_name(name).unwrap().unwrap();
            assert_eq!(decode(charset, &bytes).unwrap(), text);
            assert_eq!(Charset::of_mark(&bytes), mark.then_some(charset));
        }
        let (little, big) =
            (Charset::of_name("utf-16le").unwrap().unwrap(), Charset::of_name("utf-16be").unwrap().unwrap());
        assert_eq!(little.with_mark("UTF-16", Some(big)).unwrap(), big);
        assert_eq!(little.with_mark("utf-16", None).unwrap(), little);
        assert!(little.with_mark("utf-16le", Some(big)).is_err());
        let latin = Charset::of_name("latin-1").unwrap().unwrap();
        assert_eq!(decode(latin, b"\xe9\x80,1\n").unwrap(), "é\u{80},1\n");
        let windows = Charset::of_name("cp1252").unwrap().unwrap();
        assert_eq!(decode(windows, b"\xe9\x80,1\n").unwrap(), "é€,1\n");
        assert_eq!(Charset::of_name("utf8").unwrap(), None);
        assert!(Charset::of_name("morse").is_err());
        assert_eq!(Charset::of_mark(b"\xff\xfe\0\0"), None);
    }

    #[test]
    fn what_is_cut_or_wrong_has_a_place() {
        let utf16 = Charset::of_name("utf-16le").unwrap().unwrap();
        for bytes in [&b"1\0,"[..], b"1\0\x00\xd82\0", b"1\0\x00\xd8"] {
            let error = decode(utf16, bytes).unwrap_err().to_string();
            assert!(error.contains("expected UTF-16LE") && error.contains("byte"), "{error}");
        }
    }
}
