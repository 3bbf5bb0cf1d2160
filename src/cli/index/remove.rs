//! `hepfs index drop SOURCE:table [--column NAME] [--kind KIND,…]`

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::{Opened, Wanted, lock};
use crate::catalogue::{Class, Object, attribute};
use crate::cli::Error;
use crate::cli::options::Reading;
use crate::dialects::hep001::write::commits::{Doomed, remove};
use crate::dialects::hep001::write::subject::{group_at, names};
use crate::dialects::hep001::write::{self as building, Kind, Revision};
use crate::fs::tree::printable;
use crate::source::Interrupt;

/// Take search indexes out of an HDF5 file
///
/// The file must be open nowhere else: the HDF5 lock is taken. The space that an index took stays in the file; `h5repack` gives it
/// back. Without --column and --kind every index of the table goes, those of unknown kinds too.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hepfs index drop run.h5:run_042 --column ts --kind sorted")]
pub(super) struct Arguments {
    /// An HDF5 file, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE:TABLE")]
    place: String,

    /// Only indexes of this column
    #[arg(long, value_name = "NAME")]
    column: Option<String>,

    /// Only indexes of these kinds
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<Wanted>,

    #[command(flatten)]
    reading: Reading,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let interrupt = Interrupt::new();
    let locked = lock(&arguments.place)?;
    let opened = Opened::new(&arguments.place, &arguments.reading, &interrupt)?;
    let kinds: Vec<Kind> = arguments.kind.iter().map(|kind| kind.kind()).collect();
    let found = found(&opened, arguments.column.as_deref(), &kinds, &interrupt)?;
    if found.is_empty() {
        return Err(Error::Usage(format!("{}: no such search index", arguments.place)));
    }
    let (table, workers) = (opened.table.clone(), opened.place.context.workers.clone());
    drop(opened);
    let mut writing = locked.writer(&workers, &interrupt).map_err(building::Error::from)?;
    for doomed in found {
        let revision = if doomed.group.ends_with("/SEARCH_INDEXES") { Revision::July } else { Revision::April };
        remove(&mut writing, &table.path, &names(&table, revision), &doomed, &interrupt)?;
        let line = format!("{}/{}  dropped", printable(&doomed.group), printable(&doomed.name.to_string()));
        writeln!(std::io::stdout(), "{line}").map_err(Error::io("standard output"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The search indexes of a table that are of this column, or any, and of these kinds, or any.
pub(super) fn found(
    opened: &Opened,
    column: Option<&str>,
    kinds: &[Kind],
    interrupt: &Interrupt,
) -> Result<Vec<Doomed>, Error> {
    let mut found = Vec::new();
    for index in &opened.table.indexes {
        let is_of_kind = kinds.is_empty() || kinds.iter().any(|kind| index.kind.as_deref() == Some(kind.name()));
        if !is_of_kind || column.is_some_and(|column| !index.columns.iter().any(|name| name == column)) {
            continue;
        }
        let Some((path, _)) = index.path.rsplit_once('/') else { continue };
        let group = group_at(&opened.file, path, interrupt)?;
        let name = |id| group.links.iter().find(|link| link.target.object().is_some_and(|object| object.id() == id));
        let dataset = group.links.iter().find(|link| crate::catalogue::join(path, &link.name) == index.path);
        let Some((link, Object::Dataset(dataset))) = dataset.and_then(|link| Some((link, link.target.object()?)))
        else {
            continue;
        };
        let values = ["VALUES", "_values"].iter().find_map(|name| attribute(&dataset.attributes, name));
        let values = values.filter(|values| matches!(values.datatype.class, Class::Reference(_)));
        let values = values.and_then(|values| values.references.first().copied().flatten()).and_then(name);
        found.push(Doomed {
            group: path.to_owned(),
            name: link.name.clone(),
            values: values.map(|link| link.name.clone()),
            columns: index.columns.clone(),
        });
    }
    Ok(found)
}
