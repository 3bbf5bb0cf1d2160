//! Names that the drafts of HEP001 define for groups, attributes and members.
//!
//! Where a draft renamed something, the newer spelling comes first: capitals since May, underscores in April.

/// The first draft's name in rules.
pub const APRIL: &str = "April 2026";
/// The July draft's name in rules.
pub const JULY: &str = "July 2026";

/// Name of the dialect, for `metadata.json`.
pub const DIALECT: &str = "HEP001";
/// `CLASS` of a table group.
pub const TABLE_CLASS: &str = "COLUMN_TABLE";
/// `CLASS` of a list column.
pub const LIST_CLASS: &str = "LIST_COLUMN";
/// `CLASS` of a group of strings below a list column.
pub const STRINGS_CLASS: &str = "STRING_VALUES";

/// Name of the group of a table's search indexes.
pub const SEARCH_INDEX_GROUPS: [&str; 2] = ["SEARCH_INDEXES", "_search_indexes"];
/// Name of the group of a table's label sets since May; in April, label sets lie beside the columns.
pub const CATEGORIES_GROUP: &str = "CATEGORIES";

/// Attribute of a column that refers to its label set.
pub const CATEGORIES: [&str; 2] = ["CATEGORIES", "_categories"];
/// Attribute of a column that refers to the datasets that label its rows.
pub const INDEX_LIST: [&str; 2] = ["INDEX_LIST", "_indexes"];
/// Attribute of an index dataset, or of a search index, that refers to its columns.
pub const COLUMN_LIST: [&str; 2] = ["COLUMN_LIST", "_columns_list"];
/// Attribute of a column that refers to its search indexes.
pub const SEARCH_INDEX_LIST: [&str; 2] = ["SEARCH_INDEX_LIST", "_search_indexes"];
/// Attribute of a bitmap that refers to its values.
pub const VALUES: [&str; 2] = ["VALUES", "_values"];

/// Attribute of a table that names its columns in logical order.
pub const COLUMN_ORDER: &str = "column-order";
/// Attribute of a table that states its number of rows (July).
pub const ROWS: &str = "NROWS";
/// Attribute of a table with a counter that each change of its rows increases (July).
pub const GENERATION: &str = "GENERATION";
/// Attribute of a table that refers to the columns that label rows, outermost first (July).
pub const INDEX_COLUMNS: &str = "INDEX_COLUMNS";
/// Attribute of a table that names the column that labels rows.
pub const INDEX: &str = "_index";
/// Attribute of a search index with the `GENERATION` of the rows that it covers (July).
pub const SOURCE_GENERATION: &str = "SOURCE_GENERATION";
/// Attribute of a search index with the `NROWS` of the table that it covers (July).
pub const SOURCE_ROWS: &str = "SOURCE_NROWS";

/// Attribute of a column, an addition of hepfs, that names an Arrow type that HDF5's type does not imply.
pub const ARROW_TYPE: &str = "arrow_type";

/// The name that April forbids for columns (HEP001 §6.1).
pub const RESERVED_IN_APRIL: &str = "_search_indexes";
/// Names that July forbids for columns and search indexes (§14.2).
pub const RESERVED: [&str; 19] = [
    CATEGORIES_GROUP,
    SEARCH_INDEX_GROUPS[0],
    "OFFSETS",
    "VALUES",
    "MASK",
    "CHARS",
    "CLASS",
    "VERSION",
    ROWS,
    "TITLE",
    INDEX_COLUMNS,
    GENERATION,
    SEARCH_INDEX_LIST[0],
    VALID[0],
    VALID[1],
    "KIND",
    SOURCE_GENERATION,
    SOURCE_ROWS,
    RESERVED_IN_APRIL,
];

/// Attributes of a column that bound its values (July).
pub const VALID: [&str; 2] = ["valid_min", "valid_max"];

/// Descriptive attributes of a table and its columns, all scalar texts.
pub const TEXTS: [&str; 7] =
    ["TITLE", "description", INDEX, "units", "units_vocabulary", "encoding-type", "encoding-version"];

/// Names of attributes and members as only April spells them.
pub const APRIL_NAMES: [&str; 4] = ["_indexes", "_columns_list", "_categories", "_search_indexes"];

/// Fields of an entry of `CHUNK_MINMAX` (HEP001 §8.4): two values of the column, three counts.
pub const ENTRY: [&str; 5] = ["min", "max", "nan_count", "fill_count", "n"];

/// Every attribute that this dialect reads.
pub const ATTRIBUTES: [&str; 43] = [
    "CLASS",
    "VERSION",
    "KIND",
    CATEGORIES[0],
    CATEGORIES[1],
    INDEX_LIST[0],
    INDEX_LIST[1],
    COLUMN_LIST[0],
    COLUMN_LIST[1],
    SEARCH_INDEX_LIST[0],
    SEARCH_INDEX_LIST[1],
    VALUES[0],
    VALUES[1],
    COLUMN_ORDER,
    ROWS,
    GENERATION,
    INDEX_COLUMNS,
    INDEX,
    SOURCE_GENERATION,
    SOURCE_ROWS,
    "TITLE",
    VALID[0],
    VALID[1],
    "encoding-type",
    "encoding-version",
    "ordered",
    "exhaustive",
    "MASK",
    "units",
    "units_vocabulary",
    "calendar",
    "description",
    "chunk_shape",
    "m_bits",
    "k",
    "hash_family",
    "seed",
    "fill_tail_length",
    "nan_tail_length",
    "scale_factor",
    "add_offset",
    "current_version",
    ARROW_TYPE,
];
