//! Jobs from YAML and flags to plans: what is accepted, what it resolves to, and what refusals say.

mod files;
mod flags;
mod messages;
mod methods;
mod plans;
mod random;
mod regions;
mod support;
mod sweeps;
mod tables;
