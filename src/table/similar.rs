//! Suggests names for misspelled ones.

/// Longest name to compare: the work grows with the product of two lengths.
const LONGEST: usize = 255;

/// Suggests the known name that was probably meant: ` (did you mean "energy"?)`; empty if none is near. Each missing,
/// extra, wrong or swapped letter counts one, up to a third of the name; case does not count.
pub fn did_you_mean<N: AsRef<str>>(name: &str, known: impl IntoIterator<Item = N>) -> String {
    let lower = name.to_lowercase();
    let length = lower.chars().count();
    // A one-letter name is never similar to another one.
    let most = (length.max(3) / 3).min(length.saturating_sub(1));
    if name.len() > LONGEST {
        return String::new();
    }
    let near = known.into_iter().filter_map(|known| {
        let other = known.as_ref();
        let is_near = other.len() <= LONGEST && other.len().abs_diff(name.len()) <= 4 * most;
        let distance = is_near.then(|| strsim::osa_distance(&lower, &other.to_lowercase()))?;
        (distance <= most).then_some((distance, known))
    });
    near.min_by_key(|(distance, _)| *distance)
        .map_or_else(String::new, |(_, known)| format!(" (did you mean {:?}?)", known.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn the_nearest_name_is_suggested_and_no_other() {
        let known = ["run_042", "run_043x", "energy", "Länge (µm)", "ts"];
        let meant = |name| did_you_mean(name, known);
        assert_eq!(meant("run_42"), " (did you mean \"run_042\"?)");
        assert_eq!(meant("enrgy"), " (did you mean \"energy\"?)");
        assert_eq!(meant("ENERGY"), " (did you mean \"energy\"?)");
        assert_eq!(meant("Lange (µm)"), " (did you mean \"Länge (µm)\"?)");
        assert_eq!(meant("st"), " (did you mean \"ts\"?)");
        assert_eq!(meant("mass"), "");
        assert_eq!(did_you_mean("a", ["x", "A"]), " (did you mean \"A\"?)");
        assert_eq!(did_you_mean("a", ["x"]), "");
        assert_eq!(meant(""), "");
        assert_eq!(meant(&"e".repeat(1 << 20)), "");
    }
}
