//! What a recording tells, for people.

#[cfg_attr(not(test), expect(dead_code, reason = "the command that shows it needs the analysis"))]
mod page;
