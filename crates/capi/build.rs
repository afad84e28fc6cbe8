//! Gives the library the name under which programs look for it: its number changes when programs would have to be
//! compiled anew.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libgondwana_api.so.0");
}
