//! Notes: the build ID of a file.

/// The build ID among some notes.
pub(crate) fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3;
    loop {
        let (header, rest) = notes.split_at_checked(12)?;
        let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let (name, contents, kind) = (word(0) as usize, word(4) as usize, word(8));
        let (text, rest) = rest.split_at_checked(name.next_multiple_of(4))?;
        if kind == BUILD_ID && text.get(..name) == Some(b"GNU\0") {
            return rest.get(..contents);
        }
        notes = rest.get(contents.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let note = |kind: u32, name: &[u8], contents: &[u8]| {
            let [name_length, length] = [name, contents].map(|part| u32::try_from(part.len()).unwrap());
            let mut bytes = [name_length, length, kind].map(u32::to_ne_bytes).concat();
            for part in [name, contents] {
                bytes.extend_from_slice(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let other = note(1, b"GNU\0", &[1; 16]);
        let notes = [other.clone(), note(3, b"Go\0", b"x"), note(3, b"GNU\0", &[7, 8, 9, 10])].concat();
        assert_eq!(build_id(&notes), Some(&[7, 8, 9, 10][..]));
        assert_eq!(build_id(&other), None);
        assert_eq!(build_id(&notes[..notes.len() - 1]), None, "cut short");
        assert_eq!(build_id(&note(3, b"GNU\0", &[])), Some(&[][..]));
    }
}
