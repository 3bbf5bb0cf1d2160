//! The rules of pandas.

crate::table::rules! {
    FIXED: Error "pandas/fixed" []
        "pandas: axes and blocks of the format fixed are complete and of one length" => "rewrite the frame";
    ATTRIBUTES: Error "pandas/attributes" []
        "pandas: attributes of a frame have the names, order and labels of its columns" => "rewrite the frame";
    TABLE: Error "pandas/table" []
        "pandas: a group of the format table has a dataset of compounds called table" => "rewrite the frame";
    ENCODING: Warning "pandas/encoding" [] "pandas: encoding names a known encoding of text" => "write texts in UTF-8";
    CATEGORIES: Error "pandas/categories" [] "pandas: the categories of a field are in meta" => "rewrite the frame";
}
