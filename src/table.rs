//! The block table of a shard that is being written: which blocks are done, and their checksums.
//!
//! A slot of 16 bytes a block. Each proves itself, so that no order in which a crash lets slots
//! and data reach the disk matters: what is torn, old, or of another plan or shard is not done.

use crc32fast::Hasher;

/// Bytes of a slot. A power of two, so that none crosses a sector.
pub(crate) const SLOT_BYTES: u64 = 16;

/// Length of a table's file.
pub(crate) fn table_bytes(blocks: u64) -> u64 {
    blocks * SLOT_BYTES
}

/// What the slots of one shard of one plan have in common, and others have not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableKey {
    pub(crate) token: [u8; 32],
    pub(crate) array: u64,
    pub(crate) shard: u64,
}

impl TableKey {
    fn check(&self, position: u64, crc: u32) -> u32 {
        let mut hasher = Hasher::new();
        hasher.update(&position.to_le_bytes());
        hasher.update(&crc.to_le_bytes());
        hasher.update(&self.token);
        hasher.update(&self.array.to_le_bytes());
        hasher.update(&self.shard.to_le_bytes());
        hasher.finalize()
    }

    /// The slot of a done block: `position` is where it starts in the shard's file, never 0, so that
    /// an empty slot is no block's.
    pub(crate) fn slot(&self, position: u64, crc: u32) -> [u8; SLOT_BYTES as usize] {
        let mut slot = [0; SLOT_BYTES as usize];
        slot[..8].copy_from_slice(&position.to_le_bytes());
        slot[8..12].copy_from_slice(&crc.to_le_bytes());
        slot[12..].copy_from_slice(&self.check(position, crc).to_le_bytes());
        slot
    }

    /// The checksum of the block at `position` if its slot says that it is done.
    pub(crate) fn crc(&self, position: u64, slot: &[u8]) -> Option<u32> {
        let (found, rest) = slot.split_first_chunk::<8>()?;
        let (crc, rest) = rest.split_first_chunk::<4>()?;
        let (check, rest) = rest.split_first_chunk::<4>()?;
        let crc = u32::from_le_bytes(*crc);
        let done = rest.is_empty()
            && u64::from_le_bytes(*found) == position
            && u32::from_le_bytes(*check) == self.check(position, crc);
        done.then_some(crc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_not_whole_is_not_done() {
        let key = TableKey { token: [7; 32], array: 1, shard: 2 };
        let slot = key.slot(4096, 0xCBF4_3926);
        assert_eq!(key.crc(4096, &slot), Some(0xCBF4_3926));
        assert_eq!(key.crc(8192, &slot), None);
        assert_eq!(key.crc(4096, &[0; 16]), None);
        assert_eq!(key.crc(4096, &slot[..15]), None);
        for byte in 0..16 {
            for bit in 0..8 {
                let mut torn = slot;
                torn[byte] ^= 1 << bit;
                assert_eq!(key.crc(4096, &torn), None);
            }
        }
        for other in
            [TableKey { token: [8; 32], ..key }, TableKey { array: 0, ..key }, TableKey { shard: 3, ..key }]
        {
            assert_eq!(other.crc(4096, &slot), None);
        }
    }
}
