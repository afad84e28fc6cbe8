//! Size classes of small blocks.

/// The largest small block in bytes. Larger blocks are whole pages.
pub(super) const MAX_SMALL: usize = 32 << 10;
/// All block sizes and addresses are multiples of this: the strictest alignment of a C type.
pub const GRAIN: usize = 16;

/// Up to this size classes differ by one grain; above it each doubling has [`STEPS`] classes.
const LINEAR: usize = 128;
const STEPS: usize = 8;
const STEPS_SHIFT: u32 = STEPS.trailing_zeros();

/// How many classes there are.
pub(super) const CLASSES: usize =
    LINEAR / GRAIN + (MAX_SMALL.trailing_zeros() - LINEAR.trailing_zeros()) as usize * STEPS;

/// A size of small blocks. Steps of at most an eighth keep the waste inside a block below 12.5 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Class(usize);

impl Class {
    /// The smallest class that has room for `size` bytes at a multiple of `align`, a power of two. `None` if that
    /// needs whole pages.
    #[inline]
    pub(super) fn fitting(size: usize, align: usize) -> Option<Self> {
        if size > MAX_SMALL {
            return None;
        }
        let mut class = Self::of_size(size.max(1));
        // Slabs begin at multiples of MAX_SMALL, so blocks of an aligned size are aligned.
        while align > GRAIN && !class.size().is_multiple_of(align) {
            class = Self::from_index(class.index() + 1)?;
        }
        Some(class)
    }

    #[inline]
    fn of_size(size: usize) -> Self {
        let index = if size <= LINEAR {
            (size - 1) / GRAIN
        } else {
            let doubling = (size - 1).ilog2();
            let step = ((size - 1) >> (doubling - STEPS_SHIFT)) - STEPS;
            LINEAR / GRAIN + (doubling - LINEAR.ilog2()) as usize * STEPS + step
        };
        Self(index)
    }

    /// The class with a number below [`CLASSES`].
    #[inline]
    pub(super) fn from_index(index: usize) -> Option<Self> {
        (index < CLASSES).then_some(Self(index))
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0
    }

    /// Bytes in a block.
    #[inline]
    pub(super) fn size(self) -> usize {
        let index = self.index();
        match index.checked_sub(LINEAR / GRAIN) {
            None => (index + 1) * GRAIN,
            Some(above) => (STEPS + above % STEPS + 1) << (above / STEPS + (LINEAR / STEPS).ilog2() as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_gets_the_next_class_and_wastes_little() {
        assert_eq!(CLASSES, 72);
        let sizes: Vec<usize> = (0..CLASSES).map(|index| Class(index).size()).collect();
        assert!(sizes.is_sorted() && sizes.iter().all(|size| size.is_multiple_of(GRAIN)));
        assert_eq!((sizes[0], sizes[7], sizes[8], sizes[CLASSES - 1]), (16, 128, 144, MAX_SMALL));
        for size in 1..=MAX_SMALL {
            let class = Class::fitting(size, 1).unwrap();
            assert!(class.size() >= size);
            assert!(class.index() == 0 || sizes[class.index() - 1] < size, "{size} fits a smaller class");
            assert!(size <= LINEAR || (class.size() - size) * 8 < size, "{size} wastes too much");
        }
        assert_eq!(Class::fitting(0, 1), Class::fitting(1, 1));
        assert_eq!(Class::fitting(MAX_SMALL + 1, 1), None);
    }

    #[test]
    fn aligned_blocks_get_aligned_sizes() {
        for align in (0..=15).map(|shift| 1 << shift) {
            for size in (1..=MAX_SMALL).step_by(7) {
                let class = Class::fitting(size, align).unwrap();
                assert!(class.size() >= size && class.size().is_multiple_of(align.max(GRAIN)));
            }
        }
        assert_eq!(Class::fitting(1, MAX_SMALL * 2), None);
    }
}
