//! Compressed inputs, as streams of what is in them, decompressed on a thread of their own beside the parsers.

use crate::error::{Error, ErrorKind, Result};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How an input is compressed, told by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

use Compression::{Bzip2, Gzip, Xz, Zstd};

/// Bytes of an input that [`Compression::of`] wants to see.
pub(crate) const MAGIC_BYTES: usize = 10;
/// What is decompressed at a time, and how many of those wait for the parsers.
const PIECE_BYTES: usize = 256 << 10;
const PIECES: usize = 8;
/// A frame that needs a longer window to go back to is refused: it would need as much memory.
const WINDOW_LOG_MOST: u32 = 27;

impl Compression {
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, 8, ..] => Some(Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Zstd),
            // The block size, and the mark of a block or of the end, so that no word is taken for it.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Some(Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Xz),
            _ => None,
        }
    }

    /// What a person calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Gzip => "gzip",
            Zstd => "Zstandard",
            Bzip2 => "bzip2",
            Xz => "xz",
        }
    }

    /// Whether `extension` is of a file that is compressed.
    pub(crate) fn is_extension(extension: &str) -> bool {
        ["gz", "bgz", "zst", "bz2", "xz"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    }

    fn decoder(self, input: impl BufRead + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
            Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
                decoder.window_log_max(WINDOW_LOG_MOST)?;
                Box::new(decoder)
            }
            Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
            Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(input)),
        })
    }

    /// What is in `input`, all members and frames of it. Errors of `input` pass through; those of the
    /// compressed data say what it is.
    pub(crate) fn open(self, input: impl Read + Send + 'static) -> Result<Decompressed> {
        let (send, pieces) = sync_channel(PIECES);
        let work = move || {
            let input = BufReader::with_capacity(PIECE_BYTES, Marked(input));
            let result = self.decoder(input).and_then(|mut decoder| forward(&mut *decoder, &send));
            if let Err(error) = result {
                let _ = send.send(Err(self.fault(error)));
            }
        };
        std::thread::Builder::new().name("decompress".to_owned()).spawn(work).map_err(|e| {
            Error::new(ErrorKind::Io, format!("expected a thread to decompress on, found {e}"))
        })?;
        Ok(Decompressed { pieces, piece: Cursor::default() })
    }

    /// An error of the decoder, unless it is one of its input.
    fn fault(self, error: io::Error) -> io::Error {
        if error.get_ref().is_some_and(|inner| inner.is::<InputFault>()) {
            return match error.downcast::<InputFault>() {
                Ok(fault) => fault.0,
                Err(error) => error,
            };
        }
        let found = match error.kind() {
            io::ErrorKind::UnexpectedEof => "its end too early".to_owned(),
            _ => crate::error::escape(error.to_string().as_bytes(), 200),
        };
        io::Error::other(
            Error::new(ErrorKind::Corrupt, format!("expected whole {} data, found {found}", self.name()))
                .hint("the file is damaged or was cut off"),
        )
    }
}

/// Sends all that `decoder` gives; ends early if nobody wants more.
fn forward(decoder: &mut dyn Read, send: &SyncSender<io::Result<Vec<u8>>>) -> io::Result<()> {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let mut filled = 0;
        let mut result = Ok(());
        while filled < piece.len() {
            match decoder.read(&mut piece[filled..]) {
                Ok(0) => break,
                Ok(found) => filled += found,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    result = Err(e);
                    break;
                }
            }
        }
        let is_last = filled < piece.len();
        piece.truncate(filled);
        // What came before a fault is still in order.
        if send.send(Ok(piece)).is_err() {
            return Ok(());
        }
        if is_last {
            return result;
        }
    }
}

/// An error that a decoder is not to blame for.
#[derive(Debug)]
struct InputFault(io::Error);

impl std::fmt::Display for InputFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for InputFault {}

/// A reader whose errors can be told from those of a decoder on top of it.
struct Marked<R>(R);

impl<R: Read> Read for Marked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|e| match e.kind() {
            io::ErrorKind::Interrupted => e,
            _ => io::Error::other(InputFault(e)),
        })
    }
}

/// Reads what another thread decompresses.
pub(crate) struct Decompressed {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Cursor<Vec<u8>>,
}

impl Read for Decompressed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = self.piece.read(out)?;
            if len > 0 || out.is_empty() {
                return Ok(len);
            }
            match self.pieces.recv() {
                Ok(piece) => self.piece = Cursor::new(piece?),
                // All is sent, and whoever sent it is gone.
                Err(_) => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn packed(compression: Compression, text: &[u8]) -> Vec<u8> {
        match compression {
            Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Zstd => {
                let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
                encoder.include_checksum(true).unwrap();
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    fn read(compression: Compression, bytes: Vec<u8>) -> (Vec<u8>, Option<String>) {
        let mut out = Vec::new();
        let result = compression.open(Cursor::new(bytes)).unwrap().read_to_end(&mut out);
        (out, result.err().map(|e| e.to_string()))
    }

    #[test]
    fn members_follow_each_other_and_damage_is_found() {
        let text: Vec<u8> =
            (0..200_000u32).flat_map(|i| format!("{}\n", i.wrapping_mul(2654435761)).into_bytes()).collect();
        let (one, two) = text.split_at(text.len() / 3);
        for compression in [Gzip, Zstd, Bzip2, Xz] {
            let mut bytes = packed(compression, one);
            assert_eq!(Compression::of(&bytes[..MAGIC_BYTES]), Some(compression));
            let first = bytes.len();
            bytes.extend(packed(compression, two));
            assert_eq!(read(compression, bytes.clone()), (text.clone(), None));
            // Cut anywhere but between the members, it is an error, and never a shorter text.
            for cut in [first - 1, first / 2, first + 20, bytes.len() - 1] {
                let (out, error) = read(compression, bytes[..cut].to_vec());
                let error = error.unwrap_or_else(|| panic!("{compression:?} cut at {cut}"));
                assert!(error.contains(compression.name()), "{error}");
                assert!(text.starts_with(&out));
            }
            let mut bad = bytes.clone();
            bad[first / 2] ^= 0x10;
            assert!(read(compression, bad).1.is_some(), "{compression:?}");
        }
    }

    #[test]
    fn words_are_no_magic() {
        for text in [&b"BZh"[..], b"BZh9 words", b"1,2,3\n", b"", b"\x1f", b"PK\x03\x04"] {
            assert_eq!(Compression::of(text), None);
        }
    }

    #[test]
    fn an_error_of_the_input_is_that_error() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(5))
            }
        }
        let error = Gzip.open(Broken).unwrap().read(&mut [0]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(5));
    }
}
