//! Encoding and decoding of what devices speak. Pure: bytes in, values out.

pub mod ata;
pub mod nvme;
pub mod scsi;
