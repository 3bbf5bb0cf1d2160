//! Rules for all files, whatever the dialect.

crate::table::rules! {
    CHUNK_INDEX: Error "file/chunk-index" []
        "a chunk index lists each chunk once, where it lies in the file"
        => "restore the file from a copy, or repack it (h5repack)";
    UNFINISHED: Error "file/unfinished-change" []
        "a change of the file is complete and leaves no journal" => "run hepfs index drop, or the command that ended";
    LINKS: Error "file/links" [] "each link of a group can be listed, and has a name of its own"
        => "restore the file from a copy";
    BESIDE: Error "file/beside" [] "its members are shown at the root" => "restore the file from a copy";
    NAME_TWICE: Warning "file/name-twice" []
        "members of two groups that are shown in one directory have different names" => "rename one of them";
    LINK_CHAIN: Warning "file/link-chain" []
        "a path leads through at most 16 soft and external links, the limit of the HDF5 library (H5Pset_nlinks)"
        => "link to the object itself; a circle of links has no target";
    SCHEMA: Warning "file/dataset-schema" []
        "the files of a dataset have the same columns and types; other columns are missing, cast or left out"
        => "write the columns in the types of the other files";
}
