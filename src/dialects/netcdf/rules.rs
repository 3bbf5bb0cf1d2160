//! The rules of netCDF-4 and CF.

/// Name of the dialect, for `metadata.json`.
pub const DIALECT: &str = "netCDF-4";

crate::table::rules! {
    LENGTH: Warning "netcdf/length" []
        "netCDF-4: variables on a dimension have its length" => "write the values that are missing";
    VALUES: Warning "netcdf/values" [] "CF: attributes that interpret values are valid" => "correct the attributes";
    DIMENSIONS: Error "netcdf/dimension-list" []
        "netCDF-4: DIMENSION_LIST refers to a dimension scale for each axis" => "attach a dimension scale to each axis";
    COLUMNS: Warning "netcdf/columns" []
        "hepfs: a table has at most 131,072 columns"
        => "read the variables by themselves: they have files of their own";
    COORDINATES: Warning "netcdf/coordinates" [] "hepfs: coordinates of a grid are numbers, times or up to 65,536 texts"
        => "read the variable by itself: it has files of its own";
    FLAGS: Error "netcdf/flag-meanings" []
        "CF §3.5: flag_meanings has a word for each of flag_values, which are integers of its type, each once"
        => "write as many words as values";
    SCALE: Error "netcdf/scale-factor" []
        "CF §8.1: scale_factor and add_offset are one number each" => "write them as numbers";
    SCALE_ZERO: Error "netcdf/scale-zero" [] "CF §8.1: scale_factor is a number other than 0" => "write the factor";
    OFFSET: Error "netcdf/add-offset" [] "CF §8.1: add_offset is a number" => "write a number";
    MISSING: Error "netcdf/missing-value" []
        "CF §2.5.1: _FillValue and missing_value are values of the variable's type"
        => "write them in the type of the variable";
    VALID: Error "netcdf/valid-range" []
        "CF §2.5.1: valid_min, valid_max and the two of valid_range are numbers, the lesser one first"
        => "write them in the type of the variable";
    VALID_TWICE: Error "netcdf/valid-range-twice" []
        "CF §2.5.1: valid_range is not used beside valid_min or valid_max" => "write one or the other";
    VALID_FILL: Warning "netcdf/valid-range-fill" []
        "CF §2.5.1: _FillValue lies outside of the valid range" => "choose a fill value outside of it";
    VALID_EXCEEDED: Warning "netcdf/valid-range-exceeded" []
        "CF §2.5.1: values lie within the valid range" => "write a wider range, or correct the values";
    RAGGED: Note "netcdf/ragged" []
        "CF §9.3: sample_dimension and instance_dimension assign elements to features"
        => "use the counts or numbers beside the elements: hepfs shows both as stored";
    ENCODING: Warning "netcdf/encoding" [] "netCDF: characters are UTF-8" => "write characters in UTF-8";
    TIMES: Note "netcdf/time-units" []
        "CF §4.4: times are counted in units of constant length, in the calendar of ISO 8601"
        => "count days or shorter units of the standard calendar";
}
