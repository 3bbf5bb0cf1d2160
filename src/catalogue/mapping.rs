//! The mappings of a virtual dataset.

use bstr::BString;
use serde::{Deserialize, Serialize};

use super::ObjectId;

/// Consecutive elements of a virtual dataset that come from another dataset in its file, both counted in row-major
/// order. In mappings by chunk, each number counts chunks of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// First element in the virtual dataset.
    pub at: u64,
    /// Number of elements.
    pub len: u64,
    /// Index into [`Mappings::sources`].
    pub source: u32,
    /// First element in the source.
    pub first: u64,
}

impl Mapping {
    /// Appends `next` if it continues this mapping in both datasets; returns whether it did.
    pub fn join(&mut self, next: &Mapping) -> bool {
        let continues = self.source == next.source
            && self.at.checked_add(self.len) == Some(next.at)
            && self.first.checked_add(self.len) == Some(next.first);
        if continues && let Some(len) = self.len.checked_add(next.len) {
            self.len = len;
            return true;
        }
        false
    }
}

/// A dataset that is mapped by others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedSource {
    /// Its path from the root group, as stored.
    pub path: BString,
    /// The object at that path.
    pub id: ObjectId,
}

/// The mappings of a virtual dataset, by ascending element. Elements in between have the fill value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mappings {
    sources: Vec<MappedSource>,
    runs: Vec<Mapping>,
}

impl Mappings {
    /// The mappings of a dataset of `len` elements.
    ///
    /// # Errors
    /// The broken rule and the element, if mappings overlap or exceed the dataset.
    pub fn new(sources: Vec<MappedSource>, mut runs: Vec<Mapping>, len: u64) -> Result<Self, String> {
        runs.retain(|run| run.len > 0);
        runs.sort_unstable_by_key(|run| run.at);
        let mut end = 0;
        for run in &runs {
            if run.at < end {
                return Err(format!("element {} is mapped twice", run.at));
            }
            let within = run.at.checked_add(run.len).filter(|end| *end <= len);
            end = within.ok_or_else(|| format!("{} elements from {} on are mapped, of {len}", run.len, run.at))?;
            if sources.get(run.source as usize).is_none() {
                return Err(format!("source {} of {}", run.source, sources.len()));
            }
        }
        // Later mappings often continue the ones before them.
        runs.dedup_by(|next, run| run.join(next));
        runs.shrink_to_fit();
        Ok(Self { sources, runs })
    }

    /// The mapped datasets.
    pub fn sources(&self) -> &[MappedSource] {
        &self.sources
    }

    /// The mappings by ascending element, none of them empty.
    pub fn runs(&self) -> &[Mapping] {
        &self.runs
    }

    /// The mapping that holds element `at`, if any, and the first later element to which another answer applies
    /// (`u64::MAX`: there is none).
    pub fn find(&self, at: u64) -> (Option<&Mapping>, u64) {
        let behind = self.runs.partition_point(|run| run.at <= at);
        let run = behind.checked_sub(1).and_then(|i| self.runs.get(i));
        match run.map(|run| (run, run.at + run.len)) {
            Some((run, end)) if at < end => (Some(run), end),
            _ => (None, self.runs.get(behind).map_or(u64::MAX, |run| run.at)),
        }
    }

    /// Approximate bytes of memory in use.
    pub fn memory(&self) -> usize {
        let names: usize = self.sources.iter().map(|source| size_of::<MappedSource>() + source.path.len()).sum();
        self.runs.capacity() * size_of::<Mapping>() + names
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sources(count: usize) -> Vec<MappedSource> {
        vec![MappedSource { path: "/raw".into(), id: ObjectId { file: 0, address: 96 } }; count]
    }

    fn run(at: u64, len: u64, source: u32, first: u64) -> Mapping {
        Mapping { at, len, source, first }
    }

    #[test]
    fn neighbours_become_one_run() {
        let runs = vec![run(20, 10, 0, 120), run(0, 10, 0, 100), run(10, 10, 0, 110), run(30, 5, 1, 130)];
        let mappings = Mappings::new(sources(2), runs, 35).unwrap();
        assert_eq!(mappings.runs(), [run(0, 30, 0, 100), run(30, 5, 1, 130)]);
    }

    #[test]
    fn runs_that_overlap_or_lead_outside_are_refused() {
        let refused = |runs| Mappings::new(sources(1), runs, 30).unwrap_err();
        assert_eq!(refused(vec![run(0, 11, 0, 0), run(10, 5, 0, 50)]), "element 10 is mapped twice");
        assert_eq!(refused(vec![run(20, 11, 0, 0)]), "11 elements from 20 on are mapped, of 30");
        assert_eq!(refused(vec![run(2, u64::MAX, 0, 0)]), format!("{} elements from 2 on are mapped, of 30", u64::MAX));
        assert_eq!(refused(vec![run(0, 5, 1, 0)]), "source 1 of 1");
    }

    proptest! {
        #[test]
        fn every_element_is_found_where_it_was_mapped(
            parts in prop::collection::vec((0u64..4, 0u64..5, 0u64..9), 0..12),
        ) {
            // Gaps, lengths and places in the source, one part behind the other.
            let (mut runs, mut expected) = (Vec::new(), Vec::new());
            for (gap, len, first) in parts {
                expected.extend(std::iter::repeat_n(None, gap as usize));
                runs.push(run(expected.len() as u64, len, 0, first));
                expected.extend((first..first + len).map(Some));
            }
            runs.reverse();
            let mappings = Mappings::new(sources(1), runs, expected.len() as u64).unwrap();
            let mut at = 0;
            while at < expected.len() as u64 {
                let (found, end) = mappings.find(at);
                prop_assert!(end > at);
                for element in at..end.min(expected.len() as u64) {
                    prop_assert_eq!(found.map(|run| run.first + (element - run.at)), expected[element as usize]);
                }
                at = end;
            }
        }
    }
}
