//! `lanemark`: parses the command line, calls the verb, exits with its code.
fn main() {}
