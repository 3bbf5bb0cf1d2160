//! Passes: shared, interrupted, resumed, failing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, LargeBinaryArray};
use parking_lot::Mutex;

use super::super::{BlockCache, TextFormat, TextView};
use super::{cache, column, usual, whole};
use crate::source::{Interrupt, Interrupted};
use crate::store::Error;
use crate::store::rows::in_memory::MemoryRows;
use crate::views::{Effort, View, gathered};

/// 12 blocks of 65,536 rows, 4 to a step: the chunk is a step.
const ROWS: i64 = 12 * 65_536;
const CHUNK: u64 = 4 * 65_536;

fn array() -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(0..ROWS))
}

/// Sum of the digits of 0..ROWS and an LF each, by counting.
fn bytes() -> u64 {
    (0..ROWS).map(|number| number.to_string().len() as u64 + 1).sum()
}

fn view(rows: MemoryRows) -> (Arc<TextView>, Arc<MemoryRows>) {
    let rows = Arc::new(rows.natural(CHUNK));
    (Arc::new(TextView::new(vec![column("a", rows.clone())], TextFormat::Txt, &usual(), None, cache(), None)), rows)
}

fn wait_until(what: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !what() {
        assert!(Instant::now() < end, "waited in vain");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn one_pass_serves_all_who_wait() {
    let (view, rows) = view(MemoryRows::new(array()));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(view.size(Effort::Exact, &Interrupt::new()).unwrap().bytes(), bytes()));
        }
    });
    assert_eq!(rows.calls(), 3);
}

#[test]
fn what_is_rendered_for_the_size_is_there_for_who_reads_next() {
    let strings: Vec<String> = (0..200_000).map(|number| "x".repeat(number % 9)).collect();
    let expected = strings.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect::<Vec<u8>>();
    let array: ArrayRef = Arc::new(LargeBinaryArray::from_iter_values(strings));
    // Room for all, for a part, for none; and rows that come as arrays alone.
    for (room, terminated) in [(16 << 20, true), (300_000, true), (0, true), (16 << 20, false)] {
        let rows = MemoryRows::new(array.clone());
        let rows = Arc::new(if terminated { rows.with_terminated() } else { rows });
        let column = column("a", rows.clone());
        let cache = Arc::new(BlockCache::new(room));
        let view = TextView::new(vec![column], TextFormat::NulTerminated, &usual(), None, cache.clone(), None);
        assert_eq!(view.size(Effort::Exact, &Interrupt::new()).unwrap().bytes(), expected.len() as u64);
        assert!(cache.bytes() <= room && (cache.bytes() > 0) == (terminated && room > 0), "{room} {terminated}");
        let calls = rows.calls();
        assert!(whole(&view) == expected, "{room} {terminated}");
        assert_eq!(rows.calls() == calls, terminated && room > expected.len() * 2, "{room} {terminated}");
        drop(view);
        wait_until(|| cache.bytes() == 0);
    }
}

/// Opens a gate if a test fails: behind a closed one, steps of a pass would block the pool and all other tests.
struct OpensInPanic(Arc<AtomicBool>);

impl Drop for OpensInPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn an_interrupted_pass_stops_and_the_next_goes_on() {
    // Rows past the first chunk cannot be read before the gate opens.
    let gate = Arc::new(AtomicBool::new(false));
    let first = Arc::new(AtomicUsize::new(0));
    let stopped = Arc::new(AtomicUsize::new(0));
    let hook = {
        let (gate, first, stopped) = (gate.clone(), first.clone(), stopped.clone());
        move |range: &std::ops::Range<u64>, interrupt: &Interrupt| {
            if range.start < CHUNK {
                first.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            while !gate.load(Ordering::Relaxed) {
                if interrupt.is_raised() {
                    stopped.fetch_add(1, Ordering::Relaxed);
                    return Err(Error::Interrupted(Interrupted));
                }
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }
    };
    let (view, _) = view(MemoryRows::new(array()).hook(hook));
    let interrupts = [Interrupt::new(), Interrupt::new()];
    thread::scope(|scope| {
        let waiting: Vec<_> = interrupts
            .iter()
            .map(|interrupt| {
                let view = &view;
                scope.spawn(move || view.size(Effort::Exact, interrupt))
            })
            .collect();
        let _opens = OpensInPanic(gate.clone());
        wait_until(|| first.load(Ordering::Relaxed) == 1 && view.waiting() == 2);
        interrupts[0].raise();
        wait_until(|| waiting[0].is_finished());
        // One still waits: the pass goes on.
        assert!(!waiting[1].is_finished());
        assert_eq!(stopped.load(Ordering::Relaxed), 0);
        interrupts[1].raise();
        for waiting in waiting {
            assert!(matches!(waiting.join().unwrap(), Err(Error::Interrupted(_))));
        }
    });
    // No waiter is left: the steps see it.
    wait_until(|| stopped.load(Ordering::Relaxed) > 0);
    gate.store(true, Ordering::Relaxed);
    assert_eq!(view.size(Effort::Exact, &Interrupt::new()).unwrap().bytes(), bytes());
    assert_eq!(first.load(Ordering::Relaxed), 1, "what was measured is kept");
}

#[test]
fn a_failure_reaches_everyone_and_does_not_stick() {
    let broken = Arc::new(AtomicBool::new(true));
    let hook = {
        let broken = broken.clone();
        move |range: &std::ops::Range<u64>, _: &Interrupt| {
            if range.end < CHUNK * 2 || !broken.load(Ordering::Relaxed) {
                return Ok(());
            }
            Err(Error::Chunk { path: "/a".into(), chunk: 1, address: 4096, reason: "deflate: bad block".into() })
        }
    };
    let (view, _) = view(MemoryRows::new(array()).hook(hook));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let error = view.size(Effort::Exact, &Interrupt::new()).unwrap_err();
                assert_eq!(error.to_string(), "/a: chunk 1 (byte 4096): deflate: bad block");
            });
        }
    });
    // The rows before it can be read.
    assert_eq!(gathered(&*view, 0, 4).unwrap(), b"0\n1\n");
    assert!(gathered(&*view, bytes() - 10, 4).is_err());
    broken.store(false, Ordering::Relaxed);
    assert_eq!(view.size(Effort::Exact, &Interrupt::new()).unwrap().bytes(), bytes());
}

#[test]
fn a_panic_is_an_error() {
    let hook = |range: &std::ops::Range<u64>, _: &Interrupt| {
        assert!(range.start < CHUNK, "on purpose");
        Ok(())
    };
    let (view, _) = view(MemoryRows::new(array()).hook(hook));
    let error = view.size(Effort::Exact, &Interrupt::new()).unwrap_err();
    assert!(error.to_string().contains("panic"), "{error}");
}

#[test]
fn rows_that_come_short_are_an_error() {
    #[derive(Debug)]
    struct Short(MemoryRows);
    impl crate::store::Rows for Short {
        fn facts(&self) -> &crate::store::Facts {
            self.0.facts()
        }

        fn array(&self, range: std::ops::Range<u64>, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
            self.0.array(range.start..range.end - 1, interrupt)
        }
    }
    let column = super::TextColumn::new("a".into(), Arc::new(Short(MemoryRows::new(array()))));
    let view = TextView::new(vec![column], TextFormat::Txt, &usual(), None, cache(), None);
    let error = view.size(Effort::Exact, &Interrupt::new()).unwrap_err();
    assert!(error.to_string().ends_with("values"), "{error}");
}

#[test]
fn many_readers_render_a_block_once() {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let starts = starts.clone();
        move |range: &std::ops::Range<u64>, _: &Interrupt| {
            starts.lock().push(range.clone());
            thread::sleep(Duration::from_millis(20));
            Ok(())
        }
    };
    let (view, _) = view(MemoryRows::new(array()).hook(hook));
    view.size(Effort::Exact, &Interrupt::new()).unwrap();
    starts.lock().clear();
    thread::scope(|scope| {
        for piece in 0..6 {
            let view = &view;
            scope.spawn(move || assert_eq!(gathered(&**view, 1000 + piece * 1000, 1000).unwrap().len(), 1000));
        }
    });
    assert_eq!(*starts.lock(), std::slice::from_ref(&(0..65_536)));
}

#[test]
fn sequential_readers_find_blocks_ready() {
    let (view, rows) = view(MemoryRows::new(array()));
    view.size(Effort::Exact, &Interrupt::new()).unwrap();
    let before = rows.calls();
    let text = whole(&view);
    assert_eq!(text.len() as u64, bytes());
    assert!(text.starts_with(b"0\n1\n") && text.ends_with(format!("{}\n", ROWS - 1).as_bytes()));
    // However reading ahead and reading meet, no block is rendered twice.
    assert_eq!(rows.calls() - before, 12);
}
