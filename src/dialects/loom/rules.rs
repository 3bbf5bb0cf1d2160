//! The rules of Loom.

crate::table::rules! {
    LENGTH: Error "loom/attribute-length" []
        "Loom: attributes are as long as their axis of the matrix" => "write as many values";
}
