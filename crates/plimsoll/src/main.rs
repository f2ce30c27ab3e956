//! Plimsoll: how much load a storage system really carries.
fn main() {}
