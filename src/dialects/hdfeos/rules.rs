//! The rules of HDF-EOS5.

crate::table::rules! {
    STRUCTURE: Error "hdfeos/structure" []
        "HDF-EOS5: StructMetadata lists the fields of a swath and the dimensions of each"
        => "write the file with the HDF-EOS5 library";
    FIELD: Error "hdfeos/field" []
        "HDF-EOS5: the fields that StructMetadata lists are in the swath, each once" => "write the field";
    LENGTHS: Error "hdfeos/field-length" []
        "HDF-EOS5: the fields on a dimension are of one length" => "write as many values";
}
