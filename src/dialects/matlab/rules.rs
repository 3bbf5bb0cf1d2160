//! The rules of MATLAB.

crate::table::rules! {
    TEXTS: Warning "matlab/cells" [] "MATLAB: cells of a table are texts" => "";
}
