//! Facts learnt from values: passes over whole files, and statistics of columns.
//!
//! | part | contents |
//! | --- | --- |
//! | [`pass`] | passes over all values of a shown file |
//! | [`Learner`] | gathers the statistics of one column from the values that are decoded; one for all callers |
//! | [`Observed`] | rows whose values a learner sees |
//!
//! Statistics are learnt by a pass ([`Learner::learn`]), or whenever values of a column are decoded for other purposes.
//! Once every block is known they are stored in the cache folder, where the next mount finds them.

mod learn;
mod learner;
mod learners;
mod observed;
pub mod pass;
mod ranges;
#[cfg(test)]
mod tests;

pub use learn::step as rows_at_once;
pub use learner::Learner;
pub use observed::Observed;
