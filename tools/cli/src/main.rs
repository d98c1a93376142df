//! The `arrshard` command.
fn main() {}
