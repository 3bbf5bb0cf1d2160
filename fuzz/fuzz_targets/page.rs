#![no_main]

use hepfs::catalogue::Datatype;

// Pages of a column of any datatype: the datatype as a worker describes it, a name, a text of its attributes, how many
// elements there are, how many make a line of a picture, the elements, and the heap that they lead into.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(((datatype, name, text), rest)) = postcard::take_from_bytes::<(Datatype, &str, &str)>(input) else { return };
    let Some(([count, width], bytes)) = rest.split_first_chunk() else { return };
    hepfs_fuzz::page(datatype, [name, text], (usize::from(*count), usize::from(*width)), bytes);
});
