//! Facts about the installed SPDK. Without SPDK this crate is empty.
