//! Sanitises untrusted text for terminals. Names in recordings, plans, machine files, other hosts' answers and
//! `/proc` may contain any characters; control characters must not reach the terminal.

use std::fmt::Write;

/// True for control characters of terminals, and for characters that change the direction of writing, which can
/// disguise a line.
fn speaks(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text of one or several lines.
pub fn text(text: &str) -> String {
    text.chars().map(|letter| if speaks(letter) && letter != '\n' { '\u{fffd}' } else { letter }).collect()
}

/// A name, or a text of one line.
pub fn line(text: &str) -> String {
    text.chars().map(|letter| if speaks(letter) { '\u{fffd}' } else { letter }).collect()
}

/// A JSON text: control characters are escaped instead of replaced, so that programs read the recorded text.
pub fn json(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for letter in text.chars() {
        if speaks(letter) && letter != '\n' {
            // In JSON such characters occur in strings only. All are below U+10000. Writing to a string does not
            // fail.
            let _ = write!(clean, "\\u{:04x}", u32::from(letter));
        } else {
            clean.push(letter);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_speaks_to_a_terminal() {
        let name = "a\u{1b}[2J\u{9b}2J\r\t\u{7f}\u{202e}b\nc";
        assert_eq!(text(name), "a\u{fffd}[2J\u{fffd}2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}b\nc");
        assert_eq!(line(name), text(name).replace('\n', "\u{fffd}"));
        assert_eq!(text("grüße → 漢字"), "grüße → 漢字");
    }

    #[test]
    fn json_says_the_same() {
        let value = serde_json::json!({ "name": "a\u{9b}\u{1b}\u{7f}\u{2066}\n" });
        let clean = json(&format!("{value:#}"));
        assert!(!clean.chars().any(|letter| speaks(letter) && letter != '\n'), "{clean}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&clean).unwrap(), value);
    }
}
