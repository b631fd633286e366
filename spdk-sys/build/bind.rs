//! Bindings by bindgen and shims by the C compiler.

use std::env;
use std::path::PathBuf;

/// Functions that src/spdk calls, and no others.
const FUNCTIONS: &[&str] = &[
    // Environment
    "spdk_env_opts_init",
    "spdk_env_init",
    "spdk_env_fini",
    "spdk_zmalloc",
    "spdk_free",
    // Log
    "spdk_log_set_level",
    "spdk_log_set_print_level",
    // Transports
    "spdk_nvme_transport_available_by_name",
    "spdk_nvme_transport_id_parse",
    // Controllers
    "spdk_nvme_ctrlr_get_default_ctrlr_opts",
    "spdk_nvme_connect_async",
    "spdk_nvme_probe_poll_async",
    "spdk_nvme_detach_async",
    "spdk_nvme_detach_poll_async",
    "spdk_nvme_ctrlr_get_opts",
    "spdk_nvme_ctrlr_get_data",
    "spdk_nvme_ctrlr_is_discovery",
    "spdk_nvme_ctrlr_is_fabrics",
    "spdk_nvme_ctrlr_is_failed",
    "spdk_nvme_ctrlr_fail",
    "spdk_nvme_ctrlr_get_max_xfer_size",
    "spdk_nvme_ctrlr_get_numa_id",
    "spdk_nvme_ctrlr_get_pci_device",
    "spdk_pci_device_is_removed",
    "spdk_nvme_ctrlr_get_first_active_ns",
    "spdk_nvme_ctrlr_get_next_active_ns",
    "spdk_nvme_ctrlr_get_ns",
    "spdk_nvme_ctrlr_cmd_admin_raw",
    "spdk_nvme_ctrlr_process_admin_completions",
    "spdk_nvme_ctrlr_disable_read_changed_ns_list_log_page",
    // Namespaces
    "spdk_nvme_ns_get_data",
    "spdk_nvme_ns_get_md_size",
    "spdk_nvme_ns_get_sector_size",
    "spdk_nvme_ns_get_extended_sector_size",
    "spdk_nvme_ns_get_num_sectors",
    "spdk_nvme_ns_is_active",
    "spdk_nvme_ns_get_max_io_xfer_size",
    // Queue pairs
    "spdk_nvme_ctrlr_get_default_io_qpair_opts",
    "spdk_nvme_ctrlr_alloc_io_qpair",
    "spdk_nvme_ctrlr_free_io_qpair",
    "spdk_nvme_ctrlr_disconnect_io_qpair",
    "spdk_nvme_ctrlr_cmd_io_raw",
    "spdk_nvme_ctrlr_cmd_io_raw_with_md",
    "spdk_nvme_ns_cmd_read_with_md",
    "spdk_nvme_ns_cmd_write_with_md",
    "spdk_nvme_qpair_process_completions",
    "spdk_nvme_qpair_is_connected",
    "spdk_nvme_qpair_get_num_outstanding_reqs",
    // Ours
    "lanemark_log_redirect",
    "lanemark_cap_max_queue_entries",
    "lanemark_cap_min_page_bytes",
    "lanemark_cpl_status_field",
    "lanemark_cpl_is_error",
];

const TYPES: &[&str] = &[
    "spdk_env_opts",
    "spdk_nvme_cmd",
    "spdk_nvme_cpl",
    "spdk_nvme_transport_id",
    "spdk_nvme_ctrlr_opts",
    "spdk_nvme_io_qpair_opts",
    "spdk_log_level",
    "lanemark_log_fn",
];

const CONSTANTS: &[&str] = &[
    "SPDK_VERSION_MAJOR",
    "SPDK_VERSION_MINOR",
    "SPDK_MALLOC_DMA",
    "SPDK_ENV_NUMA_ID_ANY",
    "SPDK_NVME_IO_FLAGS_PRACT",
    "SPDK_NVME_IO_FLAGS_PRCHK_GUARD",
    "SPDK_NVME_IO_FLAGS_PRCHK_REFTAG",
];

/// Packed structs that hold aligned ones do not compile as Rust (E0588); their bytes are read by `proto::nvme`.
const OPAQUE: &[&str] = &[
    "spdk_nvme_ctrlr_data",
    "spdk_nvme_ns_data",
    "spdk_nvmf_fabric_prop_get_rsp",
    "spdk_nvme_tcp_cmd",
    "spdk_nvme_tcp_rsp",
    "spdk_nvmf_fabric_connect_rsp",
    "spdk_nvme_cdata_.*",
];

/// Whether bindgen will find libclang: it panics where it does not.
///
/// # Errors
/// The reason and the remedy.
pub fn check_libclang() -> Result<(), String> {
    clang_sys::load().map_err(|why| {
        let first = why.split(['\n', ',']).next().unwrap_or_default().to_owned();
        format!("libclang is needed for SPDK's bindings ({first}); install libclang-dev, or set LIBCLANG_PATH")
    })
}

fn out_dir() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default())
}

/// Writes `bindings.rs` to the build folder.
///
/// # Errors
/// What bindgen or the file system said.
pub fn bindings(includes: &[PathBuf]) -> Result<(), String> {
    let mut builder = bindgen::Builder::default()
        .header("shim/shim.h")
        .clang_args(includes.iter().map(|dir| format!("-I{}", dir.display())))
        .use_core()
        .formatter(bindgen::Formatter::None)
        .allowlist_recursively(true)
        .prepend_enum_name(false)
        .layout_tests(true)
        .generate_comments(false)
        .derive_default(false)
        .rust_target(bindgen::RustTarget::stable(85, 0).map_err(|error| error.to_string())?)
        .rust_edition(bindgen::RustEdition::Edition2024);
    for name in FUNCTIONS {
        builder = builder.allowlist_function(name);
    }
    for name in TYPES {
        builder = builder.allowlist_type(name);
    }
    for name in CONSTANTS {
        builder = builder.allowlist_var(name);
    }
    for name in OPAQUE {
        builder = builder.opaque_type(name);
    }
    let bindings = builder
        .generate()
        .map_err(|error| format!("bindgen failed on SPDK's headers: {error}"))?;
    bindings
        .write_to_file(out_dir().join("bindings.rs"))
        .map_err(|error| format!("bindings.rs: {error}"))
}

/// Compiles `shim/shim.c`.
///
/// # Errors
/// What the compiler said.
pub fn shims(includes: &[PathBuf]) -> Result<(), String> {
    let mut build = cc::Build::new();
    build
        .file("shim/shim.c")
        .include("shim")
        .includes(includes)
        .warnings(true);
    build
        .try_compile("lanemark_spdk_shim")
        .map_err(|error| format!("the C shims do not compile: {error}"))
}
