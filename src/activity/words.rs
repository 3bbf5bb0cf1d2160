//! Numbers as people write them: `412 MiB of 1 GiB`, `184 GB`, `2 h 10 min`, `1 204`.

/// Units of sent and stored bytes, by powers of 1,000.
const DECIMAL: [&str; 6] = ["bytes", "KB", "MB", "GB", "TB", "PB"];

/// Units of memory, by powers of 1,024.
const BINARY: [&str; 6] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Bytes that were sent or are stored: `184 GB`.
pub fn bytes(bytes: u64) -> String {
    let (number, unit) = scaled(bytes, 1000.0, DECIMAL);
    format!("{number} {unit}")
}

/// Memory: `412 MiB`.
pub fn memory(bytes: u64) -> String {
    let (number, unit) = scaled(bytes, 1024.0, BINARY);
    format!("{number} {unit}")
}

/// Memory in use, and its limit: `1.0 of 1 GiB`.
pub fn of_limit(used: u64, limit: u64) -> String {
    let ((used, its_unit), (limit, unit)) = (scaled(used, 1024.0, BINARY), scaled(limit, 1024.0, BINARY));
    if its_unit == unit { format!("{used} of {limit} {unit}") } else { format!("{used} {its_unit} of {limit} {unit}") }
}

fn scaled(bytes: u64, base: f64, units: [&'static str; 6]) -> (String, &'static str) {
    let (mut value, mut at) = (bytes as f64, 0);
    // What would be rounded to 1,000 takes the next unit.
    while value >= base.min(999.5) && at + 1 < units.len() {
        value /= base;
        at += 1;
    }
    let unit = if bytes == 1 { "byte" } else { units.get(at).copied().unwrap_or_default() };
    let number = if value >= 9.95 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    (number, unit)
}

/// A number with its digits in groups of three: `1 204`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number of things: `1 table`, `2 000 tables`.
pub fn counted(number: u64, name: &str) -> String {
    format!("{} {name}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A span of time: `18 s`, `12 min`, `2 h 10 min`, `3 d`.
pub fn span(seconds: f64) -> String {
    // A float becomes the nearest integer that there is.
    match seconds.round() as u64 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => match seconds % 3_600 / 60 {
            0 => format!("{} h", seconds / 3_600),
            minutes => format!("{} h {minutes} min", seconds / 3_600),
        },
        seconds => format!("{} d", count(seconds / 86_400)),
    }
}

/// A short time: `18 µs`, `1.2 ms`, `3.0 s`.
pub fn moment(seconds: f64) -> String {
    // A report of another process may say anything.
    let (number, unit) = match seconds.clamp(0.0, 1e9) {
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    if number < 9.95 { format!("{number:.1} {unit}") } else { format!("{number:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits_at_most() {
        assert_eq!([0, 999, 1_000, 999_499].map(bytes), ["0 bytes", "999 bytes", "1 KB", "999 KB"]);
        assert_eq!([999_500, 1_240_000_000].map(bytes), ["1.0 MB", "1.2 GB"]);
        assert_eq!([184_000_000_000, 2_100_000_000_000].map(bytes), ["184 GB", "2.1 TB"]);
        assert_eq!([bytes(u64::MAX), bytes(1)], ["18447 PB", "1 byte"]);
        assert_eq!([96 << 20, (1 << 30) - 1].map(memory), ["96 MiB", "1.0 GiB"]);
    }

    #[test]
    fn one_unit_is_said_once() {
        assert_eq!(of_limit(1 << 30, 1 << 30), "1 of 1 GiB");
        assert_eq!(of_limit((1 << 30) - 1, 1 << 30), "1.0 of 1 GiB");
        assert_eq!(of_limit(412 << 20, 1 << 30), "412 MiB of 1 GiB");
    }

    #[test]
    fn spans_have_two_units_at_most() {
        assert_eq!([0.0, 17.6, 59.4, 59.6].map(span), ["0 s", "18 s", "59 s", "1 min"]);
        assert_eq!([720.0, 7_830.0, 7_200.0, 2.7e5].map(span), ["12 min", "2 h 10 min", "2 h", "3 d"]);
        assert_eq!([1.84e-5, 1.24e-3, 3.0].map(moment), ["18 µs", "1.2 ms", "3.0 s"]);
    }

    #[test]
    fn digits_are_in_groups_of_three() {
        assert_eq!([0, 999, 1_204, 1_234_567].map(count), ["0", "999", "1 204", "1 234 567"]);
    }
}
