//! Numbers in text.

pub mod number;
