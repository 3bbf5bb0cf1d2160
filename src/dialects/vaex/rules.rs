//! The rules of vaex.

crate::table::rules! {
    COLUMNS: Error "vaex/column" [] "vaex: a table has columns" => "rewrite the column";
    MASK: Error "vaex/mask" [] "vaex: a mask has an element for each value of its column" => "rewrite the column";
    LENGTH: Error "vaex/column-length" []
        "vaex: a column has data, of one length with the others" => "write as many values";
}
