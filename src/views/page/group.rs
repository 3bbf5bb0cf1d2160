//! The page of a group, or of a source.

use std::sync::{Arc, OnceLock};

use super::html::Html;
use super::members::{Found, Members};
use super::{PagePlace, about, snippets, source_name};
use crate::activity::words::bytes;
use crate::catalogue::Attribute;

/// The page of a group, or of a source. Its size follows from the listing alone.
#[derive(Debug)]
pub struct GroupPage {
    place: PagePlace,
    members: Members,
    attributes: Arc<[Attribute]>,
    size: OnceLock<u64>,
}

impl GroupPage {
    /// The page of a group with these members and attributes.
    pub fn new(place: PagePlace, members: Members, attributes: Arc<[Attribute]>) -> Self {
        Self { place, members, attributes, size: OnceLock::new() }
    }

    /// The members of the group.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        *self.size.get_or_init(|| self.written(None).size() as u64)
    }

    /// The page, exactly as long as [`GroupPage::size`] says, with the facts of its members.
    pub fn render(&self, found: &Found) -> Vec<u8> {
        self.written(Some(found)).padded()
    }

    fn written(&self, found: Option<&Found>) -> Html {
        let (place, members) = (&self.place, &self.members);
        let mut out = Html::default();
        let source = source_name(&place.source);
        let title = if place.name == source { source.clone() } else { format!("{} – {source}", place.name) };
        out.begin(&title, members.has_images());
        place.navigation(&mut out, |out| {
            members.jumps(found, out);
            out.raw("<a href=\"#read\">Read it</a>");
        });
        place.heading(&mut out);
        out.raw("<p class=sub>");
        members.counts(found, &mut out);
        if let Some(size) = place.bytes {
            out.raw("\u{a0}· ").raw(&bytes(size));
        }
        place.changed(&mut out);
        out.raw("</p>\n");
        about::described(&self.attributes, &mut out);
        if let Some(link) = &place.findings {
            out.raw("<p class=ok><a href=\"").link(link.as_bytes()).raw("\">Findings of the mount</a></p>\n");
        }
        members.write(found, "", &mut out);
        out.raw("<h2 id=read>Read it</h2>\n");
        snippets::tabs(&snippets::of_group(place), &mut out);
        place.list_files(&mut out);
        about::attributes(&self.attributes, &mut out);
        out.end(&source);
        out
    }
}
