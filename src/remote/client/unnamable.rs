//! Keys that no path can name: with an empty part, `.`, `..` or a control character.
//!
//! `object_store` refuses a whole page of a list for one of them. So their entries are taken out of the page before it
//! sees them, and the neighbours stay.

use bstr::ByteSlice;

/// The tags of an entry and of its key: in lists of S3 and Google
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>), and of Azure
/// (<https://learn.microsoft.com/rest/api/storageservices/list-blobs>).
const ENTRIES: [[&str; 4]; 4] = [
    ["<Contents>", "</Contents>", "<Key>", "</Key>"],
    ["<CommonPrefixes>", "</CommonPrefixes>", "<Prefix>", "</Prefix>"],
    ["<Blob>", "</Blob>", "<Name>", "</Name>"],
    ["<BlobPrefix>", "</BlobPrefix>", "<Name>", "</Name>"],
];

/// Whether no path can name a key, or a prefix that ends with `/`.
pub(super) fn is_unnamable(key: &str) -> bool {
    let mut parts = key.strip_suffix('/').unwrap_or(key).split('/');
    !key.is_empty() && parts.any(|part| matches!(part, "" | "." | "..") || part.contains(char::is_control))
}

/// Takes the entries of such keys out of a page of a list. Returns the page without them, and these keys.
pub(super) fn take_out(page: &[u8]) -> (Vec<u8>, Vec<String>) {
    let (mut rest, mut named, mut unnamable) = (page, Vec::with_capacity(page.len()), Vec::new());
    while let Some((before, tag)) = rest.find_byte(b'<').map(|at| rest.split_at(at)) {
        named.extend_from_slice(before);
        let tags = ENTRIES.iter().find(|[begin, ..]| tag.starts_with_str(begin));
        let taken = match tags {
            None => 1,
            // Without its end, the page is nonsense.
            Some([_, end, ..]) => tag.find(end).map_or(tag.len(), |at| at + end.len()),
        };
        let (entry, behind) = tag.split_at(taken);
        let whole = tags.filter(|[_, end, ..]| entry.ends_with_str(end));
        match whole.and_then(|[.., begin, end]| text_between(entry, begin, end)).filter(|key| is_unnamable(key)) {
            Some(key) => unnamable.push(key),
            None => named.extend_from_slice(entry),
        }
        rest = behind;
    }
    named.extend_from_slice(rest);
    (named, unnamable)
}

/// The text of the first element with these tags.
fn text_between(entry: &[u8], begin: &str, end: &str) -> Option<String> {
    let (text, _) = entry.split_once_str(begin)?.1.split_once_str(end)?;
    let text = text.to_str_lossy();
    let mut parts = text.split('&');
    let mut unescaped = parts.next()?.to_owned();
    for part in parts {
        let (entity, behind) = part.split_once(';')?;
        unescaped.push(match entity {
            "amp" => '&',
            "apos" => '\'',
            "gt" => '>',
            "lt" => '<',
            "quot" => '"',
            number => {
                let number = number.strip_prefix('#')?;
                let hexadecimal = number.strip_prefix('x').map(|digits| u32::from_str_radix(digits, 16));
                char::from_u32(hexadecimal.unwrap_or_else(|| number.parse()).ok()?)?
            }
        });
        unescaped.push_str(behind);
    }
    Some(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_entries_of_unnamable_keys_go() {
        let object = |key: &str| format!("<Contents><Key>{key}</Key><Size>3</Size></Contents>");
        let folder = |key: &str| format!("<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>");
        let blob = |key: &str| format!("<Blob><Name>{key}</Name><Properties /></Blob>");
        let (head, tail) = ("<?xml?><ListBucketResult><Prefix>a//</Prefix><Blobs>", "</Blobs></ListBucketResult>");
        let stay = [object("a/b.h5"), folder("a/c/"), object("a/x &amp; &lt;y&gt;.h5"), blob("a/...h5")];
        let go = [
            (object("a/&#x0;.h5"), "a/\0.h5"),
            (object("a/&#10;.h5"), "a/\n.h5"),
            (object("a/\u{1}.h5"), "a/\u{1}.h5"),
            (object("a/.."), "a/.."),
            (folder("a//"), "a//"),
            (folder("/"), "/"),
            (folder("a/./"), "a/./"),
            (blob("a//b.h5"), "a//b.h5"),
            ("<BlobPrefix><Name>a/../</Name></BlobPrefix>".to_owned(), "a/../"),
        ];
        let mixed: String = stay.iter().chain(go.iter().map(|(entry, _)| entry)).cloned().collect();
        let (page, keys) = take_out(format!("{head}{mixed}{tail}").as_bytes());
        assert_eq!(page.as_bstr(), format!("{head}{}{tail}", stay.concat()));
        assert_eq!(keys, go.map(|(_, key)| key));
        // Nonsense stays for the parser to refuse.
        for nonsense in ["", "<", "a<Contents><Key>..</Key>", "<Contents><Key>&x;..</Key></Contents>", "<Blob></Blob>"]
        {
            assert_eq!(take_out(nonsense.as_bytes()), (nonsense.into(), vec![]), "{nonsense}");
        }
    }
}
