//! NumPy's `.npy` and `.npz` files, as bytes: headers, archives, and the kernels that turn foreign
//! byte orders, memory orders and record layouts into plain little-endian C-ordered columns.
//!
//! The source of the rules is `numpy.lib.format` and the behaviour of `np.load` (NumPy 2.4) with
//! `allow_pickle=False`.

pub mod convert;
mod descr;
pub mod header;
mod import;
mod literal;
pub mod npz;
mod npz_write;

pub use descr::{Descr, Field};
pub use header::{Header, header_len, npy_header, read_header, shard_header};
pub use import::NpyOptions;
pub(crate) use import::pack;
pub use npz::{Member, MemberData, NpzReader};
pub use npz_write::{MemberWriter, NpzWriter};
