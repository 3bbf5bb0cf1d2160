//! The rules of pandas.

crate::table::rules! {
    FIXED: Error "pandas/fixed" []
        "pandas: axes and blocks of the format fixed are complete and of one length" => "write the frame anew";
    ATTRIBUTES: Error "pandas/attributes" []
        "pandas: its attributes tell names, order and labels of columns" => "write the frame anew";
    TABLE: Error "pandas/table" []
        "pandas: a group of the format table has a dataset of compounds called table" => "write the frame anew";
    ENCODING: Warning "pandas/encoding" [] "pandas: encoding tells how texts are encoded" => "write texts in UTF-8";
    CATEGORIES: Error "pandas/categories" [] "pandas: the categories of a field are in meta" => "write the frame anew";
}
