//! All memory of the machine by pages: each page's home, and for each line the directory's entry and the processors that
//! have it.

use crate::Time;
use crate::colour::Colours;
use crate::sharing::Losses;
use gondwana_coherence::directory::{Entry, Node};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// No processor.
pub(crate) const NOBODY: u8 = u8::MAX;

/// One line of the second caches. Each miss needs it, so it lies in one line of the host's caches.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Line {
    /// What the home's directory has. The first line of a block has it for all of them: see [`Lines::block`].
    pub entry: Entry,
    /// The processors whose second cache has it.
    pub holders: u128,
    /// The one among them that has it owned or modified, or [`NOBODY`].
    pub owner: u8,
    /// The processors that ever had it.
    pub had: u128,
    /// The directory works on a request for it until then; the first line of a block has it for all of them.
    pub blocked: Time,
    /// The processors that have lost it to a write.
    pub losses: Losses,
}

/// A page that some processor has touched.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub home: Node,
    /// How the physical numbers of its lines differ from the virtual ones in the second caches (exclusive or).
    pub colour: u64,
    pub lines: Box<[Line]>,
}

/// The pages by number. No order of theirs is ever used, so a quick hash does.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    index: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    /// Each miss looks at pages several times, so they have 32 bytes, and their numbers are apart.
    pages: Vec<Page>,
    numbers: Vec<u64>,
    /// Binary logarithm of the lines in a page.
    shift: u32,
    /// One less than the lines in a block, the unit of the directory.
    others: u32,
    colours: Colours,
    /// Pages that were used lately, by the last bits of their numbers: numbers and places.
    recent: Box<[(u64, u32); RECENT]>,
}

/// How many pages are found without the index.
const RECENT: usize = 256;

/// Where a page is among them.
#[inline]
fn slot(number: u64) -> usize {
    usize::try_from(number % RECENT as u64).expect("an index")
}

/// Where a line is, for as long as the machine exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    page: u32,
    line: u32,
}

impl Place {
    /// The place of its page.
    pub(crate) fn page(self) -> u32 {
        self.page
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // The table takes its buckets from the low bits and tags from the high ones.
        let product = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

impl Lines {
    pub(crate) fn new(lines_per_page: u64, lines_per_block: u64, colours: Colours) -> Self {
        Self {
            index: HashMap::default(),
            pages: Vec::new(),
            numbers: Vec::new(),
            shift: lines_per_page.trailing_zeros(),
            others: u32::try_from(lines_per_block - 1).expect("blocks are checked"),
            colours,
            recent: Box::new([(u64::MAX, 0); RECENT]),
        }
    }

    /// Finds a line; `home` decides where a page is that nobody has touched.
    pub(crate) fn find(&mut self, line: u64, home: impl FnOnce(u64) -> Node) -> Place {
        let number = line >> self.shift;
        let within = u32::try_from(line & ((1 << self.shift) - 1)).expect("pages are checked");
        if let Some(page) = self.recent(number) {
            return Place { page, line: within };
        }
        let page = match self.index.get(&number) {
            Some(page) => *page,
            None => {
                let home = home(number);
                let fresh = Line {
                    entry: Entry::of_home(home),
                    holders: 0,
                    owner: NOBODY,
                    had: 0,
                    blocked: 0,
                    losses: Losses::default(),
                };
                let lines = vec![fresh; 1 << self.shift].into_boxed_slice();
                let page = u32::try_from(self.pages.len()).expect("no program has so many pages");
                let colour = self.colours.next(number, home) << self.shift;
                self.pages.push(Page { home, colour, lines });
                self.numbers.push(number);
                self.index.insert(number, page);
                page
            }
        };
        self.recent[slot(number)] = (number, page);
        Place { page, line: within }
    }

    /// The place of a page that was used lately.
    #[inline]
    fn recent(&self, number: u64) -> Option<u32> {
        let (recent, page) = self.recent[slot(number)];
        (recent == number).then_some(page)
    }

    /// Has the host's caches fetch a line that is used soon, if its page was used lately; returns the page's colour then.
    pub(crate) fn prefetch(&self, line: u64) -> Option<u64> {
        let page = &self.pages[self.recent(line >> self.shift)? as usize];
        let within = usize::try_from(line & ((1 << self.shift) - 1)).expect("an index");
        std::hint::black_box(page.lines[within].owner);
        Some(page.colour)
    }

    pub(crate) fn get(&mut self, place: Place) -> &mut Line {
        &mut self.pages[place.page as usize].lines[place.line as usize]
    }

    /// The first line of a line's block, which has what the directory knows of all of them.
    pub(crate) fn block(&mut self, place: Place) -> &mut Line {
        self.get(Place { line: place.line & !self.others, ..place })
    }

    /// All lines of a line's block with their places, that line first.
    pub(crate) fn block_lines(&self, line: u64, place: Place) -> impl Iterator<Item = (u64, Place)> + use<> {
        (0..=self.others)
            .map(move |other| (line ^ u64::from(other), Place { line: place.line ^ other, ..place }))
    }

    pub(crate) fn home(&self, place: Place) -> Node {
        self.pages[place.page as usize].home
    }

    /// How a line's physical number differs from the virtual one.
    pub(crate) fn colour(&self, place: Place) -> u64 {
        self.pages[place.page as usize].colour
    }

    /// The same; none if nobody has touched the line's page, and the colour is not that of its number.
    pub(crate) fn colour_of(&self, line: u64) -> Option<u64> {
        if self.colours.are_virtual() {
            return Some(0);
        }
        let number = line >> self.shift;
        let page = self.recent(number).or_else(|| self.index.get(&number).copied())?;
        Some(self.pages[page as usize].colour)
    }

    /// The place of a line's page, if somebody has touched it.
    pub(crate) fn page_of(&self, line: u64) -> Option<u32> {
        self.index.get(&(line >> self.shift)).copied()
    }

    /// The place of a line, if somebody has touched its page.
    pub(crate) fn place_of(&self, line: u64) -> Option<Place> {
        let within = u32::try_from(line & ((1 << self.shift) - 1)).expect("pages are checked");
        self.page_of(line).map(|page| Place { page, line: within })
    }

    /// The number of a line's block within its page.
    pub(crate) fn block_index(&self, place: Place) -> usize {
        (place.line >> self.others.count_ones()) as usize
    }

    /// The first line of each block of a page.
    pub(crate) fn blocks(&self, page: u32) -> impl Iterator<Item = (u64, Place)> + use<> {
        let first = self.page_start(page);
        let step = usize::try_from(self.others + 1).expect("an index");
        (0..1 << self.shift)
            .step_by(step)
            .map(move |line: u32| (first + u64::from(line), Place { page, line }))
    }

    /// The first line of a page.
    pub(crate) fn page_start(&self, page: u32) -> u64 {
        self.numbers[page as usize] << self.shift
    }

    /// Bytes of a page whose lines have `1 << line_shift`.
    pub(crate) fn page_bytes(&self, line_shift: u32) -> u64 {
        1 << (self.shift + line_shift)
    }

    /// The home of a page.
    pub(crate) fn page_home(&self, page: u32) -> Node {
        self.pages[page as usize].home
    }

    /// Gives a page, of which no cache has a line, another home.
    pub(crate) fn move_page(&mut self, page: u32, home: Node) {
        let moved = &mut self.pages[page as usize];
        moved.home = home;
        moved.colour = self.colours.next(self.numbers[page as usize], home) << self.shift;
        for line in &mut moved.lines {
            debug_assert_eq!((line.holders, line.owner), (0, NOBODY));
            line.entry = Entry::of_home(home);
        }
    }

    /// How many pages each of so many nodes is home of.
    pub(crate) fn pages_by_home(&self, nodes: usize) -> Vec<u64> {
        let mut counts = vec![0; nodes];
        for page in &self.pages {
            counts[usize::from(page.home)] += 1;
        }
        counts
    }

    /// All lines of all pages with their numbers and homes, and what the directory has of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, Node, &Line, Entry)> + '_ {
        self.index.iter().flat_map(|(number, page)| {
            let page = &self.pages[usize::try_from(*page).expect("an index")];
            let first = number << self.shift;
            let block = usize::try_from(self.others + 1).expect("an index");
            page.lines.iter().enumerate().zip(first..).map(move |((index, line), number)| {
                (number, page.home, line, page.lines[index / block * block].entry)
            })
        })
    }
}
