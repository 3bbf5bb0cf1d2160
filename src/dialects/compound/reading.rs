//! Interprets the datatypes of a file as the library that wrote it does.

use std::sync::Arc;

use super::recognition::System;
use crate::calendar::SECOND;
use crate::catalogue::{ByteOrder, Class, CompoundField, Dataset, Datatype, Fill, Padding};

/// The type as which to read elements of a stored type. PyTables gives some types a meaning beyond HDF5's:
///
/// | stored | read as |
/// | --- | --- |
/// | bitfield of one byte | boolean: every nonzero value is true |
/// | time of 4 bytes | seconds, a signed integer |
/// | time of 8 bytes | seconds in its upper half, microseconds in its lower one |
/// | null-terminated string | null-padded string |
pub(in crate::dialects) fn read_as(stored: &Datatype, system: System) -> Datatype {
    if !system.by_pytables {
        return stored.clone();
    }
    let class = match &stored.class {
        Class::Bitfield { .. } if stored.size == 1 => Class::Flag,
        Class::Time { order } if stored.size == 4 => {
            Class::Integer { signed: true, order: *order, precision: 32, offset: 0 }
        }
        Class::Time { order: order @ (ByteOrder::Little | ByteOrder::Big) } if stored.size == 8 => {
            Class::SplitSeconds { order: *order, is_integer: false }
        }
        Class::FixedString { padding: Padding::NullTerminated, charset } => {
            Class::FixedString { padding: Padding::NullPadded, charset: *charset }
        }
        Class::Compound { fields } => Class::Compound {
            fields: in_order(fields, system)
                .map(|field| CompoundField { datatype: read_as(&field.datatype, system), ..field.clone() })
                .collect(),
        },
        Class::Array { dims, base } => Class::Array { dims: dims.clone(), base: Box::new(read_as(base, system)) },
        Class::Sequence { base } => Class::Sequence { base: Box::new(read_as(base, system)) },
        other => other.clone(),
    };
    Datatype { size: stored.size, class }
}

/// How to read a field that PyTables reads as a time: its type as an integer, and the attoseconds of its unit, counted
/// from 1970. `None`: not a time.
pub(super) fn time(stored: &Datatype, system: System) -> Option<(Datatype, i128)> {
    let Class::Time { .. } = stored.class else { return None };
    let mut read = read_as(stored, system);
    let step = match &mut read.class {
        Class::Integer { .. } => SECOND,
        Class::SplitSeconds { is_integer, .. } => {
            *is_integer = true;
            SECOND / 1_000_000
        }
        _ => return None,
    };
    Some((read, step))
}

/// The fields of a compound in display order: the order of the type, except that PyTables orders fields by offset.
pub(in crate::dialects) fn in_order(fields: &[CompoundField], system: System) -> impl Iterator<Item = &CompoundField> {
    let mut fields: Vec<&CompoundField> = fields.iter().collect();
    if system.by_pytables {
        fields.sort_by_key(|field| field.offset);
    }
    fields.into_iter()
}

/// Describes a part of each element as a dataset of its own.
pub(in crate::dialects) fn part_of(dataset: &Dataset, datatype: &Datatype, fill: Fill) -> Arc<Dataset> {
    let described = dataset.described(|part| {
        (part.datatype, part.fill, part.attributes) = (datatype.clone(), fill, Arc::default());
    });
    Arc::new(described)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Charset;

    #[test]
    fn pytables_reads_more_out_of_a_type_than_hdf5_says() {
        let pytables = System { by_pytables: true, is_declared: true };
        let bits = |size| Class::Bitfield { order: ByteOrder::Little, precision: 8 * size as u32, offset: 0 };
        let text = |padding| Class::FixedString { padding, charset: Charset::Ascii };
        let of = |class, size| read_as(&Datatype { size, class }, pytables).class;
        assert_eq!(of(bits(1), 1), Class::Flag);
        assert_eq!(of(bits(2), 2), bits(2));
        assert_eq!(
            of(Class::Time { order: ByteOrder::Big }, 8),
            Class::SplitSeconds { order: ByteOrder::Big, is_integer: false }
        );
        assert_eq!(of(text(Padding::NullTerminated), 4), text(Padding::NullPadded));
        assert_eq!(of(text(Padding::SpacePadded), 4), text(Padding::SpacePadded));
        let flag = |class| Datatype { size: 1, class };
        let array = |class| Class::Array { dims: vec![2], base: Box::new(flag(class)) };
        assert_eq!(of(array(bits(1)), 2), array(Class::Flag));
        let field = |name: &str, offset, class| CompoundField { name: name.into(), offset, datatype: flag(class) };
        let stored = Class::Compound { fields: vec![field("late", 1, bits(1)), field("early", 0, bits(1))] };
        let read = Class::Compound { fields: vec![field("early", 0, Class::Flag), field("late", 1, Class::Flag)] };
        assert_eq!(of(stored.clone(), 2), read);
        let elsewhere = System { by_pytables: false, is_declared: true };
        assert_eq!(read_as(&Datatype { size: 2, class: stored.clone() }, elsewhere).class, stored);
    }
}
