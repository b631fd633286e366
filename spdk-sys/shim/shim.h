/* What the bindings are made from: SPDK's headers, and C twins of what bindgen cannot carry over. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "spdk/env.h"
#include "spdk/log.h"
#include "spdk/nvme.h"
#include "spdk/version.h"

/* A line of SPDK's (source 0) or DPDK's (source 1) log. `text` ends with a zero and is valid during the call.
 * `level` is one of enum spdk_log_level. `file` may be NULL. */
typedef void (*lanemark_log_fn)(int source, int level, const char *file, int line, const char *text);

/* Sends both logs to `fn`, and nothing to stdout or stderr. Returns 0 or a negative errno. */
int lanemark_log_redirect(lanemark_log_fn fn);

/* What bits of the CAP register say: most entries per queue (not zero-based), smallest memory page in bytes. */
uint32_t lanemark_cap_max_queue_entries(struct spdk_nvme_ctrlr *ctrlr);
uint64_t lanemark_cap_min_page_bytes(struct spdk_nvme_ctrlr *ctrlr);

/* The status field of a completion, phase tag in bit 0: the C twin of what Rust reads by offset. */
uint16_t lanemark_cpl_status_field(const struct spdk_nvme_cpl *cpl);

/* Macros as functions, to test Rust's copies of them. */
bool lanemark_cpl_is_error(const struct spdk_nvme_cpl *cpl);
