//! `hepfs info --html SOURCE[:path] -o page.html`.

use std::io::Write;
use std::path::PathBuf;

use bstr::ByteSlice;
use clap::Args;

use crate::cli::Error;
use crate::cli::place::Place;
use crate::cli::progress::Out;
use crate::cli::rows::Output;
use crate::session;
use crate::session::pages::PageAt;
use crate::source::Interrupt;
use crate::views::page::{Html, source_name};

/// Options of a page.
#[derive(Debug, Args)]
pub(super) struct PageOptions {
    /// Write the page of the table, group or file to look at in a browser: one file without a script, as `index.html`
    /// in a mount
    #[arg(long, conflicts_with = "json")]
    pub html: bool,

    /// The file to write the page to, instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "html")]
    output: Option<PathBuf>,
}

/// Writes the page of a place.
///
/// # Errors
/// If the place has no page, or the page cannot be written.
pub(super) fn write(place: &Place, options: &PageOptions, interrupt: &Interrupt) -> Result<(), Error> {
    let output = options.output.as_deref().map(Output::new).transpose()?;
    let page = page_of(place, interrupt).map_err(|error| match error {
        session::Error::NotFound => Error::Usage(format!("{}: only tables, groups and files have a page", place.name)),
        error => place.failed(error),
    })?;
    match output {
        Some(output) => output.write(|file| file.write_all(&page).map_err(Error::io("output"))).map(|_| ()),
        None => Out::new().write_all(&page).map_err(Error::io("standard output")),
    }
}

fn page_of(place: &Place, interrupt: &Interrupt) -> Result<Vec<u8>, session::Error> {
    let path = place.in_file();
    let source = source_name(&place.spot.source().ok_or(session::Error::NotFound)?);
    let mut above: Vec<String> = std::iter::once(source).collect();
    above.extend(path.split_str("/").filter(|name| !name.is_empty()).map(|name| name.to_str_lossy().into_owned()));
    // The last one is the page itself.
    above.pop();
    let above = above.into_iter().map(|name| (name, None)).collect();
    let page = place.spot.page(PageAt { path: path.into(), above, ..PageAt::default() }, interrupt)?;
    let mut page = page.render(&place.spot, true, interrupt)?;
    // Only in a mount a size is said beforehand.
    Html::trim(&mut page);
    Ok(page)
}
