//! The Parquet files of a mount: `energy.parquet`, `table.parquet`.

mod pages;

use std::borrow::Borrow;
use std::sync::{Arc, OnceLock};

use arrow_schema::DataType;
use parking_lot::Mutex;
use parquet::basic::Compression;

use super::columns::{ParquetColumn, Prepared, PreparedLeaf, groups, physical_of};
use super::footer::column_index::KnownLeaf;
use super::footer::filters::ParquetBloomFilters;
use super::footer::keys::{CREATED_BY, key_values};
use super::footer::page_index::PageIndex;
use super::footer::summary::{bound, summaries};
use super::footer::{Footer, LONGEST, LeafEntry};
use super::labelled::DictionaryLabels;
use super::layout::{DataPages, LeafSize, ParquetLayout, ParquetRegion};
use super::sizes::{LeafPages, MeasuredLeaves};
use super::thrift::page::DICTIONARY_HEADER;
use crate::learnt::pass::PassProgress;
use crate::source::Interrupt;
use crate::store::statistics::Statistics;
use crate::store::{Answer, Error};
use crate::views::Misfit;
use crate::views::rendered::{BlockCache, next_view};
use crate::views::text::streams::BlockReaders;
use crate::views::wanted::WantedBytes;
use crate::views::{AccessPattern, Effort, Size, Standing, UNKNOWN_SIZE, View};

/// The first and the last bytes of a file.
const MAGIC: &[u8] = b"PAR1";

/// Most bytes of labels without a meaningful order that exported files include in full: memory holds them twice.
const MOST_LABELS: usize = 64 << 20;

/// A Parquet file over columns of equal length.
pub struct ParquetView {
    shared: Arc<Shared>,
}

struct Shared {
    id: u64,
    columns: Box<[ParquetColumn]>,
    cache: Arc<BlockCache>,
    prepared: OnceLock<Arc<Started>>,
    preparing: Mutex<()>,
    /// The size shown before lengths are known, if learning them takes long.
    promised: OnceLock<Option<u64>>,
    frame: OnceLock<Arc<Frame>>,
    /// The size of the frame, which facts learnt about values do not change.
    size: OnceLock<u64>,
    streams: Mutex<BlockReaders>,
}

/// Everything known before values are read.
struct Started {
    prepared: Prepared,
    /// Sizes of pages that vary in length.
    sizes: MeasuredLeaves,
}

/// Everything in a file but the values.
struct Frame {
    started: Arc<Started>,
    layout: Arc<ParquetLayout>,
    index: Option<Arc<PageIndex>>,
    filters: Arc<ParquetBloomFilters>,
    footer: Footer,
}

impl ParquetView {
    /// Returns a file over `columns`, which have equal lengths (the shortest counts). Rendered pages are cached in
    /// `cache`. Reads nothing.
    pub fn new(columns: Vec<ParquetColumn>, cache: Arc<BlockCache>) -> Self {
        let shared = Shared {
            id: next_view(),
            columns: columns.into(),
            cache,
            prepared: OnceLock::new(),
            preparing: Mutex::new(()),
            promised: OnceLock::new(),
            frame: OnceLock::new(),
            size: OnceLock::new(),
            streams: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the labels of each column of categories, compressed as in an exported file. `None`: any other column, or
    /// labels without a meaningful order that take too much memory.
    pub(super) fn labels(
        &self,
        compression: Compression,
        interrupt: &Interrupt,
    ) -> Result<Vec<Option<Arc<DictionaryLabels>>>, Error> {
        let started = self.shared.start(interrupt)?;
        let fields = &started.prepared.fields;
        let mut labels = vec![None; fields.len()];
        for leaf in &started.prepared.leaves {
            let dictionary = leaf.leaf.dictionary().filter(|dictionary| dictionary.is_of_categories());
            let (Some(dictionary), Some(field)) = (dictionary, fields.get(leaf.column)) else { continue };
            let (true, Some(body), Some(slot)) =
                (matches!(field.data_type(), DataType::Dictionary(..)), dictionary.body(), labels.get_mut(leaf.column))
            else {
                continue;
            };
            let ordered = field.dict_is_ordered().unwrap_or(false);
            if body.len() > MOST_LABELS && !ordered {
                continue;
            }
            let made = DictionaryLabels::new(body, dictionary.entries(), ordered, compression);
            *slot = Some(Arc::new(made.map_err(|error| broken(error.to_string()))?));
        }
        Ok(labels)
    }

    /// Checks, by types and numbers of rows, that these columns can make a Parquet file.
    ///
    /// # Errors
    /// The reason why they cannot.
    pub fn check<C: Borrow<ParquetColumn>>(columns: impl IntoIterator<Item = C> + Clone) -> Result<(), Misfit> {
        // Goes through the columns twice, making each on demand: a table may have very many.
        let groups = groups(columns.clone());
        let (mut count, mut entries, mut sizes) = (0_u64, 0_u64, Vec::new());
        for column in columns {
            for leaf in column.borrow().leaves_of(&groups).map_err(|error| Misfit::Size(error.to_string()))? {
                count += 1;
                entries = entries.saturating_add(Footer::most_entry(&leaf));
                sizes.extend(leaf.slots.map(|slots| LeafSize { dictionary: 0, pages: DataPages::Slots(slots) }));
            }
        }
        let (rows, row_groups) = (groups.rows(), groups.count());
        if ParquetLayout::new(groups, sizes).is_none() {
            return Err(Misfit::Size(format!("{rows} rows pass 2^62 bytes")));
        }
        if row_groups.checked_mul(entries).is_none_or(|bytes| bytes > LONGEST) {
            return Err(Misfit::Size(format!(
                "{row_groups} row groups of {count} columns need a footer of more than 256 MiB"
            )));
        }
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.cache.forget(self.id);
    }
}

impl View for ParquetView {
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        let shared = &self.shared;
        let exact = match effort {
            // Making a frame takes some kilobytes per column.
            Effort::Known => shared.size.get().is_some(),
            Effort::Free => !shared.is_costly(interrupt)?,
            // Spark locates the footer by the size from `stat`, so the file keeps a size once shown.
            Effort::Quick => shared.promised(interrupt)?.is_none() || shared.is_found(interrupt)?,
            Effort::Exact | Effort::Prepared => true,
        };
        if !exact {
            let promised = shared.promised.get().copied().flatten();
            return Ok(Size::AtMost(promised.unwrap_or(UNKNOWN_SIZE)));
        }
        Ok(Size::Exact(shared.size(interrupt)?))
    }

    fn standing(&self) -> Standing {
        match self.shared.prepared.get() {
            Some(started) if started.sizes.is_distrusted() => Standing::Outdated,
            Some(started) if started.sizes.is_fixed() => Standing::Lasting,
            _ => Standing::Provisional,
        }
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        let frame = self.shared.frame(interrupt)?;
        let mut wanted = WantedBytes::new(offset, length, answer);
        // A request that goes over the end of a row group comes of a reader that does.
        let mut last = None;
        while let Some(at) = wanted.next() {
            match frame.layout.locate(at) {
                ParquetRegion::Magic => {
                    wanted.take(0, MAGIC);
                }
                ParquetRegion::Gap(end) => wanted.zeros(at, end.saturating_sub(at).max(1)),
                ParquetRegion::Dictionary { leaf, start, .. } => {
                    self.shared.dictionary(&frame, leaf, start, &mut wanted, interrupt)?;
                }
                ParquetRegion::Page(page) => {
                    let passes = last.replace(page.until).is_some_and(|until| until != page.until);
                    self.shared.page(&frame, (&page, passes), &mut wanted, interrupt)?;
                }
                ParquetRegion::Footer => {
                    if let Some(index) = &frame.index {
                        index.read(&mut wanted);
                    }
                    frame.filters.read(&mut wanted);
                    frame.footer.read(frame.footer_start(), &mut wanted);
                    break;
                }
            }
            if wanted.next() == Some(at) {
                return Err(broken(format!("nothing lies at byte {at}")));
            }
        }
        Ok(())
    }

    fn access(&self) -> AccessPattern {
        // Engines fetch whole column chunks. Through the page cache, the kernel would read as much again after each.
        AccessPattern::Stretches
    }

    fn progress(&self) -> Option<PassProgress> {
        let Some(started) = self.shared.prepared.get() else {
            // Labels may have to be read before the progress is known.
            return Some(PassProgress::default());
        };
        started.sizes.progress()
    }
}

fn broken(reason: String) -> Error {
    Error::unsupported("parquet", reason)
}

impl Shared {
    fn start(&self, interrupt: &Interrupt) -> Result<Arc<Started>, Error> {
        if let Some(started) = self.prepared.get() {
            return Ok(started.clone());
        }
        let _one = self.preparing.lock();
        if let Some(started) = self.prepared.get() {
            return Ok(started.clone());
        }
        let prepared = Prepared::new(&self.columns, interrupt)?;
        let sizes = MeasuredLeaves::new(&self.columns, &prepared);
        Ok(self.prepared.get_or_init(|| Arc::new(Started { prepared, sizes })).clone())
    }

    /// Whether finding the size takes reading.
    fn is_costly(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        if self.size.get().is_some() {
            return Ok(false);
        }
        if self.prepared.get().is_none() && self.columns.iter().any(ParquetColumn::has_labels) {
            return Ok(true);
        }
        Ok(!self.start(interrupt)?.sizes.is_known())
    }

    /// Whether the lengths are known, or kept in the cache folder.
    fn is_found(&self, interrupt: &Interrupt) -> Result<bool, Error> {
        Ok(self.size.get().is_some() || self.start(interrupt)?.sizes.is_found(interrupt)?)
    }

    /// Returns the size estimated from a sample. `None`: learning the exact lengths takes no longer.
    fn promised(&self, interrupt: &Interrupt) -> Result<Option<u64>, Error> {
        if let Some(promised) = self.promised.get() {
            return Ok(*promised);
        }
        let started = self.start(interrupt)?;
        let promised = match started.sizes.typical(interrupt)? {
            Some(pages) => Some(self.assemble(&started, &pages, 0, false, interrupt)?.bytes()),
            None => None,
        };
        Ok(*self.promised.get_or_init(|| promised))
    }

    /// Returns the size; takes a pass if some lengths vary.
    fn size(&self, interrupt: &Interrupt) -> Result<u64, Error> {
        match self.size.get() {
            Some(size) => Ok(*size),
            // There may be very many files of one column, and programs usually look at each once.
            None if self.columns.len() == 1 => Ok(self.made(false, interrupt)?.bytes()),
            None => Ok(self.frame(interrupt)?.bytes()),
        }
    }

    /// Returns the frame; takes a pass if some lengths vary.
    fn frame(&self, interrupt: &Interrupt) -> Result<Arc<Frame>, Error> {
        if let Some(frame) = self.frame.get() {
            return Ok(frame.clone());
        }
        let frame = Arc::new(self.made(true, interrupt)?);
        Ok(self.frame.get_or_init(|| frame).clone())
    }

    /// Builds the frame. `tells` adds facts about values, for a file that will be read.
    fn made(&self, tells: bool, interrupt: &Interrupt) -> Result<Frame, Error> {
        let promised = self.promised(interrupt)?.unwrap_or(0);
        let started = self.start(interrupt)?;
        let pages = started.sizes.pages(interrupt)?;
        let mut frame = self.assemble(&started, &pages, 0, tells, interrupt)?;
        if let Some(gap) = promised.checked_sub(frame.bytes()).filter(|gap| *gap > 0) {
            frame = self.assemble(&started, &pages, gap, tells, interrupt)?;
        }
        let (told, bytes) = (*self.size.get_or_init(|| frame.bytes()), frame.bytes());
        if told != bytes {
            return Err(broken(format!("{bytes} bytes, but the size was {told}")));
        }
        Ok(frame)
    }

    /// Assembles a file with these measured pages, and a gap after the last page. `tells` adds facts about values.
    fn assemble(
        &self,
        started: &Arc<Started>,
        pages: &LeafPages,
        gap: u64,
        tells: bool,
        interrupt: &Interrupt,
    ) -> Result<Frame, Error> {
        let leaves = started.prepared.leaves.iter().enumerate().map(|(position, leaf)| {
            let dictionary = leaf.leaf.dictionary().map_or(0, |dictionary| DICTIONARY_HEADER + dictionary.length());
            let pages = match (&leaf.slots, pages.get(&position)) {
                (Some(slots), _) => DataPages::Slots(slots.clone()),
                (None, Some(measured)) => DataPages::Measured(Arc::clone(measured)),
                // Without rows there are no pages.
                (None, None) => DataPages::Measured(Arc::default()),
            };
            LeafSize { dictionary, pages }
        });
        let layout = ParquetLayout::new(started.prepared.groups.clone(), leaves.collect())
            .and_then(|layout| layout.with_gap(gap));
        let layout = Arc::new(layout.ok_or_else(|| broken("the file would pass 2^62 bytes".into()))?);
        let prepared = &started.prepared;
        let known = prepared.leaves.iter().map(|leaf| {
            Ok(KnownLeaf {
                physical: leaf.leaf.physical,
                bound: bound(&leaf.leaf),
                statistics: if tells { self.statistics(leaf, interrupt)? } else { None },
                times: self.columns.get(leaf.column).and_then(|column| column.times),
            })
        });
        let known: Vec<KnownLeaf> = known.collect::<Result<_, Error>>()?;
        let entries = prepared.leaves.iter().zip(&known).map(|(leaf, known)| {
            let summaries = summaries(known, &prepared.groups);
            let (path, physical) = (&leaf.leaf.path, physical_of(leaf.leaf.physical));
            LeafEntry { path, physical, encoding: leaf.leaf.encoding, bound: known.bound, summaries }
        });
        let entries = entries.collect();
        let index = PageIndex::new(layout.clone(), known).map(Arc::new);
        let key_values = key_values(&self.columns, &prepared.fields);
        let filtered = prepared.leaves.iter().enumerate().map(|(position, leaf)| {
            let column = self.columns.get(leaf.column);
            column.map_or(Ok(None), |column| column.filtered(position, &leaf.leaf, interrupt))
        });
        let filtered = filtered.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let index_end = layout.end() + index.as_ref().map_or(0, |index| index.bytes());
        let filters = Arc::new(ParquetBloomFilters::new(layout.clone(), index_end, filtered));
        let footer = Footer::new(
            layout.clone(),
            index.clone(),
            filters.clone(),
            &prepared.schema,
            entries,
            &key_values,
            CREATED_BY,
        );
        let footer = footer.ok_or_else(|| broken("the footer would pass 256 MiB".into()))?;
        Ok(Frame { started: started.clone(), layout, index, filters, footer })
    }

    /// Returns the statistics of a leaf, as far as they are known now.
    fn statistics(&self, leaf: &PreparedLeaf, interrupt: &Interrupt) -> Result<Option<Arc<Statistics>>, Error> {
        // Statistics cover rows, so those of a compound or list do not describe its parts.
        let column = self.columns.get(leaf.column).filter(|_| leaf.leaf.path.len() == 1);
        let Some((column, learner)) = column.and_then(|column| Some((column, column.learner.as_ref()?))) else {
            return Ok(None);
        };
        learner.ask(column.rows.as_ref(), interrupt)?;
        Ok(learner.shown())
    }

    fn leaf<'a>(&'a self, frame: &'a Frame, leaf: usize) -> Option<(&'a PreparedLeaf, &'a ParquetColumn)> {
        let leaf = frame.started.prepared.leaves.get(leaf)?;
        Some((leaf, self.columns.get(leaf.column)?))
    }
}

impl Frame {
    fn bytes(&self) -> u64 {
        self.footer_start() + self.footer.bytes()
    }

    fn footer_start(&self) -> u64 {
        self.layout.end() + self.index.as_ref().map_or(0, |index| index.bytes()) + self.filters.bytes()
    }
}
