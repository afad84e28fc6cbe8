//! Has the loader run this library's initialiser before those of all other libraries, and binds its calls of its own functions:
//! the program may have a function of the same name, which in turn calls this library's.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,initfirst,-Bsymbolic-functions");
}
