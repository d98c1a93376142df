//! Values as text: the shortest digits that read back, or a printf format as `np.savetxt` takes it.
//!
//! Everything here turns values in memory into bytes appended to a `Vec<u8>`; no paths, no files,
//! no threads. A [`RowFormatter`] is compiled once and then shared between threads.

mod convert;
mod decimal;
mod digits;
mod mixed;
mod plan;
mod powers;
mod printf;
mod quote;
mod rows;
mod shortest;
mod sink;
mod value;

pub use mixed::{Column, Kind, MixedFormatter};
pub use printf::{Format, Style};
pub use quote::quote;
pub use rows::RowFormatter;
