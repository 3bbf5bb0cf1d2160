//! The rules of MATLAB.

crate::table::rules! {
    TEXTS: Warning "matlab/cells" [] "MATLAB: cells of a table are texts" => "";
    FIELDS: Warning "matlab/struct-field" []
        "MATLAB: a field of an array of structs is a single number or text in each; others are left out" => "";
    SPARSE: Error "matlab/sparse" []
        "MATLAB: data and ir of a sparse matrix have the same length, which is the last value of jc"
        => "rewrite the matrix";
}
