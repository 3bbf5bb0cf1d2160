//! Texts and lists whose outlines state their lengths.

use arrow_array::{Int16Array, LargeListArray, LargeStringArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::Field;

use super::*;
use crate::views::{Size, Standing};

/// Enough rows that a sample says how long the file is.
const ROWS: usize = 300_000;

fn outlined(array: ArrayRef) -> IpcView {
    view(vec![column("x", Arc::new(MemoryRows::new(array).nullable(true).outlined()), None)])
}

#[test]
fn room_is_left_by_a_sample() {
    let words = LargeStringArray::from_iter((0..ROWS).map(|row| (row % 7 > 0).then(|| "ß".repeat(row % 23))));
    let lengths = (0..ROWS).map(|row| row % 4);
    let items = Int16Array::from_iter_values((0..lengths.clone().sum()).map(|item: usize| item as i16));
    let field = Arc::new(Field::new_list_field(DataType::Int16, true));
    let nulls = NullBuffer::from_iter((0..ROWS).map(|row| row % 8 != 4));
    let lists = LargeListArray::new(field, OffsetBuffer::from_lengths(lengths), Arc::new(items), Some(nulls));
    for array in [Arc::new(words) as ArrayRef, Arc::new(lists)] {
        let view = outlined(array.clone());
        let size = |effort| view.size(effort, &Interrupt::new()).unwrap();
        let Size::AtMost(promised) = size(Effort::Quick) else { panic!("no sample") };
        assert_eq!(size(Effort::Exact), Size::Exact(promised), "the room is enough");
        let (schema, batches) = read(whole(&view));
        let found = arrow_select::concat::concat_batches(&schema, &batches).unwrap();
        assert_eq!(found.column(0), &array);
    }
}

#[test]
fn what_no_sample_met_is_an_error_and_the_layout_is_given_up() {
    let word = |row| if row == 140_000 { "\u{fffd}" } else { "word" };
    let view = outlined(Arc::new(LargeStringArray::from_iter_values((0..ROWS).map(word))));
    let interrupt = Interrupt::new();
    let Size::Exact(size) = view.size(Effort::Exact, &interrupt).unwrap() else { panic!() };
    assert_eq!(view.standing(), Standing::Provisional);
    let errors = (0..size).step_by(50_000).filter_map(|at| gathered(&view, at, 50_000).err());
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    assert!((1..9).contains(&errors.len()) && errors[0].contains("no UTF-8"), "{errors:?}");
    assert_eq!(view.standing(), Standing::Outdated);
}
