//! A program of Rust that knows nothing of nodes: loops, sorting and recursion by rayon, whose threads find each other by thread-local
//! variables.

use rayon::prelude::*;

fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = rayon::join(|| fibonacci(n - 1), || fibonacci(n - 2));
    a + b
}

fn main() {
    let threads = std::env::args().nth(1).map_or(4, |text| text.parse().expect("a number of threads"));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("the first pool");
    let sum: u64 = (0..50_000_u64).into_par_iter().map(|number| number * number % 7).sum();
    println!("sum {sum}");
    println!("fibonacci {}", fibonacci(11));
    let mut numbers: Vec<u32> = (0..20_000_u32).map(|number| number.wrapping_mul(2_654_435_761)).collect();
    numbers.par_sort_unstable();
    println!("sorted {} {} {}", numbers[0], numbers[10_000], numbers[19_999]);
    let words = ["page", "twin", "diff", "home", "node", "lock"].repeat(50);
    let longest: Vec<String> =
        words.par_iter().map(|word| word.to_uppercase()).filter(|word| word > &"M".to_owned()).collect();
    println!("words {} {}", longest.len(), longest[0]);
    // Scopes, and threads of a pool that ask which they are.
    let mut parts = vec![0; 8];
    rayon::scope(|scope| {
        for (index, part) in parts.iter_mut().enumerate() {
            scope
                .spawn(move |_| *part = index * index + usize::from(rayon::current_thread_index().is_none()));
        }
    });
    println!("parts {parts:?}");
}
