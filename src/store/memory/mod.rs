//! Memory under one budget: buffers, caches over them, and bytes borrowed from both.

mod allocator;
mod budget;
mod cache;
mod flight;
mod idle;
mod lent;
mod machine;
mod pages;
mod single_flight;

pub use allocator::{keep_little, libc, share_heaps};
pub(super) use budget::Leased;
pub use budget::{Budget, Buffer, Reservation, Shortage};
pub use cache::Cache;
pub use flight::{ARRAY_BYTES, Flight, try_memory};
pub use lent::Lent;
pub(super) use lent::{ChunkBytes, WORTH_A_SPAN};
pub use machine::machine_memory;
pub use single_flight::SingleFlight;
