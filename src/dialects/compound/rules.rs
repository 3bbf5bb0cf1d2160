//! The rules of H5TB, PyTables and structured arrays.

crate::table::rules! {
    TABLE: Error "compound/table" []
        "H5TB, PyTables: a dataset of CLASS TABLE has rank 1 and compounds" => "remove CLASS, or write a compound";
    ROWS: Warning "compound/nrows" [] "PyTables: NROWS is the number of rows" => "write the number of rows as NROWS";
    FIELD_TWICE: Warning "compound/field-name" []
        "HDF5: each field of a compound has a name of its own" => "rename the field";
    FIELD_OUTSIDE: Error "compound/field-place" []
        "HDF5: the fields of a compound lie within it" => "rewrite the type";
    FIELD_NAME: Warning "compound/field-attribute" []
        "H5TB, PyTables: FIELD_n_NAME is the name of a field" => "write the name of the field";
    INDEX_LISTING: Error "compound/index-listing" [] "PyTables: search indexes can be listed" => "rebuild the indexes";
    INDEX_LISTED: Error "compound/index-listed" [] "PyTables: a search index can be listed" => "rebuild the index";
    INDEX_NAME: Warning "compound/index-name" [] "PyTables: a search index is named after its column"
        => "drop the index";
    INDEX_PARTS: Error "compound/index-parts" []
        "PyTables: an index has sorted, indices, sortedLR, indicesLR" => "rebuild the index";
    INDEX_VERSION: Note "compound/index-version" []
        "PyTables: the layout of an index is that of VERSION 2.1" => "rebuild the index with a newer PyTables";
    INDEX_DIRTY: Note "compound/index-dirty" []
        "PyTables: DIRTY is 0 for an index that is up to date" => "rebuild the index";
    INDEX_ROWS_TYPE: Error "compound/index-rows-type" []
        "PyTables: indices are unsigned integers of 1, 2, 4 or 8 bytes" => "rebuild the index";
    INDEX_COLUMN: Error "compound/index-column" [] "an index covers a column" => "rebuild the index";
    INDEX_RANK: Error "compound/index-rank" [] "PyTables: indices has rank 2" => "rebuild the index";
    INDEX_REST: Error "compound/index-rest" []
        "PyTables: nelements of indicesLR is the number of values behind the last slice" => "rebuild the index";
    INDEX_VALUES: Error "compound/index-values" []
        "PyTables: sorted has a value for each of indices" => "rebuild the index";
    INDEX_OPENED: Error "compound/index-opened" [] "the dataset can be opened" => "rebuild the index";
    INDEX_TYPE: Error "compound/index-type" []
        "PyTables: the values of an index have the type of its column" => "rebuild the index";
    INDEX_ELEMENTS: Error "compound/index-elements" [] "PyTables: indices are rows of the table" => "rebuild the index";
    INDEX_DISTINCT: Error "compound/index-distinct" [] "PyTables: indices has each row once" => "rebuild the index";
    INDEX_VALUE: Error "compound/index-value" []
        "PyTables: a value of sorted is that of its row" => "rebuild the index";
    INDEX_ORDER: Error "compound/index-order" []
        "PyTables: the values of a slice of sorted ascend" => "rebuild the index";
    INDEX_BOUNDS: Error "compound/index-bounds" []
        "PyTables: ranges has the least and the greatest value of each slice" => "rebuild the index";
    INDEX_KEYS: Note "compound/index-keys" []
        "an index orders values as they are shown" => "";
    INDEX_SLICES: Error "compound/index-slices" []
        "PyTables: slicesize is the number of values of a slice" => "rebuild the index";
    INDEX_ROWS: Error "compound/index-rows" []
        "PyTables: an index has each row" => "rebuild the index";
    INDEX_REDUCTION: Error "compound/index-reduction" []
        "PyTables: a full index has every value" => "rebuild the index";
    INDEX_REST_TYPE: Error "compound/index-rest-type" []
        "PyTables: indicesLR has the type of indices" => "rebuild the index";
    INDEX_LEVEL: Note "compound/index-level" []
        "an index of pandas or PyTables on a column is of use to hepfs"
        => "nothing is wrong, and answers are the same: for a large table, \
            store.create_table_index(key, optlevel=9, kind=\"full\") makes one that is";
    INDEX_RANGES: Error "compound/index-ranges" []
        "PyTables: ranges has two values for each slice" => "rebuild the index";
}
