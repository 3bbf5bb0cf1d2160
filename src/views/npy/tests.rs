//! Headers compared with the bytes that `numpy.save` of NumPy 2.4 wrote; datatypes compared with h5py's.

use std::sync::Arc;

use arrow_array::Int32Array;

use super::dtype::NoNpy;
use super::*;
use crate::catalogue::{ByteOrder, Charset, Class, Datatype, EnumerationMember, FloatFormat, Padding, ReferenceKind};
use crate::source::Interrupt;
use crate::store::rows::in_memory::MemoryRows;
use crate::store::{Answer, Rows};
use crate::views::{Effort, Size, View};

fn float(size: u64, format: FloatFormat, order: ByteOrder) -> Datatype {
    Datatype { size, class: Class::Float { order, format } }
}

fn i4() -> Datatype {
    Datatype::integer(4, true, ByteOrder::Little)
}

fn fixed_string(size: u64) -> Datatype {
    Datatype { size, class: Class::FixedString { padding: Padding::NullPadded, charset: Charset::Ascii } }
}

fn array(dims: &[u64], base: Datatype) -> Datatype {
    let size = dims.iter().product::<u64>() * base.size;
    Datatype { size, class: Class::Array { dims: dims.into(), base: Box::new(base) } }
}

fn dtype(datatype: &Datatype) -> NpyType {
    NpyType::of(datatype).unwrap()
}

/// `text` padded as NumPy does it: to `total` bytes with spaces and LF.
fn padded(start: &[u8], text: &[u8], total: usize) -> Vec<u8> {
    let mut bytes = [b"\x93NUMPY".as_slice(), start, text].concat();
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    bytes
}

#[test]
fn headers_are_those_of_numpy() {
    let v1 = |dtype: &NpyType, shape: &[u64], text: &str, total: usize| {
        let length = ((total - 10) as u16).to_le_bytes();
        assert_eq!(header(dtype, shape), padded(&[1, 0, length[0], length[1]], text.as_bytes(), total), "{text}");
    };
    v1(&dtype(&i4()), &[3], "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", 128);
    let f8 = dtype(&float(8, FloatFormat::Double, ByteOrder::Big));
    v1(&f8, &[], "{'descr': '>f8', 'fortran_order': False, 'shape': (), }", 128);
    let u1 = dtype(&Datatype::integer(1, false, ByteOrder::Big));
    v1(&u1, &[3, 4], "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4), }", 128);
    v1(&NpyType::Bool, &[0], "{'descr': '|b1', 'fortran_order': False, 'shape': (0,), }", 128);
    let complex = Class::Complex { base: Box::new(float(8, FloatFormat::Double, ByteOrder::Little)) };
    let complex = dtype(&Datatype { size: 16, class: complex });
    v1(&complex, &[2], "{'descr': '<c16', 'fortran_order': False, 'shape': (2,), }", 128);
    v1(&dtype(&fixed_string(5)), &[2], "{'descr': '|S5', 'fortran_order': False, 'shape': (2,), }", 128);
    v1(&NpyType::Void(3), &[2], "{'descr': '|V3', 'fortran_order': False, 'shape': (2,), }", 128);

    // numpy.dtype({'names': ['a','b','c'], 'formats': ['<i4', ('>f8',(2,3)), [('x','i1'),('y','<f4')]],
    //              'offsets': [0,8,60], 'itemsize': 72})
    let inner = Datatype::compound(
        5,
        &[
            ("x", 0, Datatype::integer(1, true, ByteOrder::Little)),
            ("y", 1, float(4, FloatFormat::Single, ByteOrder::Little)),
        ],
    );
    let doubles = array(&[2, 3], float(8, FloatFormat::Double, ByteOrder::Big));
    let padded_fields = Datatype::compound(72, &[("c", 60, inner), ("a", 0, i4()), ("b", 8, doubles)]);
    v1(
        &dtype(&padded_fields),
        &[5],
        "{'descr': [('a', '<i4'), ('', '|V4'), ('b', '>f8', (2, 3)), ('', '|V4'), ('c', [('x', '|i1'), ('y', '<f4')]), \
         ('', '|V7')], 'fortran_order': False, 'shape': (5,), }",
        256,
    );
    let nested =
        Datatype::compound(24, &[("p", 0, array(&[3], Datatype::compound(8, &[("q", 0, array(&[2], i4()))])))]);
    v1(
        &dtype(&nested),
        &[2],
        "{'descr': [('p', [('q', '<i4', (2,))], (3,))], 'fortran_order': False, 'shape': (2,), }",
        128,
    );
    // A sub-array at the top becomes dimensions; arrays of arrays become one.
    let top = array(&[2], array(&[3, 4], i4()));
    v1(&dtype(&top), &[7], "{'descr': '<i4', 'fortran_order': False, 'shape': (7, 2, 3, 4), }", 128);
    // NumPy's padding steps from 128 to 192 bytes with a name of 32 letters.
    for (letters, total) in [(31, 128), (32, 192)] {
        let name = "a".repeat(letters);
        let text = format!("{{'descr': [('{name}', '<i4')], 'fortran_order': False, 'shape': (1,), }}");
        v1(&dtype(&Datatype::compound(4, &[(&name, 0, i4())])), &[1], &text, total);
    }
}

#[test]
fn names_choose_the_version() {
    let two = Datatype::integer(2, true, ByteOrder::Little);
    let latin = Datatype::compound(14, &[("it's", 0, i4()), ("a\"b", 4, i4()), ("é\n\\", 8, i4()), ("x'\"y", 12, two)]);
    let text = b"{'descr': [(\"it's\", '<i4'), ('a\"b', '<i4'), ('\xe9\\n\\\\', '<i4'), ('x\\'\"y', '<i2')], \
        'fortran_order': False, 'shape': (1,), }";
    assert_eq!(header(&dtype(&latin), &[1]), padded(b"\x01\x00\xb6\x00", text, 192));

    let greek = Datatype::compound(4, &[("λ", 0, i4())]);
    let text = "{'descr': [('λ', '<i4')], 'fortran_order': False, 'shape': (1,), }";
    assert_eq!(header(&dtype(&greek), &[1]), padded(b"\x03\x00t\x00\x00\x00", text.as_bytes(), 128));

    let names: Vec<String> = (0..3000).map(|column| format!("column_{column:04}")).collect();
    let fields: Vec<_> = names.iter().zip(0..).map(|(name, position)| (name.as_str(), 4 * position, i4())).collect();
    let long = header(&dtype(&Datatype::compound(12_000, &fields)), &[1]);
    assert_eq!(long.len(), 72_128);
    assert!(long.starts_with(b"\x93NUMPY\x02\x00\xb4\x19\x01\x00{'descr': [('column_0000', '<i4'), ("));
}

#[test]
fn odd_types_are_bytes() {
    let odd = |class, size| dtype(&Datatype { size, class });
    assert_eq!(NpyType::of(&Datatype::integer(3, true, ByteOrder::Little)), Err(NoNpy::Width(3)));
    assert_eq!(dtype(&Datatype::integer(16, true, ByteOrder::Little)), NpyType::Void(16));
    assert_eq!(dtype(&Datatype::integer(4, true, ByteOrder::Vax)), NpyType::Void(4));
    let partial = Class::Integer { signed: true, order: ByteOrder::Little, precision: 12, offset: 0 };
    assert_eq!(odd(partial, 2), NpyType::Void(2));
    let shifted = Class::Bitfield { order: ByteOrder::Little, precision: 8, offset: 8 };
    assert_eq!(odd(shifted, 2), NpyType::Void(2));
    let bits = Class::Bitfield { order: ByteOrder::Big, precision: 16, offset: 0 };
    assert_eq!(odd(bits, 2), NpyType::Scalar { order: NpyByteOrder::Big, kind: NpyKind::Unsigned, size: 2 });
    assert_eq!(odd(Class::Opaque { tag: "x".into() }, 7), NpyType::Void(7));
    assert_eq!(odd(Class::Time { order: ByteOrder::Little }, 4), NpyType::Void(4));
    assert_eq!(dtype(&float(8, FloatFormat::Double, ByteOrder::Vax)), NpyType::Void(8));
    let halves = Class::Complex { base: Box::new(float(2, FloatFormat::Half, ByteOrder::Big)) };
    let text = String::from_utf8_lossy(&header(&odd(halves, 4), &[1])).into_owned();
    assert!(text.contains("'descr': [('r', '>f2'), ('i', '>f2')],"), "{text}");
}

#[test]
fn enumerations() {
    let member = |name: &str, value| EnumerationMember { name: name.into(), value };
    let boolean = |members| Class::Enum { base: Box::new(Datatype::integer(1, true, ByteOrder::Little)), members };
    let yes = Datatype { size: 1, class: boolean(vec![member("FALSE", 0), member("TRUE", 1)]) };
    assert_eq!(dtype(&yes), NpyType::Bool);
    let no = Datatype { size: 1, class: boolean(vec![member("OFF", 0), member("ON", 1)]) };
    assert_eq!(dtype(&no), dtype(&Datatype::integer(1, true, ByteOrder::Little)));
}

#[test]
fn what_numpy_cannot_hold() {
    let reason = |datatype: &Datatype| NpyType::of(datatype).unwrap_err();
    let string = Class::VariableString { padding: Padding::NullTerminated, charset: Charset::Utf8 };
    let string = Datatype { size: 16, class: string };
    assert_eq!(reason(&string), NoNpy::Variable);
    assert_eq!(reason(&Datatype::compound(20, &[("a", 0, i4()), ("s", 4, string)])), NoNpy::Variable);
    assert_eq!(reason(&Datatype { size: 8, class: Class::Reference(ReferenceKind::Object) }), NoNpy::Reference);
    assert_eq!(reason(&Datatype { size: 8, class: Class::Unknown(42) }), NoNpy::Unknown(42));
    assert_eq!(reason(&Datatype::compound(8, &[("a", 0, i4()), ("a", 4, i4())])), NoNpy::Name("a".into()));
    assert_eq!(reason(&Datatype::compound(4, &[("", 0, i4())])), NoNpy::Name(String::new()));
}

#[test]
fn contradictions_are_refused() {
    let malformed =
        |datatype: &Datatype| assert!(matches!(NpyType::of(datatype), Err(NoNpy::Malformed(_))), "{datatype:?}");
    malformed(&Datatype::compound(6, &[("a", 0, i4()), ("b", 4, i4())]));
    malformed(&Datatype::compound(8, &[("a", 0, i4()), ("b", 3, i4())]));
    malformed(&Datatype::compound(8, &[("a", u64::MAX - 1, i4())]));
    malformed(&fixed_string(0));
    let wrong = |dims: Vec<u64>, size| Datatype { size, class: Class::Array { dims, base: Box::new(i4()) } };
    malformed(&wrong(vec![2], 4));
    malformed(&wrong(vec![u64::MAX, u64::MAX], 4));
    malformed(&Datatype { size: 4, class: Class::Enum { base: Box::new(fixed_string(1)), members: vec![] } });
    let mut deep = i4();
    for _ in 0..100 {
        deep = array(&[1], deep);
    }
    malformed(&deep);
}

#[test]
fn views_are_header_and_bytes() {
    let stored: Vec<u8> = (0..40).collect();
    let numbers = Arc::new(Int32Array::from(vec![0; 10]));
    let rows: Arc<dyn Rows> = Arc::new(MemoryRows::new(numbers).stored(stored.clone(), 4));
    let raw = StoredView::raw(rows).unwrap();
    let view = raw.clone().npy(&dtype(&i4()), &[2, 5]).unwrap();
    let whole = [header(&dtype(&i4()), &[2, 5]), stored.clone()].concat();
    assert_eq!(view.size(Effort::Free, &Interrupt::new()).unwrap(), Size::Exact(168));
    assert_eq!(raw.size(Effort::Free, &Interrupt::new()).unwrap(), Size::Exact(40));
    for offset in 0..180_usize {
        for length in [0, 1, 30, 200] {
            for (view, whole) in [(&view, &whole), (&raw, &stored)] {
                let mut answer = Answer::in_memory(vec![7]);
                view.gather(offset as u64, length, &mut answer, &Interrupt::new()).unwrap();
                let expected = whole.get(offset..).unwrap_or_default();
                assert_eq!(answer.into_made()[1..], expected[..expected.len().min(length)]);
            }
        }
    }
    assert!(raw.clone().npy(&dtype(&i4()), &[11]).is_none());
    assert!(raw.npy(&dtype(&i4()), &[u64::MAX, 16]).is_none());
}
