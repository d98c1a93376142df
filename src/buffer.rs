//! Memory that values of any dtype can lie in.

/// Bytes aligned for every dtype.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    words: Vec<u64>,
    len: usize,
}

impl Buffer {
    /// Makes it `len` bytes long; what they are is left open.
    pub(crate) fn resize(&mut self, len: usize) {
        self.words.resize(len.div_ceil(8), 0);
        self.len = len;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }

    /// Keeps the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}
