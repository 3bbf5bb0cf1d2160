//! Names in a comma-separated list.

use std::collections::HashSet;

/// Splits a list whose names may contain commas: a part that is no known name is joined with the following parts until
/// it is one. If several splits fit, the first names are as short as they can be while all names are known. Blanks
/// around a name are dropped unless they belong to a known name.
pub fn listed<N: AsRef<str>>(parts: &[String], known: impl IntoIterator<Item = N>) -> Vec<String> {
    let known: Vec<N> = known.into_iter().collect();
    let known: HashSet<&str> = known.iter().map(AsRef::as_ref).collect();
    let name = |parts: &[String]| {
        let joined = parts.join(",");
        let name = if known.contains(joined.as_str()) { joined.as_str() } else { joined.trim() };
        (name.to_owned(), known.contains(name))
    };
    let most = known.iter().map(|name| name.matches(',').count() + 1).max().unwrap_or(1);
    // For each part: the number of parts in the name that begins there, and whether all names from there on are known.
    let mut names = vec![(1, true); parts.len() + 1];
    for at in (0..parts.len()).rev() {
        let mut counts = (1..=most.min(parts.len() - at)).filter(|count| name(&parts[at..at + count]).1);
        names[at] = match counts.clone().find(|count| names[at + count].1) {
            Some(count) => (count, true),
            None => (counts.next().unwrap_or(1), false),
        };
    }
    let mut found = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        let next = at + names[at].0;
        found.push(name(&parts[at..next]).0);
        at = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn names_with_commas_are_put_together() {
        let listed = |text: &str, known: &[&str]| {
            let parts: Vec<String> = text.split(',').map(str::to_owned).collect();
            listed(&parts, known)
        };
        assert_eq!(listed("x,p,T,y", &["x", "y", "p,T"]), ["x", "p,T", "y"]);
        assert_eq!(listed("a,b,c", &["a", "a,b", "b", "c"]), ["a", "b", "c"]);
        // The shortest first part would leave one that is unknown.
        assert_eq!(listed("a,b,c", &["a", "a,b", "c"]), ["a,b", "c"]);
        assert_eq!(listed("a,b,c", &["a", "b,c", "a,b"]), ["a", "b,c"]);
        assert_eq!(listed(",,a,", &[",", "a,"]), [",", "a,"]);
        assert_eq!(listed("p,T,energi,x", &["p,T", "energy", "x"]), ["p,T", "energi", "x"]);
        assert_eq!(listed("p,U", &["p,T"]), ["p", "U"]);
        assert_eq!(listed("a,b", &[]), ["a", "b"]);
        assert_eq!(listed("x, y ,p, T, z", &["x", "y", " y ", "p, T"]), ["x", " y ", "p, T", "z"]);
    }
}
