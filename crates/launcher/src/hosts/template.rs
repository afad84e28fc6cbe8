//! The command that reaches a host.

use gondwana_console::failure::Failure;

/// Makes a command from a template. Each `{host}` is replaced by the host. A word `{command}` is replaced by the
/// words of the command; inside a longer word it is replaced by all of them, quoted for a shell.
pub(super) fn expand(template: &str, host: &str, command: &[String]) -> Result<Vec<String>, Failure> {
    let words = split(template).ok_or_else(|| {
        Failure::usage(format!("--launcher: a quotation mark is not closed in: {template}"))
    })?;
    if !words.iter().any(|word| word.contains("{command}")) {
        return Err(Failure::usage(format!(
            "--launcher \"{template}\" does not say where {{command}} goes, as in: ssh {{host}} {{command}}"
        )));
    }
    let mut expanded = vec![];
    for word in words {
        if word == "{command}" {
            expanded.extend_from_slice(command);
            continue;
        }
        let quoted: Vec<_> = command.iter().map(|word| quote(word)).collect();
        expanded.push(word.replace("{host}", host).replace("{command}", &quoted.join(" ")));
    }
    Ok(expanded)
}

/// Splits a line into words as a shell would, with quotation marks and backslashes but without expansions; `None`
/// if a quotation is left open.
fn split(line: &str) -> Option<Vec<String>> {
    let mut words = vec![];
    let mut word: Option<String> = None;
    let mut quotation = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (quotation, c) {
            (Some(mark), c) if c == mark => quotation = None,
            (None, '\'' | '"') => {
                quotation = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(characters.next()?),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quotation.is_none().then_some(words)
}

/// A word, quoted for a shell.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Vec<String> {
        vec!["/opt/my tools/gondwana".to_owned(), "agent".to_owned()]
    }

    #[test]
    fn a_word_of_its_own_becomes_the_words_of_the_command() {
        let words = expand("ip netns exec {host} {command}", "n1", &command()).unwrap();
        assert_eq!(words, ["ip", "netns", "exec", "n1", "/opt/my tools/gondwana", "agent"]);
    }

    #[test]
    fn inside_a_word_the_command_is_quoted() {
        let words = expand("ssh {host} 'cd /x; exec {command}'", "a", &command()).unwrap();
        assert_eq!(words, ["ssh", "a", "cd /x; exec '/opt/my tools/gondwana' agent"]);
    }

    #[test]
    fn words_are_split_as_in_a_shell() {
        assert_eq!(split(r#"a "b \"c" '' d\ e"#).unwrap(), ["a", "b \"c", "", "d e"]);
        assert_eq!(split("a 'b"), None);
        assert_eq!(quote("it's"), r"'it'\''s'");
    }

    #[test]
    fn a_template_without_the_command_is_refused() {
        assert!(expand("ssh {host}", "a", &command()).is_err());
    }
}
