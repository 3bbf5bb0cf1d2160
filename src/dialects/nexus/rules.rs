//! The rules of NeXus.

crate::table::rules! {
    LENGTH: Error "nexus/column-length" []
        "NeXus: the fields of a group that is a table are of one length" => "write as many values";
}
