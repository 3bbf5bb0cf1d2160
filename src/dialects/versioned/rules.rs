//! The rules of Versioned HDF5.

crate::table::rules! {
    LISTED: Error "versioned/listing" [] "Versioned HDF5: a file lists its versions" => "restore the file from a copy";
    GROUP: Error "versioned/version-group" [] "Versioned HDF5: a version is a group" => "remove it";
    COMMITTED: Error "versioned/version-committed" [] "Versioned HDF5: a version is committed" => "delete the version";
    TIMESTAMP: Error "versioned/timestamp" [] "Versioned HDF5: timestamp is a date and a time" => "write the timestamp";
    PREVIOUS: Error "versioned/prev-version" []
        "Versioned HDF5: prev_version names a version" => "write the name of the previous version";
    FIRST: Error "versioned/first-version" []
        "Versioned HDF5: the chain of prev_version ends at a first version" => "write the name of the previous version";
    CURRENT: Error "versioned/current-version" []
        "Versioned HDF5: current_version names a committed version" => "write the name of a version";
    DATA_VERSION: Warning "versioned/data-version" []
        "Versioned HDF5: data_version is 4" => "rebuild the file with a newer versioned-hdf5";
    RAW_DATA: Error "versioned/raw-data" []
        "Versioned HDF5: a dataset in a version maps its raw_data" => "rebuild the version";
    MAPPING: Error "versioned/mapping" []
        "Versioned HDF5: each mapping of a dataset takes a chunk of its raw_data" => "rebuild the version";
    HASH: Error "versioned/hash" []
        "Versioned HDF5: hash_table has the SHA-256 of each chunk of raw_data" => "restore the file from a copy";
}
