//! Reads the swaths in `StructMetadata`: text in the Object Description Language, with a line for each value.
//!
//! ```text
//! GROUP=SwathStructure
//!     GROUP=SWATH_1
//!         SwathName="O3"
//!         GROUP=GeoField
//!             OBJECT=GeoField_1
//!                 GeoFieldName="Latitude"
//!                 DimList=("nTimes")
//!             END_OBJECT=GeoField_1
//! ```

/// A swath, as `StructMetadata` describes it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Swath {
    /// Name of the swath.
    pub name: String,
    /// Fields of the swath, in the order of the text.
    pub fields: Vec<SwathField>,
}

/// A field of a swath.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SwathField {
    /// Name of the field.
    pub name: String,
    /// Whether the field states places or times of the measurements.
    pub is_geolocation: bool,
    /// Names of the field's dimensions, slowest first.
    pub dimensions: Vec<String>,
}

/// Parses the swaths in a text, in its order; skips everything else. Time and memory are proportional to the text.
pub(super) fn swaths(text: &str) -> Vec<Swath> {
    let mut swaths = Vec::<Swath>::new();
    let (mut is_swath, mut is_field) = (false, false);
    for line in text.lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        // Profiles and maps between dimensions are objects as well.
        is_field &= key != "OBJECT";
        match key {
            // Grids, points and zonal averages name their fields in the same way.
            "GROUP" if value.ends_with("Structure") => is_swath = value == "SwathStructure",
            "SwathName" if is_swath => {
                is_field = false;
                swaths.push(Swath { name: unquoted(value), fields: Vec::new() });
            }
            "GeoFieldName" | "DataFieldName" if is_swath => {
                let is_geolocation = key == "GeoFieldName";
                if let Some(swath) = swaths.last_mut() {
                    is_field = true;
                    swath.fields.push(SwathField { name: unquoted(value), is_geolocation, dimensions: Vec::new() });
                }
            }
            "DimList" if is_swath && is_field => {
                if let Some(field) = swaths.last_mut().and_then(|swath| swath.fields.last_mut()) {
                    let names = value.trim_start_matches('(').trim_end_matches(')').split(',');
                    field.dimensions = names.map(unquoted).filter(|name| !name.is_empty()).collect();
                }
            }
            _ => {}
        }
    }
    swaths
}

fn unquoted(value: &str) -> String {
    value.trim().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the HDF-EOS5 library writes it.
    const TEXT: &str = "GROUP=SwathStructure\n\tGROUP=SWATH_1\n\t\tSwathName=\"O3\"\n\t\tGROUP=Dimension\n\
        \t\t\tOBJECT=Dimension_1\n\t\t\t\tDimensionName=\"nTimes\"\n\t\t\t\tSize=3495\n\t\t\tEND_OBJECT=Dimension_1\n\
        \t\tEND_GROUP=Dimension\n\t\tGROUP=GeoField\n\t\t\tOBJECT=GeoField_1\n\t\t\t\tGeoFieldName=\"Latitude\"\n\
        \t\t\t\tDataType=H5T_NATIVE_FLOAT\n\t\t\t\tDimList=(\"nTimes\")\n\t\t\t\tMaxdimList=(\"Unlim\")\n\
        \t\t\tEND_OBJECT=GeoField_1\n\t\tEND_GROUP=GeoField\n\t\tGROUP=DataField\n\t\t\tOBJECT=DataField_1\n\
        \t\t\t\tDataFieldName=\"O3\"\n\t\t\t\tDimList=(\"nTimes\",\"nLevels\")\n\t\t\tEND_OBJECT=DataField_1\n\
        \t\tEND_GROUP=DataField\n\t\tGROUP=ProfileField\n\t\t\tOBJECT=ProfileField_1\n\
        \t\t\t\tProfileFieldName=\"p\"\n\t\t\t\tDimList=(\"nLevels\")\n\t\t\tEND_OBJECT=ProfileField_1\n\
        \t\tEND_GROUP=ProfileField\n\tEND_GROUP=SWATH_1\nEND_GROUP=SwathStructure\nGROUP=GridStructure\n\
        \tGROUP=GRID_1\n\t\tGridName=\"g\"\n\t\tGROUP=DataField\n\t\t\t\tDataFieldName=\"x\"\n\
        \t\t\t\tDimList=(\"YDim\",\"XDim\")\nEND\n";

    fn field(name: &str, is_geolocation: bool, dimensions: &[&str]) -> SwathField {
        let dimensions = dimensions.iter().map(|name| (*name).to_owned()).collect();
        SwathField { name: name.into(), is_geolocation, dimensions }
    }

    #[test]
    fn fields_of_swaths_have_the_names_of_their_dimensions() {
        let fields = vec![field("Latitude", true, &["nTimes"]), field("O3", false, &["nTimes", "nLevels"])];
        assert_eq!(swaths(TEXT), [Swath { name: "O3".into(), fields }]);
    }

    #[test]
    fn what_stands_outside_of_swaths_is_passed_over() {
        let text = "DimList=(\"a\")\nGeoFieldName=\"x\"\nSwathName=\"no\"\nGROUP=SwathStructure\nDimList=()\n\
                    GeoFieldName=\"lost\"\nSwathName=s\nDimList=(\"b\")\nDataFieldName = f\nDimList = ( \"a\", , b )\n";
        let fields = vec![field("f", false, &["a", "b"])];
        assert_eq!(swaths(text), [Swath { name: "s".into(), fields }]);
        assert_eq!(swaths(""), []);
    }

    proptest! {
        #[test]
        fn any_text_is_read(lines in proptest::collection::vec(
            "(GROUP|SwathName|GeoFieldName|DimList|OBJECT)?=?(SwathStructure|\\(\"a\",\"b\"\\)|\\PC{0,8})\r?", 0..40,
        )) {
            let text = lines.join("\n");
            let told: usize = swaths(&text).iter().map(|swath| 1 + swath.fields.len()).sum();
            prop_assert!(told <= lines.len());
        }
    }
}
