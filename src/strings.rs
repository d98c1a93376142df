//! Strings kept as offsets and bytes.

use crate::error::{Error, ErrorKind, Result, quoted};

/// A view of strings kept as offsets and bytes, as Arrow's LargeUtf8.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a> {
    offsets: &'a [u64],
    bytes: &'a [u8],
}

impl<'a> Strings<'a> {
    /// String `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    pub(crate) fn new(offsets: &'a [u64], bytes: &'a [u8]) -> Result<Self> {
        match (offsets.first(), offsets.last()) {
            (Some(0), Some(&end)) if end == bytes.len() as u64 => Ok(Self { offsets, bytes }),
            (first, last) => Err(Error::new(
                ErrorKind::Corrupt,
                format!("expected offsets from 0 to {}, found {first:?} to {last:?}", bytes.len()),
            )),
        }
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// String `i`, counted from 0.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` behind the last; `Corrupt` if its offsets run backwards or past the end, or
    /// its bytes are not UTF-8.
    pub fn get(&self, i: usize) -> Result<&'a str> {
        let (Some(&start), Some(&end)) = (self.offsets.get(i), self.offsets.get(i.saturating_add(1))) else {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("expected a string below {}, found {i}", self.len()),
            ));
        };
        let bytes = usize::try_from(start)
            .ok()
            .zip(usize::try_from(end).ok())
            .and_then(|(start, end)| self.bytes.get(start..end))
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Corrupt,
                    format!(
                        "string {i}: expected offsets that grow up to {}, found {start}..{end}",
                        self.bytes.len()
                    ),
                )
            })?;
        std::str::from_utf8(bytes).map_err(|_| {
            Error::new(ErrorKind::Corrupt, format!("string {i}: expected UTF-8, found {}", quoted(bytes)))
        })
    }

    /// All strings in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<&'a str>> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }
}
