//! The rules of Loom.

crate::table::rules! {
    LENGTH: Error "loom/attribute-length" []
        "Loom: attributes are as long as the axis of the matrix that they are about" => "write as many values";
}
