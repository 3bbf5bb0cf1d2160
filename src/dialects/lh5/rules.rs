//! The rules of LH5.

crate::table::rules! {
    HISTOGRAM: Error "lh5/histogram" []
        "LH5: a histogram has an axis for each dimension of its weights" => "rewrite the histogram";
    MEMBERS: Error "lh5/table-members" []
        "LH5: the datatype of a table lists existing members" => "write the member, or remove it from datatype";
    MEMBERS_LACK: Warning "lh5/table-lacks" []
        "LH5: the datatype of a table lists all members" => "add the member to datatype";
    LENGTHS: Error "lh5/column-length" [] "LH5: the columns of a table are of one length" => "write as many values";
    COLUMN: Error "lh5/column" []
        "LH5: a column is an array, lists, a table or encoded waveforms" => "write the column in one of these types";
    DATATYPE: Warning "lh5/datatype" [] "LH5: a column matches its datatype" => "correct the attribute datatype";
}
