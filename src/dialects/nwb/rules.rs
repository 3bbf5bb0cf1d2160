//! The rules of NWB and HDMF.

crate::table::rules! {
    TIMES: Error "nwb/timestamps" [] "NWB: each sample has a time stamp" => "write a time stamp for each sample";
    READABLE: Error "nwb/column" [] "NWB: columns can be read" => "rewrite the column";
    UNITS: Error "nwb/conversion" []
        "NWB: data · conversion · channel_conversion + offset are in units"
        => "write conversions as numbers, one for each channel";
    ENDS: Error "nwb/vector-index" []
        "HDMF: a VectorIndex has the end of each list, in order, and the last is that of its target"
        => "rewrite the VectorIndex";
    LENGTHS: Error "nwb/column-length" [] "HDMF: columns are as long as id" => "write as many values";
    NAMES_TWICE: Error "nwb/colnames-twice" []
        "HDMF: colnames lists each column once, and not id" => "remove the name";
    NAMES_GONE: Error "nwb/colnames-missing" []
        "HDMF: colnames names datasets of the group" => "write the dataset, or remove the name";
    ID: Error "nwb/id" [] "HDMF: the dataset id labels the rows of a table" => "write id";
    NAMES: Error "nwb/colnames" [] "HDMF: colnames lists the columns" => "write colnames";
    NAMES_LACK: Warning "nwb/colnames-lacks" [] "HDMF: colnames lists every column" => "add the column to colnames";
    ALIGNED: Error "nwb/categories" []
        "HDMF: categories lists tables in the group, each once" => "write the table, or remove its name";
    ENUM: Error "nwb/enum-elements" []
        "HDMF: the elements of EnumData are the labels of its codes" => "refer to the labels";
    REGION: Error "nwb/region-table" []
        "HDMF: the attribute table of a DynamicTableRegion refers to a table" => "refer to the table";
}
