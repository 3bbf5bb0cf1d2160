//! The rows of the sample: synthetic detector events, each a pure function of its row number.
//!
//! All arithmetic is integer or exact under IEEE 754, so every machine writes the same values.

use std::ffi::CStr;

/// Fill values: those that HEP001 §6.4 recommends, and −1 for the category code, as in its April draft.
pub(super) mod missing {
    pub const F32: f32 = 9.969_21e36;
    pub const F64: f64 = 9.969_209_968_386_869e36;
    pub const I64: i64 = i64::MIN + 1;
    pub const U64: u64 = u64::MAX;
    pub const CHARGE: i16 = i16::MIN + 1;
    pub const LABEL: i8 = -1;
    pub const DETECTOR: u8 = 255;
    pub const CALIB: [u8; 4] = [0xff; 4];
}

/// Categories of `label`. A code is the index of its category here.
pub(super) const LABELS: [&str; 4] = ["electron", "muon", "photon", "proton"];

/// Members of the enumeration of `detector`, with their numbers.
pub(super) const DETECTORS: [(&str, u8); 5] =
    [("TRACKER", 1), ("ECAL", 2), ("HCAL", 3), ("MUON", 4), ("MISSING", missing::DETECTOR)];

/// Bounds of `charge`, in counts of a 12-bit converter.
pub(super) const CHARGE_RANGE: (i16, i16) = (0, 4095);

/// Bytes of a value of `station`.
pub(super) const STATION_SIZE: usize = 8;

const STATIONS: [&str; 5] = ["north-1", "north-2", "south-1", "south-2", "Süd-3"];

const COMMENTS: [&CStr; 6] = [
    c"pile-up suspected",
    c"pedestal drifting, see shift log",
    c"the \"golden\" event",
    c"high voltage trip, \"HV-17\", recovered",
    c"Überspannung",
    c"re-calibrated by hand",
];

const TAGS: [&[&str]; 8] = [
    &[],
    &[],
    &["beam"],
    &["beam"],
    &["beam", "prescaled"],
    &["cosmic"],
    &["cosmic", "µ-veto"],
    &["beam", "prescaled", "trigger \"A\", late"],
];

/// 2026-07-09T00:00:00Z, the date of the July revision, in ns since 1970.
const START: i64 = 1_783_555_200_000_000_000;

/// Mean time between two events, in ns.
const PERIOD: i64 = 1000;

/// Consecutive rows of the sample, column by column.
#[derive(Debug)]
pub(super) struct SampleBlock {
    pub event_id: Vec<u64>,
    pub ts: Vec<i64>,
    pub energy: Vec<f32>,
    pub label: Vec<i8>,
    pub hit: Vec<i8>,
    pub detector: Vec<u8>,
    pub station: Vec<[u8; STATION_SIZE]>,
    pub comment: Vec<&'static CStr>,
    pub position: Vec<[f32; 3]>,
    pub charge: Vec<i16>,
    pub length: Vec<f64>,
    pub calib: Vec<[u8; 4]>,
    /// Number of elements in each list of `readings`. `None`: a null list.
    pub readings_count: Vec<Option<u64>>,
    pub readings: Vec<f32>,
    pub tags: Vec<&'static [&'static str]>,
}

impl SampleBlock {
    /// Makes `count` rows, from `first` on.
    pub fn of(first: u64, count: u64) -> Self {
        let rows = || first..first + count;
        let label: Vec<i8> = rows().map(label).collect();
        let readings_count: Vec<Option<u64>> = rows().map(readings_count).collect();
        let mut readings = Vec::new();
        for (row, count) in rows().zip(&readings_count) {
            // ADC readings in volts, in steps of 1/1024.
            readings.extend((0..count.unwrap_or(0)).map(|i| draw(row, 20 + i, 2048) as f32 / 1024.0));
        }
        Self {
            event_id: rows().map(|row| 42_000_000_000 + row).collect(),
            ts: rows().map(time).collect(),
            energy: rows().zip(&label).map(|(row, &label)| energy(row, label)).collect(),
            hit: rows().map(|row| i8::from(draw(row, 1, 100) < 83)).collect(),
            detector: rows().zip(&label).map(|(row, &label)| detector(row, label)).collect(),
            station: rows().map(station).collect(),
            comment: rows().map(comment).collect(),
            position: rows().map(position).collect(),
            charge: rows().map(charge).collect(),
            length: rows().map(length).collect(),
            calib: rows().map(calib).collect(),
            tags: rows().map(|row| TAGS[(draw(row, 2, 64) as usize).saturating_sub(56)]).collect(),
            label,
            readings_count,
            readings,
        }
    }
}

/// Time of the event, in ns since 1970. Times ascend, but are not evenly spaced.
pub(super) fn time(row: u64) -> i64 {
    START + (row as i64) * PERIOD + draw(row, 3, 1000) as i64
}

/// Code of the event's category. The thresholds are fractions of 256.
fn label(row: u64) -> i8 {
    match draw(row, 4, 256) {
        0..=119 => 0,
        120..=183 => 1,
        184..=239 => 2,
        240..=253 => 3,
        _ => missing::LABEL,
    }
}

/// Deposited energy in MeV, in steps of 1/1024: a continuum for electrons, a plateau for muons, the lines of caesium
/// and cobalt for photons, a broad hump for protons.
fn energy(row: u64, label: i8) -> f32 {
    if draw(row, 5, 200) == 0 {
        return missing::F32;
    }
    // The product of two uniform numbers falls off steeply; the sum of four is nearly a bell.
    let (a, b) = (draw(row, 6, 1024), draw(row, 7, 1024));
    let bell = draw(row, 8, 16) + draw(row, 9, 16) + draw(row, 10, 16) + draw(row, 11, 16);
    let steps = match label {
        0 => a * b / 512,
        1 => 20 * 1024 + 16 * a,
        2 => match draw(row, 12, 3) {
            0 => 678 + bell,
            1 => 1201 + bell,
            _ => 1364 + bell,
        },
        3 => 8 * 1024 + 512 * bell + a,
        _ => a,
    };
    steps as f32 / 1024.0
}

fn detector(row: u64, label: i8) -> u8 {
    if draw(row, 13, 512) == 0 {
        return missing::DETECTOR;
    }
    match label {
        0 | 2 => 1 + draw(row, 14, 2) as u8,
        1 => 4,
        _ => 1 + draw(row, 14, 4) as u8,
    }
}

fn station(row: u64) -> [u8; STATION_SIZE] {
    let mut bytes = [0; STATION_SIZE];
    if draw(row, 15, 1000) != 0 {
        // Stations alternate every 256 events.
        let name = STATIONS[(row / 256 % STATIONS.len() as u64) as usize];
        for (byte, &from) in bytes.iter_mut().zip(name.as_bytes()) {
            *byte = from;
        }
    }
    bytes
}

fn comment(row: u64) -> &'static CStr {
    match draw(row, 16, 64) {
        // Row 1 has a comment, so that `head` shows one.
        _ if row == 1 => COMMENTS[3],
        0 => COMMENTS[draw(row, 17, COMMENTS.len() as u64) as usize],
        _ => c"",
    }
}

/// Position of the event relative to the centre, in mm, in steps of 1/4.
fn position(row: u64) -> [f32; 3] {
    if draw(row, 40, 500) == 0 {
        return [missing::F32; 3];
    }
    [41, 42, 43].map(|lane| (draw(row, lane, 512) as f32 - 256.0) / 4.0)
}

fn charge(row: u64) -> i16 {
    match draw(row, 44, 128) {
        0 => missing::CHARGE,
        _ => (draw(row, 45, 64) * draw(row, 46, 64) + draw(row, 47, 64)) as i16,
    }
}

/// Length of the track in µm, in steps of 1/8.
fn length(row: u64) -> f64 {
    match draw(row, 48, 300) {
        0 => missing::F64,
        _ => 100.0 + draw(row, 49, 4096) as f64 / 8.0,
    }
}

/// The calibration word, which stays the same over 4096 events.
fn calib(row: u64) -> [u8; 4] {
    let word = (row / 4096) as u16;
    let [high, low] = word.to_be_bytes();
    [0xca, 0x1b, high, low]
}

fn readings_count(row: u64) -> Option<u64> {
    match draw(row, 18, 16) {
        0 => None,
        _ => Some(draw(row, 19, 4)),
    }
}

/// A uniform draw from `0..below`, independent for every row and lane (SplitMix64's finaliser over both).
fn draw(row: u64, lane: u64, below: u64) -> u64 {
    let mut z = (row ^ (lane << 56)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    // `below` is small, so the top 32 bits are scaled, without taking a remainder.
    ((z >> 32) * below) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_same_wherever_they_begin() {
        let whole = SampleBlock::of(0, 1000);
        let part = SampleBlock::of(700, 300);
        assert_eq!(part.ts, whole.ts[700..]);
        assert_eq!(part.energy, whole.energy[700..]);
        assert_eq!(part.tags, whole.tags[700..]);
        assert_eq!(part.readings, whole.readings[whole.readings.len() - part.readings.len()..]);
    }

    #[test]
    fn every_case_that_the_sample_is_to_show_occurs_early() {
        let block = SampleBlock::of(0, 10_000);
        assert!(block.ts.is_sorted());
        for code in -1..4 {
            assert!(block.label.contains(&code), "{code}");
        }
        for (name, code) in DETECTORS {
            assert!(block.detector.contains(&code), "{name}");
        }
        for text in COMMENTS.into_iter().chain([c""]) {
            assert!(block.comment.contains(&text), "{text:?}");
        }
        for tags in TAGS {
            assert!(block.tags.contains(&tags), "{tags:?}");
        }
        assert!(block.energy.contains(&missing::F32));
        assert!(block.length.contains(&missing::F64));
        assert!(block.charge.contains(&missing::CHARGE));
        assert!(block.charge.iter().all(|&c| c == missing::CHARGE || (CHARGE_RANGE.0..=CHARGE_RANGE.1).contains(&c)));
        assert!(block.station.contains(&[0; STATION_SIZE]));
        assert!(block.readings_count.contains(&None) && block.readings_count.contains(&Some(0)));
    }

    /// NetCDF's NC_FILL_FLOAT, bit patterns of HEP001 §6.4.
    #[test]
    fn the_missing_floats_have_the_recommended_bits() {
        assert_eq!(missing::F32.to_bits(), 0x7cf0_0000);
        assert_eq!(missing::F64.to_bits(), 0x479e_0000_0000_0000);
    }

    /// `date -d 2026-07-09T00:00:00Z +%s`.
    #[test]
    fn the_clock_starts_on_the_day_of_the_revision() {
        assert_eq!(START, 1_783_555_200 * 1_000_000_000);
    }
}
