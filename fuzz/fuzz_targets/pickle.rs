#![no_main]

use hepfs::codec::pickle::{PickledCell, PickleValue, attribute, label, object_array, zone};

/// Most bytes that a scan may take.
const LIMIT: usize = 1 << 20;

// Both readers of the same bytes. What they take must be readable, within their limits.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(tree) = attribute(input) {
        let mut left = 100_000;
        walk(tree.root(), &mut left);
        let _ = (label(tree.root()).map(|label| label.to_string()), zone(tree.root()), tree.root().describe());
    }
    let Ok(array) = object_array(input, LIMIT, &|| true) else { return };
    assert!(array.bytes() <= LIMIT);
    for row in 0..array.rows() {
        for column in 0..array.columns().unwrap_or(1) {
            let cell = array.cell(row, column, input).expect("a value that was scanned");
            if let PickledCell::Text(text) = cell {
                assert!(text.len() <= 3 * array.text_length(row, column, input));
            }
        }
    }
});

fn walk(value: PickleValue<'_>, left: &mut usize) {
    *left = left.checked_sub(1).expect("no more values than are read");
    let items = value.items().into_iter().flatten();
    items.for_each(|item| walk(item, left));
    for (key, item) in value.entries().into_iter().flatten() {
        walk(key, left);
        walk(item, left);
    }
}
