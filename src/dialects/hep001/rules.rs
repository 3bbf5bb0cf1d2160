//! The rules of HEP001 that `hepfs check` applies to a table, with the section in each draft that has the rule.
//!
//! If a rule has no section of a draft, that draft does not have the rule, and tables that follow it are not checked
//! for it. A rule without any section is hepfs's own, and is checked whatever the draft.

crate::table::rules! {
    // The table group
    CLASS_NEARLY: Warning "hep001/class-nearly" ["April 2026" "5.1", "July 2026" "7.1"]
        "the CLASS of a table is spelled COLUMN_TABLE"
        => "write CLASS = \"COLUMN_TABLE\", scalar";
    CLASS_STORAGE: Error "hep001/class-storage" ["April 2026" "5.1", "July 2026" "7.1"]
        "CLASS is a scalar, fixed-length ASCII string: of 12 bytes in April, null-terminated of 13 bytes since July"
        => "write CLASS as H5T_C_S1 of 13 bytes";
    TOKEN_PADDING: Warning "hep001/token-padding" ["July 2026" "7.1"]
        "CLASS and KIND are declared null-terminated, not null-padded"
        => "write them as H5T_STR_NULLTERM; h5py declares fixed-length strings null-padded";
    VERSION_MISSING: Error "hep001/version-missing" ["April 2026" "5.2", "July 2026" "7.2"]
        "a table has a VERSION" => "write VERSION = \"1.0\"";
    VERSION_FORM: Error "hep001/version-form" ["April 2026" "5.2", "July 2026" "7.2"]
        "VERSION is MAJOR.MINOR" => "write VERSION = \"1.0\"";
    VERSION_MAJOR: Error "hep001/version-major" ["April 2026" "5.2", "July 2026" "7.2"]
        "a reader refuses a MAJOR above the one it implements"
        => "read it with a newer hepfs, or write VERSION = \"1.0\" if it is that";
    VERSION_STORAGE: Error "hep001/version-storage" ["April 2026" "5.2", "July 2026" "7.2"]
        "VERSION is a scalar, fixed-length ASCII string" => "write VERSION as H5T_C_S1 of as many bytes as it has";
    NROWS_MISSING: Error "hep001/nrows-missing" ["July 2026" "7.3"]
        "a table has its number of rows in NROWS" => "write the number of rows as NROWS";
    NROWS_TYPE: Error "hep001/nrows-type" ["July 2026" "7.3"]
        "NROWS is a scalar uint64" => "write NROWS as one H5T_STD_U64";
    DRAFTS_MIXED: Warning "hep001/drafts-mixed" ["April 2026" "2", "July 2026" "2"]
        "a table follows one draft" => "name everything as the July draft does";
    ATTRIBUTE_STORAGE: Warning "hep001/attribute-storage" ["April 2026" "5.3", "July 2026" "7.4"]
        "descriptive attributes are fixed-length UTF-8 strings: scalar, except column-order, which has rank 1"
        => "write them as fixed-length UTF-8";
    STRANGER: Error "hep001/stranger" ["July 2026" "7.6"]
        "only columns, list columns, CATEGORIES and SEARCH_INDEXES lie below a table group"
        => "move it beside the table";
    EXTENT_BELOW_NROWS: Error "hep001/extent-below-nrows" ["July 2026" "13"]
        "every column is at least NROWS long" => "write the rows that are missing, or a smaller NROWS";
    EXTENTS_DIFFER: Error "hep001/extents-differ" ["April 2026" "9", "July 2026" "13"]
        "every column has the same extent" => "extend the shorter columns";
    COLUMN_RANK: Error "hep001/column-rank" ["April 2026" "6.1", "July 2026" "8.1"]
        "a column has rank 1" => "store it with rank 1, or beside the table";

    // Order and labels
    ORDER_MISSING: Warning "hep001/column-order-missing" ["April 2026" "5.3", "July 2026" "7.4"]
        "a table of two columns or more has a column-order" => "write column-order";
    ORDER_TYPE: Error "hep001/column-order-type" ["April 2026" "5.3", "July 2026" "7.4"]
        "column-order holds strings" => "write it as an array of fixed-length UTF-8 strings";
    ORDER_LACKS: Error "hep001/column-order-lacks" ["April 2026" "9", "July 2026" "13"]
        "column-order lists every column" => "add the column to column-order";
    ORDER_STRANGER: Error "hep001/column-order-stranger" ["April 2026" "9", "July 2026" "13"]
        "column-order lists columns only" => "remove the name from column-order";
    ORDER_TWICE: Error "hep001/column-order-twice" ["April 2026" "9", "July 2026" "13"]
        "column-order lists every column once" => "remove one of the two from column-order";
    LABELS_TYPE: Error "hep001/index-columns-type" ["July 2026" "7.4"]
        "INDEX_COLUMNS is an array of references of rank 1" => "write it as references of rank 1";
    LABELS_TARGET: Error "hep001/index-columns-target" ["July 2026" "13"]
        "every reference of INDEX_COLUMNS refers to a column dataset of the table"
        => "refer to a column dataset of the table";
    LABELS_DIFFER: Error "hep001/index-differs" ["July 2026" "13"]
        "_index is the name of the column that INDEX_COLUMNS refers to first"
        => "write the name of that column as _index";
    LABEL_UNKNOWN: Error "hep001/index-unknown" ["April 2026" "5.3", "July 2026" "7.4"]
        "_index names a column" => "write the name of a column as _index";
    LABEL_LINK: Error "hep001/index-link" ["April 2026" "7.2"]
        "a column and the dataset that labels it refer to each other" => "write both references, or neither";
    LABEL_LIST: Error "hep001/index-list-type" ["April 2026" "7.1"]
        "_columns_list and _indexes are references of rank 1" => "write them as references of rank 1";

    // References
    REFERENCE_TYPE: Error "hep001/reference-type" ["April 2026" "6.5", "July 2026" "5"]
        "an attribute that links objects holds references" => "write a reference";
    REFERENCE_LOST: Error "hep001/reference-lost" ["April 2026" "9", "July 2026" "13"]
        "references refer to existing objects" => "write a reference to the object, or no attribute";
    REFERENCE_OLD: Warning "hep001/reference-old" ["July 2026" "5"]
        "references are of H5T_STD_REF"
        => "write H5T_STD_REF where the library can (HDF5 1.12); h5py and h5col cannot yet";

    // Columns
    NAME_RESERVED: Error "hep001/name-reserved" ["April 2026" "6.1", "July 2026" "14.1"]
        "a column has no reserved name" => "rename the column";
    NAME_UNDERSCORE: Warning "hep001/name-underscore" ["April 2026" "6.1", "July 2026" "8.1"]
        "the name of a column begins with no underscore" => "rename the column";
    TYPE_VARIABLE: Warning "hep001/type-variable" ["July 2026" "8.3"]
        "a column is of fixed length" => "use a fixed-length string, or a list column";
    TYPE_NESTED: Warning "hep001/type-nested" ["April 2026" "6.2", "July 2026" "8.3"]
        "the fields of a compound column are atomic" => "make a column of each field";
    FILL_MISSING: Error "hep001/fill-missing" ["July 2026" "8.5"]
        "a column sets a fill value, unless its values reach both ends of their type"
        => "set a fill value that no value has, such as the recommended one";
    FILL_UNREADABLE: Error "hep001/fill-unreadable" ["April 2026" "6.4", "July 2026" "8.5"]
        "the fill value can be read" => "set the fill value again";
    FILL_FOREIGN: Note "hep001/fill-foreign" []
        "Versioned HDF5: the library sets a fill value of zeros by itself, so it means nothing" => "";
    FILL_UNDOCUMENTED: Note "hep001/fill-undocumented" ["April 2026" "6.4"]
        "the description of a column explains its fill value" => "write a description";
    FILL_VALID: Error "hep001/fill-valid" ["July 2026" "8.5"]
        "the fill value lies outside valid_min and valid_max" => "choose a fill value outside of them";
    FILL_AMONG_VALUES: Error "hep001/fill-among-values" ["July 2026" "8.5"]
        "the fill value lies outside the range of the values" => "choose a fill value below or above all values";
    FILL_MEMBER: Error "hep001/fill-member" ["July 2026" "8.5"]
        "the fill value of an enumeration is no member with a meaning"
        => "add a member MISSING, and set its code as fill value";
    FILL_UNNAMED: Warning "hep001/fill-unnamed" ["July 2026" "8.5"]
        "the fill value of an enumeration is its member MISSING"
        => "add a member MISSING with the code of the fill value";
    VALID_TYPE: Error "hep001/valid-range-type" ["July 2026" "8.6"]
        "valid_min and valid_max are scalars of the column's type" => "write them in the column's type";
    VALID_ORDER: Error "hep001/valid-range-order" ["July 2026" "8.6"]
        "valid_min is not above valid_max" => "write the lesser one as valid_min";
    VALID_EXCEEDED: Error "hep001/valid-range-exceeded" ["July 2026" "8.5"]
        "values lie between valid_min and valid_max" => "write a wider range, or correct the values";
    MASK_RESERVED: Error "hep001/mask-reserved" ["July 2026" "8.5.2"]
        "a column has no attribute MASK; only the fill value marks missing rows" => "remove the attribute";
    BOOLEAN_TYPE: Error "hep001/boolean-type" ["July 2026" "6"]
        "a boolean is an enumeration of FALSE = 0 and TRUE = 1 over int8" => "write it in that type";
    BOOLEAN_FILL: Error "hep001/boolean-fill" ["July 2026" "8.8.2"]
        "a boolean column has no fill value"
        => "do not set one; where values are missing use the members FALSE, TRUE, MISSING = 2";
    BOOLEAN_VALUE: Error "hep001/boolean-value" ["July 2026" "8.8.1"]
        "a boolean is 0 or 1; other values are shown as missing" => "write 0 or 1";
    CODE_NAME: Warning "hep001/code-name" ["April 2026" "6.2", "July 2026" "8.3"]
        "an enumeration code has a name; others are shown as numbers"
        => "add a member to the enumeration, or write a code that has one";
    TEXT_UTF8: Error "hep001/text-utf8" ["April 2026" "6.2", "July 2026" "9.4"]
        "text is UTF-8; other bytes are shown as U+FFFD" => "write text in UTF-8";

    // Categories
    CATEGORY_COLUMN: Error "hep001/category-column" ["April 2026" "6.6", "July 2026" "8.7.2"]
        "a categorical column has integer codes and refers to a categories dataset of rank 1"
        => "write integer codes, and one reference to the categories";
    CATEGORY_RANGE: Error "hep001/category-range" ["April 2026" "6.6", "July 2026" "8.7"]
        "a category code is less than the number of categories; others are shown as missing"
        => "write a code of a label, or the fill value where the category is missing";
    CATEGORY_FILL: Error "hep001/category-fill" ["July 2026" "13"]
        "the fill value of a categorical column is no code of a label"
        => "choose a fill value that is no code, such as the recommended one";
    CATEGORY_PLACE: Error "hep001/category-place" ["April 2026" "6.6", "July 2026" "13"]
        "categories lie where the draft has them: beside the columns in April, in CATEGORIES since July"
        => "move the categories dataset";
    CATEGORY_CONTENT: Error "hep001/category-content" ["July 2026" "8.7.1"]
        "CATEGORIES holds categories datasets of rank 1 and nothing else" => "move it elsewhere";
    CATEGORY_ORPHAN: Error "hep001/category-orphan" ["July 2026" "13"]
        "a column refers to each categories dataset" => "refer to it, or remove it";
    CATEGORY_ENCODING: Error "hep001/category-encoding" ["April 2026" "6.6"]
        "a categories dataset has encoding-type = \"categorical\"" => "write that attribute";
    CATEGORY_ORDERED: Error "hep001/category-ordered" ["April 2026" "6.6", "July 2026" "8.7.2"]
        "ordered is a scalar boolean; April requires it" => "write ordered as a boolean";
    CATEGORY_TWICE: Warning "hep001/category-twice" ["April 2026" "6.6", "July 2026" "8.7"]
        "the labels of a categories dataset are distinct" => "merge equal labels";

    // List columns
    LIST_CLASS: Error "hep001/list-class" ["July 2026" "9.1"]
        "CLASS of a list or of its strings is a scalar, null-terminated, fixed-length ASCII string"
        => "write it as H5T_C_S1";
    LIST_KIND: Error "hep001/list-kind" ["July 2026" "9.1"]
        "a list column has a KIND that is a scalar, null-terminated, fixed-length ASCII string"
        => "write KIND = \"OFFSETS\" as H5T_C_S1 of 8 bytes";
    LIST_KIND_UNKNOWN: Warning "hep001/list-kind-unknown" ["July 2026" "9.1"]
        "a list column has a known KIND; others cannot be read"
        => "read it with a newer hepfs, or write KIND = \"OFFSETS\"";
    LIST_MEMBERS: Error "hep001/list-members" ["July 2026" "9.2"]
        "a list column has OFFSETS and VALUES, strings have OFFSETS and CHARS, each of its type and rank"
        => "write what is missing in that type";
    LIST_STRANGER: Error "hep001/list-stranger" ["July 2026" "9.2"]
        "a list column holds OFFSETS, VALUES and MASK and nothing else" => "move it elsewhere";
    LIST_OFFSETS_TYPE: Error "hep001/list-offsets-type" ["July 2026" "9.2"]
        "OFFSETS is of uint64" => "write OFFSETS as H5T_STD_U64";
    LIST_FIRST: Error "hep001/list-offsets-first" ["July 2026" "9.2"]
        "the first offset is 0" => "write 0 as the first offset";
    LIST_EXTENT: Error "hep001/list-extent" ["July 2026" "9.2"]
        "OFFSETS has one element more than there are entries, and MASK one for each" => "extend it";
    LIST_OFFSETS: Error "hep001/list-offsets-order" ["July 2026" "9.2"]
        "offsets of a list do not fall, and stay within its values; other lists are shown as missing"
        => "rewrite the offsets";
    LIST_NULL: Error "hep001/list-null" ["July 2026" "9.2"]
        "a null list has no elements; those stored are not shown"
        => "write the same offset on both sides of a null entry";
    LIST_VARIABLE: Error "hep001/list-variable" ["July 2026" "9.5"]
        "nothing below a list column is of variable length" => "use STRING_VALUES, a nested list or a fixed length";
    LIST_INDEXED: Error "hep001/list-indexed" ["July 2026" "9.6"]
        "a list column has no SEARCH_INDEX_LIST" => "remove the attribute";

    // Search indexes
    INDEX_LISTING: Error "hep001/index-listing" ["April 2026" "8.1", "July 2026" "11.1"]
        "search indexes can be listed" => "restore the group from a copy";
    INDEX_CONTENT: Error "hep001/index-content" ["April 2026" "8.1", "July 2026" "11.1"]
        "the group of search indexes holds datasets only" => "move it elsewhere";
    INDEX_PLACE: Error "hep001/index-place" ["April 2026" "8.1", "July 2026" "13"]
        "a column refers to search indexes in their group only" => "refer to the index there";
    INDEX_LINK: Error "hep001/index-backlink" ["April 2026" "8.2"]
        "a search index and its column refer to each other" => "write both references, or neither";
    INDEX_KIND: Error "hep001/index-kind" ["April 2026" "8.3", "July 2026" "13"]
        "every dataset there has a KIND, or a search index refers to it"
        => "write KIND, or remove the dataset";
    INDEX_KIND_STORAGE: Error "hep001/index-kind-storage" ["April 2026" "8.3", "July 2026" "11.3"]
        "KIND is a scalar, fixed-length ASCII string" => "write KIND as H5T_C_S1";
    INDEX_KIND_UNKNOWN: Note "hep001/index-kind-unknown" ["April 2026" "8.3", "July 2026" "11.3"]
        "search indexes of unknown kinds are ignored" => "";
    INDEX_ATTRIBUTE: Error "hep001/index-attribute" ["April 2026" "8.4", "July 2026" "11.3"]
        "attributes of a search index have their types: lengths, m_bits and chunk_shape uint64, k uint16, \
         seed uint32, hash_family a scalar ASCII string"
        => "rebuild it (hepfs index build)";
    INDEX_FIXED: Warning "hep001/index-fixed" ["July 2026" "11.3"]
        "a search index that grows with the table is chunked and unlimited" => "rebuild it (hepfs index build)";
    INDEX_COLUMN: Error "hep001/index-column" ["April 2026" "8.2", "July 2026" "11.2"]
        "exactly one column, a dataset, refers to a search index" => "refer to it from its column";
    INDEX_ORPHAN: Warning "hep001/index-orphan" ["July 2026" "11.2"]
        "a column refers to each search index" => "refer to it, or remove it";
    INDEX_GENERATION: Error "hep001/generation-missing" ["July 2026" "13"]
        "a table with search indexes has a GENERATION, a scalar uint64" => "write GENERATION as one H5T_STD_U64";
    INDEX_TOKENS: Error "hep001/index-tokens" ["July 2026" "13"]
        "a search index has SOURCE_GENERATION and SOURCE_NROWS, scalars of uint64" => "rebuild it (hepfs index build)";
    INDEX_STALE: Note "hep001/index-stale" ["July 2026" "12.2.3"]
        "a search index describes the current state of its table; a stale one is not used"
        => "rebuild it (hepfs index build)";
    INDEX_LENGTH: Error "hep001/index-column-length" ["April 2026" "9", "July 2026" "13"]
        "a column with a search index has as many rows as its table" => "extend the column";
    INDEX_ORDER: Error "hep001/index-type" ["April 2026" "8", "July 2026" "11.5"]
        "the values of a column with a search index have an order and canonical bytes"
        => "drop the index (hepfs index drop)";
    INDEX_OPENED: Error "hep001/index-opened" ["April 2026" "8", "July 2026" "11"]
        "a search index and its column can be opened" => "rebuild it (hepfs index build)";
    INDEX_LABELS: Error "hep001/index-labels" ["April 2026" "8", "July 2026" "11"]
        "the categories of a column with a search index can be read" => "rewrite the categories";
    INDEX_CHUNK: Error "hep001/index-chunk-shape" ["April 2026" "8.4"]
        "chunk_shape is the column's chunk shape, of a row at least" => "rebuild it (hepfs index build)";
    MINMAX_SHAPE: Error "hep001/minmax-shape" ["April 2026" "8.4", "July 2026" "11.4"]
        "CHUNK_MINMAX has an entry for each chunk" => "rebuild it (hepfs index build)";
    MINMAX_TYPE: Error "hep001/minmax-type" ["April 2026" "8.4", "July 2026" "11.4"]
        "an entry has min and max of the column's type, and nan_count, fill_count, n of uint64"
        => "rebuild it (hepfs index build)";
    MINMAX_ROWS: Error "hep001/minmax-n" ["April 2026" "8.4", "July 2026" "11.4"]
        "n is the number of rows in the chunk" => "rebuild it (hepfs index build)";
    MINMAX_MISSING: Error "hep001/minmax-fill-count" ["April 2026" "8.4", "July 2026" "11.4"]
        "fill_count is the number of missing values in the chunk" => "rebuild it (hepfs index build)";
    MINMAX_NANS: Error "hep001/minmax-nan-count" ["April 2026" "8.4", "July 2026" "11.4"]
        "nan_count is the number of NaN in the chunk" => "rebuild it (hepfs index build)";
    MINMAX_LEAST: Error "hep001/minmax-min" ["April 2026" "8.4", "July 2026" "11.4"]
        "min is the least value of the chunk" => "rebuild it (hepfs index build)";
    MINMAX_GREATEST: Error "hep001/minmax-max" ["April 2026" "8.4", "July 2026" "11.4"]
        "max is the greatest value of the chunk" => "rebuild it (hepfs index build)";
    SORTED_SHAPE: Error "hep001/sorted-shape" ["April 2026" "8.5", "July 2026" "11.5"]
        "SORTED_ROWS has an element for each row" => "rebuild it (hepfs index build)";
    SORTED_TYPE: Error "hep001/sorted-type" ["April 2026" "8.5", "July 2026" "11.5"]
        "SORTED_ROWS holds unsigned integers" => "rebuild it (hepfs index build)";
    SORTED_TAILS: Error "hep001/sorted-tails-missing" ["April 2026" "8.5", "July 2026" "11.5"]
        "SORTED_ROWS has fill_tail_length and nan_tail_length" => "rebuild it (hepfs index build)";
    SORTED_TAILS_LONG: Error "hep001/sorted-tails-long" ["April 2026" "8.5", "July 2026" "11.5"]
        "tails are no longer than the index" => "rebuild it (hepfs index build)";
    SORTED_ORDERED: Error "hep001/sorted-ordered" ["April 2026" "8.5", "July 2026" "11.5"]
        "ordered is true" => "rebuild it (hepfs index build)";
    SORTED_ELEMENTS: Error "hep001/sorted-elements" ["April 2026" "8.5", "July 2026" "11.5"]
        "elements are rows of the column" => "rebuild it (hepfs index build)";
    SORTED_ORDER: Error "hep001/sorted-order" ["April 2026" "8.5", "July 2026" "11.5"]
        "rows are in the order of their values, missing ones and NaN last, ties by row"
        => "rebuild it (hepfs index build)";
    SORTED_COUNTS: Error "hep001/sorted-tails" ["April 2026" "8.5", "July 2026" "11.5"]
        "fill_tail_length and nan_tail_length are the numbers of missing rows and of NaN"
        => "rebuild it (hepfs index build)";
    BITMAP_SHAPE: Error "hep001/bitmap-shape" ["April 2026" "8.6", "July 2026" "11.6"]
        "BITMAP has a byte for each eight rows" => "rebuild it (hepfs index build)";
    BITMAP_TYPE: Error "hep001/bitmap-type" ["April 2026" "8.6", "July 2026" "11.6"]
        "BITMAP holds uint8" => "rebuild it (hepfs index build)";
    BITMAP_VALUES: Error "hep001/bitmap-values" ["April 2026" "8.6", "July 2026" "11.6"]
        "a bitmap refers to a dataset of values beside it" => "rebuild it (hepfs index build)";
    BITMAP_VALUES_SHAPE: Error "hep001/bitmap-values-shape" ["April 2026" "8.6", "July 2026" "11.6"]
        "a bitmap has a row for each value" => "rebuild it (hepfs index build)";
    BITMAP_VALUES_TYPE: Error "hep001/bitmap-values-type" ["April 2026" "8.6", "July 2026" "11.6"]
        "values have the column's type" => "rebuild it (hepfs index build)";
    BITMAP_ACCOMPANYING: Error "hep001/bitmap-values-kind" ["July 2026" "11.1"]
        "accompanying datasets have no KIND" => "remove KIND from the values";
    BITMAP_DISTINCT: Error "hep001/bitmap-values-twice" ["April 2026" "8.6", "July 2026" "11.6"]
        "the values of a bitmap are distinct" => "rebuild it (hepfs index build)";
    BITMAP_EXHAUSTIVE: Error "hep001/bitmap-exhaustive" ["July 2026" "11.6"]
        "an exhaustive bitmap has every value of its column" => "rebuild it (hepfs index build)";
    BITMAP_BITS: Error "hep001/bitmap-bits" ["April 2026" "8.6", "July 2026" "11.6"]
        "a bit is set where, and only where, the row has the value" => "rebuild it (hepfs index build)";
    BLOOM_SHAPE: Error "hep001/bloom-shape" ["April 2026" "8.7", "July 2026" "11.7"]
        "CHUNK_BLOOM has a filter for each chunk" => "rebuild it (hepfs index build)";
    BLOOM_TYPE: Error "hep001/bloom-type" ["April 2026" "8.7", "July 2026" "11.7"]
        "CHUNK_BLOOM holds uint8" => "rebuild it (hepfs index build)";
    BLOOM_BITS: Error "hep001/bloom-m-bits" ["April 2026" "8.7", "July 2026" "11.7"]
        "m_bits is the number of bits of a filter" => "rebuild it (hepfs index build)";
    BLOOM_K: Error "hep001/bloom-k" ["April 2026" "8.7", "July 2026" "11.7"]
        "k is the number of hash functions" => "rebuild it (hepfs index build)";
    BLOOM_SEED: Error "hep001/bloom-seed" ["July 2026" "11.7"] "seed is a uint32" => "rebuild it (hepfs index build)";
    BLOOM_FAMILY: Error "hep001/bloom-hash-family" ["April 2026" "8.7", "July 2026" "11.7"]
        "hash_family is murmur3_128_double, or murmur3_x64_128_double since July" => "rebuild it (hepfs index build)";
    BLOOM_WIDTH: Error "hep001/bloom-width" ["April 2026" "8.7", "July 2026" "11.7"]
        "canonical bytes are as wide as the column" => "drop the index (hepfs index drop)";
    BLOOM_FILTER: Error "hep001/bloom-values" ["April 2026" "8.7", "July 2026" "11.7"]
        "the filter of a chunk holds every value of the chunk" => "rebuild it (hepfs index build)";
}
