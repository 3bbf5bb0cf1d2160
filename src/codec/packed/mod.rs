//! Numbers stored in fewer bits than they have in memory.

mod bit_reader;
pub(super) mod nbit;
pub(super) mod scaleoffset;
pub(super) mod szip;
