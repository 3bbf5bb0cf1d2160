//! The rules of Trevni and Avro.

crate::table::rules! {
    SCHEMA: Warning "trevni/avro-schema" [] "Avro: the columns are those of the file's schema" => "rewrite the file";
    LENGTH: Error "trevni/column-length" [] "Trevni: each column has the rows of the header" => "rewrite the file";
    COLUMN: Error "trevni/column" [] "Trevni: a column can be read" => "rewrite the file";
    OVERLAP: Error "trevni/overlap" [] "Trevni: columns do not overlap" => "rewrite the file";
    CHECKSUM: Note "trevni/checksum" [] "Trevni: the checksum of a block is that of its bytes" => "";
}
