//! How long names take: `cargo run --release -p gondwana-symbols --example times FILE`.

use gondwana_analysis::Names;
use gondwana_recording::ImageRecord;
use gondwana_symbols::{File, Symbols};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// How many addresses are asked for.
const COUNT: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let path = Path::new(&path).canonicalize()?;
    let contents = std::fs::read(&path)?;
    let elf = object::read::elf::ElfFile64::<object::Endianness>::parse(&contents[..])?;
    let text = elf.section_by_name(".text").ok_or("no code")?;
    let step = (text.size() / COUNT).max(1);
    let code: Vec<_> = (0..COUNT).map(|index| text.address() + index * step).collect();
    let is_data = |symbol: &object::read::elf::ElfSymbol64<'_, '_, object::Endianness>| {
        symbol.kind() == SymbolKind::Data && symbol.size() > 0
    };
    let data: Vec<_> = elf.symbols().filter(is_data).map(|symbol| symbol.address()).take(10_000).collect();

    let build_id = File::open(&path)?.build_id().to_vec();
    let path = path.to_str().ok_or("a path of other letters")?.to_owned();
    let image = ImageRecord { path, base: 0, start: 0, end: u64::MAX, build_id };
    let time = |what: &str, begun: Instant| println!("{what}: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    let begun = Instant::now();
    let (names, notes) = Symbols::open(&[image]);
    time("open", begun);
    println!("{notes:?}");
    let begun = Instant::now();
    names.code(code[0]);
    time("the first address of code", begun);
    let begun = Instant::now();
    let with_lines =
        code.iter().filter(|&&address| names.code(address).iter().any(|place| place.line > 0)).count();
    time(&format!("{} addresses of code, {with_lines} with lines", code.len()), begun);
    let begun = Instant::now();
    names.variable(data[0]);
    time("the first variable", begun);
    let begun = Instant::now();
    let fields = data.iter().filter_map(|&address| Some(names.field(&names.variable(address)?, 1))).count();
    time(&format!("{fields} variables with a field each"), begun);
    Ok(())
}
