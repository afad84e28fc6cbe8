//! Predicts which pages a thread will touch next, from the faults it took.
//!
//! Three patterns are found. A *sequential stream* is adjacent pages, whatever instructions touch them; one instruction
//! may make hundreds in turn. A *2-D stride* is streams that one instruction begins at equal distances, such as rows of
//! a block of a matrix. A *spatial footprint* is pages close to each other that are read again and again in any order. A
//! *reference prediction table* (Chen and Baer, 1995) keeps, for each faulting instruction, how far its last streams and 2-D strides went.
//!
//! Pure: no I/O, no clock. [`Predictor`] allocates only when it is made, since a fault handler calls it.
//! The design note is `design/prefetch.md` beside this code.
//!
//! # Examples
//! ```
//! use gondwana_prefetch::{Fault, Kind, Predictor};
//!
//! let mut predictor = Predictor::default();
//! let read = |page| Fault { page, code: 0x40_1000, kind: Kind::Read, absent: true };
//! assert_eq!(predictor.predict(read(100), 64).prefetch.count(), 0);
//! // The second page in sequence begins a stream.
//! assert_eq!(predictor.predict(read(101), 64).prefetch.count(), 1);
//! assert_eq!(predictor.predict(read(103), 64).prefetch.count(), 2);
//! ```

#![forbid(unsafe_code)]

mod extents;
mod fault;
mod interleaved;
mod prediction;
mod prediction_table;
mod predictor;
mod read_then_write;
mod sampling;
mod spatial_footprint;
mod stride_pattern;
#[cfg(test)]
mod tests;

pub use fault::{Fault, Kind};
pub use prediction::{Prediction, Prefetch};
pub use predictor::Predictor;
pub use spatial_footprint::SpatialFootprint;
