//! The rules of H5MD.

crate::table::rules! {
    FRAMES: Error "h5md/frames" []
        "H5MD: an element has a step, a time and a value for each frame" => "write as many steps and times as values";
    WIDE: Note "h5md/wide-frames" []
        "hepfs: a column of a table has at most 1 MiB a row" => "read the values from columns/, or by themselves";
}
