//! The rules of h5Seurat.

crate::table::rules! {
    COLUMN: Warning "h5seurat/column" []
        "h5Seurat: a column of a data frame is a vector, or a factor of levels and values; others are left out"
        => "write the column as a vector or a factor";
    LENGTHS: Error "h5seurat/column-length" []
        "h5Seurat: the columns of a data frame are as long as its row names" => "write as many values";
    NAMES: Warning "h5seurat/column-missing" []
        "h5Seurat: colnames names existing members" => "write the member, or remove the name";
    LEVELS_TWICE: Error "h5seurat/levels-twice" []
        "h5Seurat: the levels of a factor are distinct" => "write each level once";
}
