//! The parts that no reader of images sees.

use super::picture::Axis;
use super::samples::{Numbers, Window};
use super::view::joined;
use crate::catalogue::{ByteOrder, Class, Datatype, EnumerationMember, FloatFormat};

/// libdeflate sums both pieces at once.
#[test]
fn sums_of_pieces_join() {
    let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at * 7 % 251) as u8 | 0x80).collect();
    for at in [0, 1, 65_520, 65_521, 65_535, 199_999, 200_000] {
        let (first, second) = bytes.split_at(at);
        let sum = joined(libdeflater::adler32(first), libdeflater::adler32(second), second.len() as u64);
        assert_eq!(sum, libdeflater::adler32(&bytes), "{at}");
    }
}

#[test]
fn pixels_show_the_element_at_their_middle_or_a_chunk_spread_evenly() {
    let places = |axis: Axis| axis.0;
    assert_eq!(places(Axis::new(4, 8, 2, 4)), [(1, 0), (3, 1), (5, 2), (7, 3)]);
    assert_eq!(places(Axis::new(4, 2, 2, 1)), [(0, 0), (0, 0), (1, 0), (1, 0)]);
    // Two of ten chunks: those at the middles of both halves, each over two pixels.
    assert_eq!(places(Axis::new(4, 1000, 100, 2)), [(225, 2), (275, 2), (725, 7), (775, 7)]);
    // The last chunk has five of its hundred elements.
    assert_eq!(places(Axis::new(2, 305, 100, 1)), [(225, 2), (275, 2)]);
    let huge = places(Axis::new(256, u64::MAX / 2, 1 << 20, 3));
    assert!(huge.is_sorted() && huge.iter().all(|(place, chunk)| place >> 20 == *chunk));
}

#[test]
fn shades_run_over_what_lies_between_the_percentiles() {
    let sample: Vec<f64> = (0..=1000).map(f64::from).chain([f64::NAN, f64::INFINITY]).collect();
    let window = Window::over(&sample);
    assert_eq!(window, Window { least: 5.0, greatest: 995.0, is_logarithmic: false });
    let shades = [f64::NAN, -7.0, 5.0, 500.0, 995.0, 1e300].map(|number| window.shade(number));
    assert_eq!(shades, [0, 1, 1, 128, 255, 255]);
    let skewed = Window::over(&[1.0, 1.0, 10.0, 1e9]);
    assert!(skewed.is_logarithmic);
    assert_eq!([1.0, 1e9, 31_622.776_6].map(|number| skewed.shade(number)), [1, 255, 128]);
    assert_eq!(Window::over(&[f64::MAX, -f64::MAX]).shade(0.0), 128);
    assert_eq!(Window::over(&[3.0, 3.0]).shade(3.0), 128);
    assert_eq!(Window::over(&[]).shade(3.0), 128);
}

#[test]
fn complex_numbers_have_magnitudes_and_booleans_are_0_and_1() {
    let single = Class::Float { order: ByteOrder::Big, format: FloatFormat::Single };
    let complex = Class::Complex { base: Box::new(Datatype { size: 4, class: single }) };
    let numbers = Numbers::of(&Datatype { size: 8, class: complex }, None).unwrap();
    // 3 - 4i, big-endian.
    assert_eq!(numbers.number(&[0x40, 0x40, 0, 0, 0xc0, 0x80, 0, 0]), 5.0);
    let member = |name: &str, value| EnumerationMember { name: name.into(), value };
    let members = vec![member("FALSE", 0), member("TRUE", 1)];
    let class = Class::Enum { base: Box::new(Datatype::integer(1, true, ByteOrder::Little)), members };
    let numbers = Numbers::of(&Datatype { size: 1, class }, None).unwrap();
    assert_eq!([[0], [1]].map(|element| numbers.number(&element)), [0.0, 1.0]);
}
