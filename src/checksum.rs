//! Checksums by position: a CRC-32 for each block of a shard, kept in a sidecar beside it.

use crate::error::{Error, ErrorKind, Result};
use crate::layout::RowLayout;
use crc32fast::Hasher;

/// First bytes of a sidecar; the last is its version.
pub const SIDECAR_MAGIC: [u8; 8] = *b"\x93ARSCRC\x01";
/// Bytes before the first checksum of a sidecar.
pub const SIDECAR_HEADER_BYTES: usize = 32;

/// CRC-32 (IEEE 802.3, as `zlib.crc32`) of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The checksum of a whole shard from those of its blocks in order, each with its length.
pub fn combine(blocks: impl Iterator<Item = (u32, u64)>) -> u32 {
    let mut all = Hasher::new();
    for (crc, len) in blocks {
        all.combine(&Hasher::new_with_initial_len(crc, len));
    }
    all.finalize()
}

/// The checksums of a shard of `rows` rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecar {
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Rows of the shard.
    pub rows: u64,
    /// The CRC-32 of each block.
    pub blocks: Vec<u32>,
}

impl Sidecar {
    /// The file's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SIDECAR_HEADER_BYTES + 4 * self.blocks.len());
        out.extend_from_slice(&SIDECAR_MAGIC);
        for number in [self.row_bytes, self.rows, self.blocks.len() as u64] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend(self.blocks.iter().flat_map(|crc| crc.to_le_bytes()));
        out
    }

    /// The exact length of the file for a shard of `rows` rows.
    pub fn file_bytes(by_row: &RowLayout, rows: u64) -> u64 {
        SIDECAR_HEADER_BYTES as u64 + 4 * by_row.block_count(rows)
    }

    /// Reads the sidecar of a shard of `rows` rows.
    pub fn from_bytes(bytes: &[u8], by_row: &RowLayout, rows: u64) -> Result<Self> {
        let corrupt = |what: String| Error::new(ErrorKind::Corrupt, what);
        let expected = Self::file_bytes(by_row, rows);
        if bytes.len() as u64 != expected {
            return Err(corrupt(format!("expected {expected} bytes, found {}", bytes.len())));
        }
        let (magic, rest) = bytes.split_at(8);
        if magic != SIDECAR_MAGIC {
            return Err(corrupt(format!("expected a checksum file, found {}", crate::error::quoted(magic))));
        }
        let (numbers, crcs) = rest.split_at(24);
        let numbers: Vec<u64> = numbers.chunks_exact(8).map(le_u64).collect();
        let wanted = [by_row.row_bytes, rows, by_row.block_count(rows)];
        if numbers != wanted {
            return Err(corrupt(format!("expected row_bytes, rows, blocks {wanted:?}, found {numbers:?}")));
        }
        let blocks = crcs.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        Ok(Self { row_bytes: by_row.row_bytes, rows, blocks })
    }

    /// What a sidecar's first bytes say of its shard: bytes of a row, and rows.
    pub(crate) fn claims(bytes: &[u8]) -> Option<(u64, u64)> {
        let numbers = bytes.strip_prefix(&SIDECAR_MAGIC)?.get(..16)?;
        Some((le_u64(&numbers[..8]), le_u64(&numbers[8..])))
    }

    /// The checksum of the whole shard's data.
    pub fn shard_crc(&self, by_row: &RowLayout) -> u32 {
        combine(self.blocks.iter().zip(0u64..).map(|(&crc, block)| {
            let bytes = by_row.block_bytes(block, self.rows);
            (crc, bytes.end - bytes.start)
        }))
    }
}

fn le_u64(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_crc_is_that_of_its_bytes() {
        let data: Vec<u8> = (0..5_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let by_row = RowLayout::new(100, 1 << 30).unwrap();
        let rows = data.len() as u64 / 100;
        let blocks = (0..by_row.block_count(rows))
            .map(|b| {
                let r = by_row.block_bytes(b, rows);
                crc32(&data[r.start as usize..r.end as usize])
            })
            .collect();
        let sidecar = Sidecar { row_bytes: 100, rows, blocks };
        assert_eq!(sidecar.shard_crc(&by_row), crc32(&data));
        let bytes = sidecar.to_bytes();
        assert_eq!(Sidecar::from_bytes(&bytes, &by_row, rows).unwrap(), sidecar);
        assert!(Sidecar::from_bytes(&bytes[1..], &by_row, rows).is_err());
        assert!(Sidecar::from_bytes(&bytes, &by_row, rows - 1).is_err());
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }
}
