//! The command `refault`.
fn main() {}
