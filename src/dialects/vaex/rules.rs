//! The rules of vaex.

crate::table::rules! {
    COLUMNS: Error "vaex/column" [] "vaex: a table has columns" => "write the column anew";
    MASK: Error "vaex/mask" [] "vaex: a mask tells of each value of its column" => "write the column anew";
    LENGTH: Error "vaex/column-length" []
        "vaex: a column has data, of one length with the others" => "write as many values";
}
