//! Names as their authors wrote them.

use cpp_demangle::Symbol;
use std::fmt;

/// Longest name that is made readable: templates can describe names that are longer than memory.
const LONGEST: usize = 4096;

/// The name of a symbol as it is in the source, in C++ with namespaces and parameters.
///
/// Plans and recordings name functions and variables only in this form.
#[must_use]
pub fn readable(symbol: &str) -> String {
    // Symbols that are imported from a library have a version suffix: `stdout@GLIBC_2.2.5`.
    let name = symbol.split_once('@').map_or(symbol, |(name, _)| name);
    // Legacy Rust names are also valid C++ names, with a hash that only this library removes.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return clipped(|text| fmt::write(text, format_args!("{rust:#}"))).unwrap_or_else(|| name.to_owned());
    }
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    let cpp = Symbol::new(name).ok();
    cpp.and_then(|cpp| clipped(|text| cpp.structured_demangle(text, &Default::default())))
        .unwrap_or_else(|| name.to_owned())
}

/// The written text, unless it gets too long or fails.
fn clipped(write: impl FnOnce(&mut Clipped) -> fmt::Result) -> Option<String> {
    let mut text = Clipped(String::new());
    write(&mut text).ok().map(|()| text.0)
}

/// Refuses to get long.
struct Clipped(String);

impl fmt::Write for Clipped {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (symbol, name) in [
            ("main", "main"),
            ("stdout@GLIBC_2.2.5", "stdout"),
            ("environ@@GLIBC_2.2.5", "environ"),
            ("_ZN4grid4Cell5countE", "grid::Cell::count"),
            ("_Z5solveiPd", "solve(int, double*)"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_Zbroken", "_Zbroken"),
            ("counter.0", "counter.0"),
        ] {
            assert_eq!(readable(symbol), name);
        }
    }

    /// Each parameter contains the one before it twice, so the name doubles with every few letters.
    #[test]
    fn names_that_grow_without_end_stay_as_they_are() {
        let doubled = |times: usize| {
            let last = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".iter().take(times).map(|&digit| digit as char);
            let more: String = last.map(|last| format!("S_IS{last}_S{last}_E")).collect();
            format!("_Z1f1AIiiE{more}")
        };
        assert_eq!(readable(&doubled(1)), "f(A<int, int>, A<A<int, int>, A<int, int> >)");
        assert_eq!(readable(&doubled(30)), doubled(30));
    }
}
