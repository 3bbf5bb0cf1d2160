//! What is learnt of sources and outlives a request: passes, statistics in the making, the user's cache folder.

mod decisions;
mod kept;
mod learn;
mod learner;
mod observed;
pub mod pass;
mod ranges;
#[cfg(test)]
mod tests;

pub(super) use decisions::Decisions;
pub use kept::Kept;
pub use learn::step as rows_at_once;
pub use learner::Learner;
pub use observed::Observed;
