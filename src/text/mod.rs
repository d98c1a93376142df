//! Tables of text: the structure of lines and fields and the numbers in them, as pure code over
//! bytes, and on top of it what turns whole inputs into datasets.
//!
//! [`detect`] looks at the first bytes and says which [`Dialect`] they are in, where the data
//! starts and how wide it is; [`count`] finds how many records a chunk holds, so that chunks can
//! be read in parallel; [`record`] splits records into fields; [`plain`] is the slow, simple twin
//! that says what is right. [`number`] reads one field, [`matrix`] as many plain rows as there are.

pub mod count;
pub mod detect;
pub mod dialect;
pub mod foreign;
pub mod format;
pub mod matrix;
pub mod number;
pub mod plain;
pub mod record;

mod agree;
mod append;
mod direct;

mod header;
mod import;
mod index;
mod marks;
mod rows;
mod schema;
mod simd;
mod stream;
pub(crate) mod svmlight;
mod table;
pub(crate) mod vectors;

pub use dialect::{Delimiter, Dialect, Header, LineEnd, Missing, Ragged};
pub use import::TextOptions;
pub(crate) use import::pack;
pub use record::{Fields, Record, Records};
pub use schema::Layout;
pub(crate) use schema::Like;
pub use svmlight::{IndexBase, SparseOptions};
