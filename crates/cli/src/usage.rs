//! Usage errors, in one line.

use clap::error::ErrorKind;
use gondwana_console::failure::Failure;

/// Prints the help, or returns the usage error as one sentence.
pub(crate) fn refused(error: &clap::Error) -> Result<(), Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Errors of the reader are ignored.
            let _ = error.print();
            Ok(())
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Err(Failure::usage(
            "a command is missing, such as run, exec or doctor (gondwana --help says more)",
        )),
        _ => Err(Failure::usage(sentence(&error.to_string()))),
    }
}

/// The first paragraph of the parser's message, without its label.
fn sentence(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or(text);
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let sentence = words.join(" ");
    format!("{} (--help says more)", sentence.strip_prefix("error: ").unwrap_or(&sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_has_no_line_breaks_and_no_label() {
        let text =
            "error: invalid value 'x' for '--fabric <FABRIC>'\n  [possible values: shm, tcp]\n\nFor more\n";
        assert_eq!(
            sentence(text),
            "invalid value 'x' for '--fabric <FABRIC>' [possible values: shm, tcp] (--help says more)"
        );
    }
}
