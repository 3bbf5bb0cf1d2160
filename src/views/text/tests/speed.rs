//! Speed of rendering and measuring, for one to look at:
//! `cargo test --release --lib views::text::tests::speed -- --ignored --nocapture`

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use arrow::array::{ArrayRef, DictionaryArray, Float32Array, Float64Array, Int32Array, Int64Array, StringArray};

use super::super::{Format, Layout};
use super::{Memory, cache, column};
use crate::source::Interrupt;
use crate::views::{Effort, View};

const ROWS: usize = 4 << 20;
const BLOCK: usize = 1 << 16;

fn random() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0x9e37_79b9_7f4a_7c15_u64), |x| {
        let x = x ^ (x << 13);
        let x = x ^ (x >> 7);
        Some(x ^ (x << 17))
    })
}

fn best(clock: fn() -> f64, mut work: impl FnMut()) -> f64 {
    let time = |work: &mut dyn FnMut()| {
        let start = clock();
        work();
        clock() - start
    };
    (0..5).map(|_| time(&mut work)).fold(f64::INFINITY, f64::min)
}

/// Seconds that this thread has been on a processor: not disturbed by a busy machine.
fn processor() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    times.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Seconds on the clock.
fn wall() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_secs_f64()
}

#[test]
#[ignore = "takes a while and asserts nothing"]
fn speed() {
    let words = ["electron", "muon", "tau", "photon"];
    let columns: [(&str, ArrayRef); 8] = [
        ("int64 0..n", Arc::new(Int64Array::from_iter_values(0..ROWS as i64))),
        (
            "int64 any width",
            Arc::new(Int64Array::from_iter_values(random().map(|x| (x >> (x % 64)) as i64).take(ROWS))),
        ),
        ("int64 19 digits", Arc::new(Int64Array::from_iter_values(random().map(|x| (x as i64) | 1 << 62).take(ROWS)))),
        ("int32", Arc::new(Int32Array::from_iter_values(random().map(|x| x as i32).take(ROWS)))),
        ("float64", Arc::new(Float64Array::from_iter_values(random().map(|x| x as f64 / 1e19).take(ROWS)))),
        ("float32", Arc::new(Float32Array::from_iter_values(random().map(|x| x as f32 / 1e19).take(ROWS)))),
        ("string", Arc::new(StringArray::from_iter_values(random().map(|x| words[(x % 4) as usize]).take(ROWS)))),
        (
            "category",
            Arc::new(DictionaryArray::new(
                Int32Array::from_iter_values(random().map(|x| (x % 4) as i32).take(ROWS)),
                Arc::new(StringArray::from(words.to_vec())) as ArrayRef,
            )),
        ),
    ];
    for (name, array) in columns {
        for format in [Format::Csv, Format::Ndjson] {
            let layout = Layout::new(format, [&"x".into()]);
            let blocks = || (0..ROWS).step_by(BLOCK).map(|start| array.slice(start, BLOCK));
            let mut out = Vec::new();
            let render = best(processor, || {
                for block in blocks() {
                    out.clear();
                    layout.render(&[block], &mut out).unwrap();
                }
            });
            let measure = best(processor, || {
                for block in blocks() {
                    layout.measure(block.as_ref(), std::slice::from_ref(&(0..BLOCK))).unwrap();
                }
            });
            let million = ROWS as f64 / 1e6;
            println!(
                "{name:16} {format:?}: render {:6.1} M/s, measure {:6.1} M/s",
                million / render,
                million / measure
            );
        }
        let view = || {
            let rows = Arc::new(Memory::new(array.clone()).natural(1 << 17));
            super::TextView::new(vec![column("x", rows)], Format::Csv, None, cache())
        };
        let mut bytes = 0;
        let mut out = Vec::new();
        let seconds = best(wall, || {
            let view = view();
            bytes = view.size(Effort::Exact, &Interrupt::new()).unwrap().bytes();
            for offset in (0..bytes).step_by(128 << 10) {
                out.clear();
                view.read(offset, 128 << 10, &mut out, &Interrupt::new()).unwrap();
            }
        });
        let million = ROWS as f64 / 1e6;
        println!(
            "{name:16} file: {:.1} M/s, {:.2} GB/s, size and all bytes",
            million / seconds,
            bytes as f64 / seconds / 1e9
        );
    }
}
