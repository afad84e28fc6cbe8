//! Small texts for people.

use gondwana_inspect::Call;

/// A variable and a part of it.
pub(super) fn object_part(name: &str, field: &str) -> String {
    // Parts begin with their own dot or bracket, or are bare names of fields.
    match field.chars().next() {
        None | Some('.' | '[') => format!("{name}{field}"),
        Some(_) => format!("{name}.{field}"),
    }
}

/// A system call with its descriptor.
pub(super) fn call(Call { number, name, descriptor }: &Call) -> String {
    let name = name.map_or_else(|| format!("system call {number}"), str::to_owned);
    match descriptor {
        None => name,
        Some((number, file)) if file.is_empty() => format!("{name} of descriptor {number}"),
        Some((number, file)) => format!("{name} of descriptor {number} ({file})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_parts_are_said() {
        let descriptor = Some((0, "/dev/pts/1".to_owned()));
        let read = Call { number: 0, name: Some("read"), descriptor };
        assert_eq!(call(&read), "read of descriptor 0 (/dev/pts/1)");
        assert_eq!(call(&Call { number: 999, name: None, descriptor: None }), "system call 999");
        let parts = ["", ".lock", "[2].lock", "lock"].map(|field| object_part("accounts", field));
        assert_eq!(parts, ["accounts", "accounts.lock", "accounts[2].lock", "accounts.lock"]);
    }
}
