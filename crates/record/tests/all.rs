//! All tests of the public side in one program.
