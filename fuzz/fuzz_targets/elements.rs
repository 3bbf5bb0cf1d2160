#![no_main]

use hepfs::catalogue::Datatype;

// Elements of any datatype: compounds, arrays, sequences, strings, enumerations. The datatype as a worker describes it,
// how many there are, the elements, and the heap that they lead into.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok((datatype, rest)) = postcard::take_from_bytes::<Datatype>(input) else { return };
    let Some((count, bytes)) = rest.split_first() else { return };
    let _ = hepfs_fuzz::elements(&datatype, usize::from(*count), bytes);
});
