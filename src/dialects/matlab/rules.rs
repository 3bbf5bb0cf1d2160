//! The rules of MATLAB.

crate::table::rules! {
    TEXTS: Warning "matlab/cells" [] "MATLAB: cells of a table are texts" => "";
    SPARSE: Error "matlab/sparse" []
        "MATLAB: data and ir of a sparse matrix are of one length, which jc ends with" => "write the matrix anew";
}
