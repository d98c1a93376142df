//! Tables of text: the structure of lines and fields, as pure code over bytes.
//!
//! [`detect`] looks at the first bytes and says which [`Dialect`] they are in, where the data
//! starts and how wide it is; [`count`] finds how many records a chunk holds, so that chunks can
//! be read in parallel; [`record`] splits records into fields; [`plain`] is the slow, simple twin
//! that says what is right.

pub mod count;
pub mod detect;
pub mod dialect;
pub mod foreign;
mod header;
mod marks;
pub mod plain;
pub mod record;

pub use detect::{Detected, Given, detect};
pub use dialect::{Delimiter, Dialect, Header, LineEnd, Missing, Ragged};
pub use foreign::{Foreign, foreign};
pub use header::column_names;
pub use record::{Fields, Record, Records};
