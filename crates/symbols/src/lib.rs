//! Names of addresses of a program that has run, from the symbol tables and the debugging information of its files.

#![forbid(unsafe_code)]
