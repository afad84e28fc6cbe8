//! The names in all files of a program that has run.

use crate::File;
use gondwana_analysis::{Code, Layouts, Names, Variable};
use gondwana_plan::CodeLocation;
use gondwana_recording::ImageRecord;
use std::io;
use std::path::Path;

/// Names of addresses of a program that has run.
///
/// A file is read at the first query for an address in it.
pub struct Symbols {
    /// In ascending order of addresses, without overlaps.
    loaded: Vec<Loaded>,
}

/// A file that was loaded.
struct Loaded {
    image: ImageRecord,
    /// Its file name, if it is a library.
    library: String,
    /// None if the file is missing or has changed since the run.
    file: Option<File>,
}

impl Symbols {
    /// Opens the files of a program, the executable first; also returns a sentence for each file that has no names.
    #[must_use]
    pub fn open(images: &[ImageRecord]) -> (Self, Vec<String>) {
        let mut loaded: Vec<Loaded> = vec![];
        let mut notes = vec![];
        for (number, image) in images.iter().enumerate() {
            // All nodes report the same images, since addresses are the same.
            let place = loaded.partition_point(|known| known.image.end <= image.start);
            if image.start >= image.end || loaded.get(place).is_some_and(|next| next.image.start < image.end)
            {
                continue;
            }
            let is_executable = number == 0;
            let file = open(image, is_executable, &mut notes);
            let name = Path::new(&image.path).file_name().unwrap_or_default().to_string_lossy();
            let library = if is_executable { String::new() } else { name.into_owned() };
            loaded.insert(place, Loaded { image: image.clone(), library, file });
        }
        (Self { loaded }, notes)
    }

    /// The file that an address is in, and the address in that file.
    fn at(&self, address: u64) -> Option<(&Loaded, u64)> {
        let behind = self.loaded.partition_point(|loaded| loaded.image.start <= address);
        let loaded = self.loaded[..behind].last().filter(|loaded| address < loaded.image.end)?;
        Some((loaded, address.wrapping_sub(loaded.image.base)))
    }

    /// The same, if the file is there.
    fn file_at(&self, address: u64) -> Option<(&Loaded, &File, u64)> {
        let (loaded, address) = self.at(address)?;
        Some((loaded, loaded.file.as_ref()?, address))
    }

    /// The file name of the library that an address is in; empty for the executable, `None` if it is in no file.
    #[must_use]
    pub fn library(&self, address: u64) -> Option<String> {
        self.at(address).map(|(loaded, _)| loaded.library.clone())
    }

    /// The function that an address is in, by the symbol tables alone: debugging information is not read.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<String> {
        let (_, file, at) = self.file_at(address)?;
        file.function(at)
    }

    /// The file that a plan means; the executable if the library is empty.
    fn file(&self, library: &str) -> Option<&File> {
        self.loaded.iter().find(|loaded| loaded.library == library)?.file.as_ref()
    }
}

/// Opens the file of an image if it is still the one that has run.
fn open(image: &ImageRecord, is_executable: bool, notes: &mut Vec<String>) -> Option<File> {
    // The vDSO is in no file.
    if !image.path.starts_with('/') {
        return None;
    }
    let path = &image.path;
    let file = match File::open(Path::new(path)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            notes.push(format!("{path} is gone: what is in it has no names"));
            return None;
        }
        Err(error) => {
            notes.push(format!("{path} cannot be read ({error}): what is in it has no names"));
            return None;
        }
    };
    if file.build_id() != image.build_id {
        notes.push(format!(
            "{path} has changed since it was recorded (it has another build ID): what is in it has no names; record again"
        ));
        return None;
    }
    // System libraries usually have none, and the user cannot change that.
    if is_executable && file.is_stripped() {
        notes.push(format!(
            "{path} was stripped: its own functions and variables have no names; link it without -s, and do not use strip"
        ));
    } else if is_executable && !file.has_debug() {
        notes.push(format!(
            "{path} has no debugging information: there are no lines and no names of fields; compile with -g"
        ));
    }
    Some(file)
}

impl Names for Symbols {
    fn code(&self, address: u64) -> Vec<Code> {
        let Some((loaded, at)) = self.at(address) else { return vec![] };
        let library = &loaded.library;
        let Some(file) = &loaded.file else {
            return vec![Code { offset: at, library: library.clone(), ..Code::default() }];
        };
        let (frames, offset) = file.code(at);
        let outermost = frames.len() - 1;
        let place = |(depth, frame): (usize, crate::dwarf::Frame)| Code {
            function: frame.function,
            offset: if depth == outermost { offset } else { 0 },
            file: frame.file,
            line: frame.line,
            library: library.clone(),
        };
        frames.into_iter().enumerate().map(place).collect()
    }

    fn is_atomic(&self, address: u64) -> bool {
        self.file_at(address).is_some_and(|(_, file, at)| file.is_atomic(at))
    }

    fn variable(&self, address: u64) -> Option<Variable> {
        let (loaded, file, at) = self.file_at(address)?;
        let (name, range) = file.variable_at(at)?;
        let start = range.start.wrapping_add(loaded.image.base);
        Some(Variable { name, library: loaded.library.clone(), start, bytes: range.end - range.start })
    }

    fn field(&self, variable: &Variable, offset: u64) -> String {
        let found = self.file_at(variable.start).filter(|_| offset < variable.bytes);
        found.and_then(|(_, file, start)| file.field(start, offset)).unwrap_or_default()
    }

    fn pointer(&self, address: u64) -> Option<(String, u64)> {
        let (_, file, at) = self.file_at(address)?;
        file.pointer(at, 0).map(|(name, bytes, _)| (name, bytes))
    }

    fn target_field(&self, address: u64, offset: u64) -> String {
        let found = self.file_at(address).and_then(|(_, file, at)| file.pointer(at, offset));
        found.map(|(_, _, text)| text).unwrap_or_default()
    }

    fn layout(&self, variable: &Variable, layouts: &mut Layouts) -> u32 {
        let found = self.file_at(variable.start).and_then(|(_, file, start)| file.layout(start, layouts));
        found.unwrap_or(Layouts::PLAIN)
    }

    fn target_layout(&self, address: u64, layouts: &mut Layouts) -> u32 {
        let found = self.file_at(address).and_then(|(_, file, at)| file.target_layout(at, layouts));
        found.unwrap_or(Layouts::PLAIN)
    }

    fn has_variable(&self, name: &str, library: &str) -> bool {
        self.file(library).is_some_and(|file| file.variable(name).is_ok())
    }

    fn has_site(&self, site: &CodeLocation, library: &str) -> bool {
        self.file(library).is_some_and(|file| file.code_of(site).is_ok())
    }
}
