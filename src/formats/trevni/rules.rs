//! The rules of Trevni and Avro.

crate::table::rules! {
    SCHEMA: Warning "trevni/avro-schema" [] "Avro: the columns are those of the file's schema" => "write the file anew";
    LENGTH: Error "trevni/column-length" [] "Trevni: each column has the rows of the header" => "write the file anew";
    COLUMN: Error "trevni/column" [] "Trevni: a column can be read" => "write the file anew";
    OVERLAP: Error "trevni/overlap" [] "Trevni: columns have no bytes in common" => "write the file anew";
    CHECKSUM: Note "trevni/checksum" [] "Trevni: the checksum of a block is that of its bytes" => "";
}
