//! lanemark: what a block device can really do, and what limits it.
//!
//! The modules stand on floors; a module may use floors below its own and nothing beside it:
//!
//! | floor | modules |
//! |---|---|
//! | 7 | `cli` |
//! | 6 | `report`, `method` |
//! | 5 | `session` |
//! | 4 | `reactor`, `config` |
//! | 3 | `backend`, `workload`, `measure`, `ceiling` |
//! | 2 | `sys`, `spdk` (the two places where `unsafe` is allowed) |
//! | 1 | `request`, `clock`, `proto`, `sysfs`, `record` |
//! | 0 | `units`, `errno` |

pub mod backend;
pub mod ceiling;
pub mod cli;
pub mod clock;
pub mod config;
pub mod errno;
pub mod measure;
pub mod method;
pub mod proto;
pub mod reactor;
pub mod record;
pub mod report;
pub mod request;
pub mod session;
pub mod spdk;
pub mod sys;
pub mod sysfs;
pub mod units;
pub mod workload;
