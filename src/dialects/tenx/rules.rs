//! The rules of 10x Genomics.

crate::table::rules! {
    MATRIX: Error "tenx/matrix" []
        "10x Genomics: a matrix has a column for each barcode and a row for each feature" => "rewrite the matrix";
    MOLECULES: Error "tenx/molecules" []
        "10x Genomics: molecules have numbers of barcodes and features" => "rewrite the numbers";
}
