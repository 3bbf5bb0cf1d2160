//! The rules of AnnData.

crate::table::rules! {
    SPARSE: Error "anndata/sparse" []
        "AnnData: data and indices of a sparse matrix have the same length, which is the last value of indptr"
        => "write data, indices and indptr of one matrix";
    MATRICES: Error "anndata/matrix-rows" []
        "AnnData: obsm and varm have a row for each row of obs and var" => "write a matrix with as many rows";
    LABELS_IN_UNS: Error "anndata/uns-labels" []
        "AnnData before 0.7: uns has the labels of codes"
        => "write the labels to uns, or the file with a newer anndata";
    LABELS_REFERRED: Error "anndata/categories-reference" []
        "AnnData 0.7: the attribute categories refers to the labels of codes" => "write a reference to the labels";
    LENGTHS: Error "anndata/column-length" []
        "AnnData: the columns of a data frame are as long as its index" => "write as many values";
    COLUMN: Error "anndata/column" []
        "AnnData: a column is an array of rank 1, a categorical, or values with a mask"
        => "write the column in one of these encodings";
    AWKWARD: Warning "anndata/awkward" []
        "AnnData: the form of an awkward array names the buffers beside it"
        => "write it with anndata; forms with unions, bit masks or views are not understood";
    MASK: Error "anndata/mask-length" []
        "AnnData: a mask is as long as the values" => "write a mask for each value";
    MASK_TYPE: Warning "anndata/mask-type" []
        "AnnData: a mask is boolean" => "write the mask as booleans; any value but zero masks";
    LABELS_TWICE: Error "anndata/categories-twice" []
        "AnnData: the categories of a categorical are distinct" => "write each category once";
    VERSION: Warning "anndata/encoding-version" []
        "AnnData: data frames have the encoding-version 0.1.0 or 0.2.0" => "read it with a newer hepfs";
    INDEX: Error "anndata/index" [] "AnnData: _index names the row labels" => "write the name of the labels as _index";
    ORDER: Error "anndata/column-order" [] "AnnData: column-order lists the columns" => "write column-order";
    ORDER_LACKS: Warning "anndata/column-order-lacks" []
        "AnnData: column-order lists every column" => "add the column to column-order";
    NAMES: Error "anndata/column-missing" []
        "AnnData: _index and column-order name existing members" => "write the member, or remove the name";
}
