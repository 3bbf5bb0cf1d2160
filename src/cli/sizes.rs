//! Numbers of bytes, as people write them.

/// Parses `1500`, `64K`, `512M`, `2G`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let upper = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let (number, shift) =
        units.iter().find_map(|(unit, shift)| Some((upper.strip_suffix(*unit)?, *shift))).unwrap_or((upper, 0));
    let number: u64 = number.trim().parse().map_err(|_| format!("{text:?} is not a size such as 512M or 2G"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too large"))
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("1500"), Ok(1500));
        assert_eq!(size("64K"), Ok(65536));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert!(size("much").is_err());
        assert!(size("99999999999T").is_err());
    }
}
