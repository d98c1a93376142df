//! Numbers in text.

pub mod matrix;
pub mod number;
#[cfg(target_arch = "x86_64")]
mod simd;
