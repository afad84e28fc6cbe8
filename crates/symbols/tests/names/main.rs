//! Names of addresses that programs have told, compiled in all the ways that people compile.

mod damage;
mod files;
mod program;
mod shapes;
