//! Makes texts safe to print: names in a hostile file may contain anything.

/// Escapes characters that a terminal acts on, that reorder surrounding text, or that break a line.
pub fn printable(text: &str) -> String {
    escaped(text, is_unseen, |character, out| out.extend(character.escape_default()))
}

/// Escapes in JSON, in JSON's own form, the characters that [`printable`] escapes, except line feeds. The others occur
/// within strings only.
pub fn printable_json(json: &str) -> String {
    let is_escaped = |character| character != '\n' && is_unseen(character);
    // All escaped characters lie within the basic plane.
    escaped(json, is_escaped, |character, out| out.push_str(&format!("\\u{:04x}", u32::from(character))))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool, escape: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_escaped(character) { escape(character, &mut out) } else { out.push(character) }
    }
    out
}

/// Whether a character is invisible, but acts on a terminal, or affects the order or lines of surrounding text:
/// controls, the marks, embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX #9), and its
/// separators.
fn is_unseen(character: char) -> bool {
    let reorders = matches!(
        character,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    );
    reorders || character.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reorders_or_breaks_a_line_is_escaped() {
        assert_eq!(printable("a\u{202E}gpj.exe\n\u{2028}é ش"), "a\\u{202e}gpj.exe\\n\\u{2028}é ش");
        let value = serde_json::json!({ "a\u{202E}\u{85}": "x\n\u{2066}" });
        let shown = printable_json(&format!("{value}\n"));
        assert_eq!(shown, concat!(r#"{"a\u202e\u0085":"x\n\u2066"}"#, "\n"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
