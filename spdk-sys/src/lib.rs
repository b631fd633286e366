//! Facts about the installed SPDK: bindings made at build time by bindgen against its headers. No policy: no
//! `Drop`, no `Result`, no `Send`. Only lanemark's `src/spdk` names this crate.
//!
//! Without SPDK (or libclang) the crate is empty; the reason reaches lanemark's build script.
#![allow(unsafe_code)] // declarations of foreign functions
#![no_std]

#[cfg(spdk)]
#[allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    missing_docs,
    unused,
    improper_ctypes,
    clippy::all,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    unsafe_op_in_unsafe_fn
)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

#[cfg(spdk)]
pub use bindings::*;

#[cfg(all(test, spdk))]
mod tests {
    //! The bindings against the headers' own static asserts, and Rust's shortcuts against their C twins.
    use super::*;
    use core::mem::{align_of, offset_of, size_of};

    #[test]
    fn structs_have_the_size_that_spdk_asserts() {
        assert_eq!(
            (size_of::<spdk_nvme_cmd>(), size_of::<spdk_nvme_cpl>()),
            (64, 16)
        );
        assert_eq!(align_of::<spdk_nvme_cmd>(), 8);
        // SPDK 26.01; other releases may grow these, and say so in opts_size.
        if SPDK_VERSION_MAJOR == 26 && SPDK_VERSION_MINOR == 1 {
            assert_eq!(size_of::<spdk_env_opts>(), 128);
            assert_eq!(size_of::<spdk_nvme_ctrlr_opts>(), 856);
            assert_eq!(size_of::<spdk_nvme_io_qpair_opts>(), 80);
            assert_eq!(offset_of!(spdk_nvme_io_qpair_opts, opts_size), 72);
        }
    }

    #[test]
    fn identify_structures_are_4096_opaque_bytes() {
        assert_eq!(
            (
                size_of::<spdk_nvme_ctrlr_data>(),
                size_of::<spdk_nvme_ns_data>()
            ),
            (4096, 4096)
        );
    }

    #[test]
    fn constants_are_what_the_specification_and_the_shims_say() {
        assert_eq!(SPDK_MALLOC_DMA, 1);
        assert_eq!(SPDK_ENV_NUMA_ID_ANY, -1);
        assert_eq!(SPDK_NVME_IO_FLAGS_PRACT, 1 << 29);
        assert_eq!(
            (
                SPDK_NVME_IO_FLAGS_PRCHK_GUARD,
                SPDK_NVME_IO_FLAGS_PRCHK_REFTAG
            ),
            (1 << 28, 1 << 26)
        );
        let levels = [
            SPDK_LOG_ERROR,
            SPDK_LOG_WARN,
            SPDK_LOG_NOTICE,
            SPDK_LOG_INFO,
            SPDK_LOG_DEBUG,
        ];
        assert_eq!(levels, [0, 1, 2, 3, 4]); // what src/spdk/log.rs matches on
    }

    #[test]
    fn the_status_field_is_the_last_two_bytes_of_a_completion() {
        for field in [0u16, 1, 0x0002, 0x0504, 0x8e00, 0xffff] {
            let mut bytes = [0u8; 16];
            bytes[14..].copy_from_slice(&field.to_le_bytes());
            // SAFETY: spdk_nvme_cpl is 16 bytes of plain integers (asserted above); any bit pattern is valid.
            let cpl: spdk_nvme_cpl = unsafe { core::mem::transmute_copy(&bytes) };
            // SAFETY: the pointer is to a live completion; the twins only read it.
            let (twin, error) =
                unsafe { (lanemark_cpl_status_field(&cpl), lanemark_cpl_is_error(&cpl)) };
            assert_eq!(twin, field);
            assert_eq!(error, field & 0x0ffe != 0);
        }
    }
}
