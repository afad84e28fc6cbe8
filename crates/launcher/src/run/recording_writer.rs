//! The file of a recording. A separate thread appends the chunks, so that a slow disk does not delay the run.

use gondwana_console::create::{Destination, Fresh, Readers, destination, with_suffix};
use gondwana_console::failure::Failure;
use gondwana_console::rlimit::explained;
use gondwana_page::to_usize;
use gondwana_recording::{FILE_HEADER, chunks};
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// Bytes that may wait for the disk; more are left out.
const MOST_WAITING: usize = 64 << 20;

/// Chunks are written together as long as they are fewer bytes.
const BATCH: usize = 64 << 10;

/// A recording that is being made.
#[derive(Debug)]
pub struct RecordingWriter {
    option: &'static str,
    path: PathBuf,
    before: Before,
    state: WriterState,
    waiting: Arc<AtomicUsize>,
    /// Chunks that the disk was too slow for.
    left_out: u64,
}

/// The file of that name before the recording.
#[derive(Debug)]
enum Before {
    /// Nothing, or a link that leads nowhere now.
    Nothing,
    /// A file, which is here now.
    File(PathBuf),
    /// The device or pipe that is recorded to.
    Stream,
}

#[derive(Debug)]
enum WriterState {
    /// No chunk has been written yet.
    Blank(File),
    Running(Sender<Vec<u8>>, JoinHandle<io::Result<()>>),
    /// Nothing more can be written.
    Over,
}

impl RecordingWriter {
    /// Makes the file that the user has named with an option; an existing file is renamed to `.old`. The new file has
    /// its name from the start, so a killed run leaves its recording.
    pub fn open(option: &'static str, path: &Path) -> Result<Self, Failure> {
        let begun = destination(path).and_then(|place| match place {
            Destination::Stream(mut stream) => {
                stream.write_all(&FILE_HEADER).map(|()| (Before::Stream, stream))
            }
            Destination::File => begin(path),
        });
        let (before, file) = begun.map_err(|error| {
            Failure::cannot(format!("{option}: {} cannot be written: {}", path.display(), explained(&error)))
        })?;
        let path = path.to_owned();
        Ok(Self {
            option,
            path,
            before,
            state: WriterState::Blank(file),
            waiting: Arc::default(),
            left_out: 0,
        })
    }

    /// Where the recording is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the first chunk, and returns the file for another process that appends the others. Until [`keep`](Self::keep)
    /// is called, the recording counts as not begun.
    ///
    /// # Errors
    /// If the chunk cannot be written, or others were appended.
    pub fn hand_over(&mut self, first: &[u8]) -> io::Result<File> {
        let WriterState::Blank(file) = &mut self.state else {
            return Err(io::ErrorKind::ResourceBusy.into());
        };
        file.write_all(first)?;
        file.try_clone()
    }

    /// The process that has got the file runs: the recording stays.
    pub fn keep(&mut self) {
        self.state = WriterState::Over;
    }

    /// Appends a chunk. Returns a sentence for the user when writing has failed.
    pub fn append(&mut self, chunk: Vec<u8>) -> Option<String> {
        if let WriterState::Blank(_) = &self.state {
            let WriterState::Blank(file) = std::mem::replace(&mut self.state, WriterState::Over) else {
                return None;
            };
            let (sender, receiver) = channel();
            let waiting = Arc::clone(&self.waiting);
            self.state =
                WriterState::Running(sender, thread::spawn(move || write(file, &receiver, &waiting)));
        }
        let WriterState::Running(sender, _) = &self.state else { return None };
        let length = chunk.len();
        if self.waiting.load(Ordering::Relaxed) + length > MOST_WAITING {
            self.left_out += 1;
            return None;
        }
        self.waiting.fetch_add(length, Ordering::Relaxed);
        if sender.send(chunk).is_ok() { None } else { self.finish() }
    }

    /// Waits until everything is written. Returns a sentence for the user if that fails.
    pub fn finish(&mut self) -> Option<String> {
        let WriterState::Running(sender, thread) = std::mem::replace(&mut self.state, WriterState::Over)
        else {
            return None;
        };
        drop(sender);
        let (option, path) = (self.option, self.path.display());
        match thread.join() {
            Ok(Ok(())) if self.left_out == 0 => None,
            Ok(Ok(())) => Some(format!(
                "{option}: {path} lacks {} pieces, which the disk was too slow for: use a faster one",
                self.left_out
            )),
            Ok(Err(error)) => Some(format!(
                "{option}: {path} cannot be written any more ({}): it ends with what had been recorded before",
                explained(&error)
            )),
            Err(_) => {
                Some(format!("{option}: writing {path} has failed: this is an error of gondwana's own"))
            }
        }
    }
}

impl Drop for RecordingWriter {
    /// A run that did not start leaves the files as they were.
    fn drop(&mut self) {
        match self.state {
            WriterState::Blank(_) => put_back(&self.path, &self.before),
            WriterState::Running(..) | WriterState::Over => {
                // An interested caller has called it before.
                let _ = self.finish();
            }
        }
    }
}

/// Makes the file, and renames an existing one.
fn begin(path: &Path) -> io::Result<(Before, File)> {
    let mut fresh = Fresh::beside(path, Readers::User)?;
    fresh.write(&FILE_HEADER)?;
    let mut before = Before::Nothing;
    if fs::symlink_metadata(path).is_ok_and(|there| there.is_file()) {
        let old = with_suffix(path, ".old");
        // Some file systems flush a file that replaces another one, and the start of the run would wait for that.
        let _ = fs::remove_file(&old);
        fs::rename(path, &old)?;
        before = Before::File(old);
    }
    match fresh.settle() {
        Ok(file) => Ok((before, file)),
        Err(error) => {
            if let Before::File(old) = before {
                // At worst it keeps its other name.
                let _ = fs::rename(old, path);
            }
            Err(error)
        }
    }
}

fn put_back(path: &Path, before: &Before) {
    // An empty recording is left at the worst.
    let _ = match before {
        Before::File(old) => fs::rename(old, path),
        Before::Nothing => fs::remove_file(path),
        Before::Stream => Ok(()),
    };
}

/// Writes chunks until there are no more, whole ones only.
fn write(mut file: File, chunks: &Receiver<Vec<u8>>, waiting: &AtomicUsize) -> io::Result<()> {
    let mut end = FILE_HEADER.len() as u64;
    for mut together in chunks {
        // Chunks that arrived meanwhile are written together with it.
        while together.len() < BATCH
            && let Ok(chunk) = chunks.try_recv()
        {
            together.extend(chunk);
        }
        if let Err(error) = file.write_all(&together) {
            let written = to_usize(file.stream_position().unwrap_or(end).saturating_sub(end));
            let whole = whole_chunks(&together, written);
            // Where that is not possible readers stop at the piece.
            let _ = file.set_len(end + whole as u64);
            return Err(error);
        }
        end += together.len() as u64;
        waiting.fetch_sub(together.len(), Ordering::Relaxed);
    }
    Ok(())
}

/// How many of the first `written` bytes of some chunks are complete chunks.
fn whole_chunks(together: &[u8], written: usize) -> usize {
    let ends = chunks(together).scan(0, |end, chunk| {
        *end += chunk.len();
        Some(*end)
    });
    ends.take_while(|&end| end <= written).last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_recording::{LAUNCHER, RunRecord, encode, read};
    use std::os::unix::fs::PermissionsExt;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("gondwana-writer-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn run(nodes: u16) -> Vec<u8> {
        encode(LAUNCHER, &RunRecord { nodes, page_bytes: 4096, ..RunRecord::default() })
    }

    #[test]
    fn the_recording_before_is_kept() {
        let folder = folder("kept");
        let path = folder.join("a.gwr");
        for nodes in [2, 3] {
            let mut writer = RecordingWriter::open("--monitor", &path).unwrap();
            assert_eq!(writer.append(run(nodes)), None);
            assert_eq!(writer.finish(), None);
        }
        let nodes = |path: &Path| read(File::open(path).unwrap()).unwrap().run.nodes;
        assert_eq!((nodes(&path), nodes(&folder.join("a.gwr.old"))), (3, 2));
        // A run that was not started changes nothing.
        drop(RecordingWriter::open("--monitor", &path).unwrap());
        assert_eq!(nodes(&path), 3);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_recording_that_is_handed_over_stays_if_the_process_starts() {
        let folder = folder("handed");
        let path = folder.join("a.gwr");
        for starts in [false, true] {
            let mut writer = RecordingWriter::open("--monitor", &path).unwrap();
            let mut file = writer.hand_over(&run(2)).unwrap();
            file.write_all(&run(2)).unwrap();
            if starts {
                writer.keep();
            }
            drop(writer);
            assert_eq!(path.exists(), starts);
        }
        let recording = read(File::open(&path).unwrap()).unwrap();
        assert_eq!((recording.run.nodes, recording.cut.is_some()), (2, true), "a run is described once");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_link_is_not_followed_and_what_is_recorded_is_for_the_user() {
        let folder = folder("link");
        let (path, victim) = (folder.join("a.gwr"), folder.join("victim"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        std::os::unix::fs::symlink(&victim, folder.join("a.gwr.old")).unwrap();
        for nodes in [2, 3] {
            let mut writer = RecordingWriter::open("--monitor", &path).unwrap();
            assert_eq!(writer.append(run(nodes)), None);
            // It exists while it grows.
            assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(writer.finish(), None);
            assert_eq!(read(File::open(&path).unwrap()).unwrap().run.nodes, nodes);
        }
        assert!(fs::symlink_metadata(folder.join("a.gwr.old")).unwrap().is_file());
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_made_is_refused() {
        let error = RecordingWriter::open("--monitor", Path::new("/nowhere/a.gwr")).unwrap_err();
        assert!(error.message.starts_with("--monitor: /nowhere/a.gwr cannot be written: "), "{error}");
        assert!(RecordingWriter::open("--monitor", Path::new("/dev/full")).is_err());
    }

    #[test]
    fn of_what_is_written_in_part_whole_chunks_stay() {
        let chunk = run(2);
        let together = [&chunk[..], &chunk, &chunk].concat();
        let length = chunk.len();
        for (written, whole) in
            [(0, 0), (length - 1, 0), (length, 1), (2 * length - 1, 1), (2 * length + 1, 2), (3 * length, 3)]
        {
            assert_eq!(whole_chunks(&together, written), whole * length, "{written}");
        }
    }

    #[test]
    fn a_disk_that_is_full_gives_one_sentence() {
        let file = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let path = PathBuf::from("full.gwr");
        let mut writer = RecordingWriter {
            option: "--monitor",
            path,
            before: Before::Stream,
            state: WriterState::Blank(file),
            waiting: Arc::default(),
            left_out: 0,
        };
        let mut said: Vec<String> = (0..100).filter_map(|_| writer.append(run(2))).collect();
        said.extend(writer.finish());
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("No space left"), "{said:?}");
        assert_eq!(writer.append(run(2)), None);
    }
}
