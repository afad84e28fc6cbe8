//! What holds for all sets, texts, registries and placements.

mod algebra;
mod machines;
mod nesting;
mod placement;
mod text;
