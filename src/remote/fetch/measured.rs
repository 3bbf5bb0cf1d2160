//! Measures the delay and the bandwidth of a network.

use std::time::{Duration, Instant};

/// Bandwidth as long as it was not measured, in bytes a second.
const SUPPOSED: f64 = 100e6;

/// Least time and bytes over which bandwidth is measured. Fewer bytes at once do not fill the network.
const SLICE: (Duration, u64) = (Duration::from_millis(50), 1 << 20);

/// Fewest and most bytes to have in flight.
const LEAST: u64 = 8 << 20;
const MOST: u64 = 64 << 20;

/// Delay and bandwidth. The shortest delay and the greatest bandwidth count, since requests in flight wait for each
/// other; both are forgotten slowly.
#[derive(Debug)]
pub(super) struct Measured {
    /// From a request to its first byte.
    delay: Option<Duration>,
    /// Bytes a second.
    bandwidth: Option<f64>,
    /// When the first bytes came since the network was idle, or was last measured, and bytes since then.
    slice: Option<(Instant, u64)>,
}

impl Measured {
    pub fn new() -> Self {
        Self { delay: None, bandwidth: None, slice: None }
    }

    pub fn delay(&self) -> Duration {
        self.delay.unwrap_or_default()
    }

    /// Notes the time from a request to its first byte.
    pub fn note_delay(&mut self, delay: Duration) {
        self.delay = Some(self.delay.map_or(delay, |least| delay.min(least + least / 64)));
    }

    /// Notes that a request begins while none is in flight.
    pub fn begin(&mut self) {
        self.slice = None;
    }

    /// Notes bytes that arrived.
    pub fn note_bytes(&mut self, bytes: u64) {
        let Some((begun, sum)) = &mut self.slice else {
            self.slice = Some((Instant::now(), 0));
            return;
        };
        *sum += bytes;
        let passed = begun.elapsed();
        if passed >= SLICE.0 && *sum >= SLICE.1 {
            let bandwidth = *sum as f64 / passed.as_secs_f64();
            self.bandwidth = Some(self.bandwidth.map_or(bandwidth, |most| bandwidth.max(most * 0.99)));
            self.slice = None;
        }
    }

    /// How long this many bytes take.
    pub fn time_of(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.bandwidth.unwrap_or(SUPPOSED).max(1.0))
    }

    /// Bytes to have in flight or ready: twice those that the delay and the bandwidth ask for, so that a greater
    /// bandwidth shows.
    pub fn window(&self) -> u64 {
        let asked = self.delay().as_secs_f64() * self.bandwidth.unwrap_or(SUPPOSED);
        (2 * asked as u64).clamp(LEAST, MOST)
    }
}
