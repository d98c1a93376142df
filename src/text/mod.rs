//! Numbers and tables as text.

pub mod format;
