//! The rules of openPMD.

crate::table::rules! {
    PARTICLES: Error "openpmd/particles" []
        "openPMD: the components of the records of a species have a value for each particle" => "write as many values";
    UNIT: Warning "openpmd/unit" []
        "openPMD: a component times its unitSI is in SI units" => "multiply the values by unitSI";
}
