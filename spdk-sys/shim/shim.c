/* C twins of SPDK's macros, static inlines and variadic callbacks. Facts only: no policy here. */
#define _GNU_SOURCE
#include "shim.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* DPDK's rte_log.h, declared here: its headers need compiler flags of their own. */
int rte_openlog_stream(FILE *f);
int rte_log_cur_msg_loglevel(void);

#define LINE_BYTES 1024

static lanemark_log_fn g_fn;

static void
spdk_line(int level, const char *file, const int line, const char *func, const char *format, va_list args)
{
	char text[LINE_BYTES];
	(void)func;
	vsnprintf(text, sizeof(text), format, args);
	if (g_fn != NULL) {
		g_fn(0, level, file, line, text);
	}
}

/* DPDK counts 1 emergency … 4 error, 5 warning, 6 notice, 7 info, 8 debug. */
static int
spdk_level(int dpdk_level)
{
	switch (dpdk_level) {
	case 8: return SPDK_LOG_DEBUG;
	case 7: return SPDK_LOG_INFO;
	case 6: return SPDK_LOG_NOTICE;
	case 5: return SPDK_LOG_WARN;
	default: return SPDK_LOG_ERROR;
	}
}

static ssize_t
dpdk_write(void *cookie, const char *data, size_t bytes)
{
	char text[LINE_BYTES];
	size_t used = bytes < sizeof(text) - 1 ? bytes : sizeof(text) - 1;
	(void)cookie;
	memcpy(text, data, used);
	text[used] = '\0';
	if (g_fn != NULL) {
		g_fn(1, spdk_level(rte_log_cur_msg_loglevel()), NULL, 0, text);
	}
	return (ssize_t)bytes;
}

int
lanemark_log_redirect(lanemark_log_fn fn)
{
	cookie_io_functions_t io = { .write = dpdk_write };
	FILE *stream;

	g_fn = fn;
	spdk_log_open(spdk_line);
	stream = fopencookie(NULL, "w", io);
	if (stream == NULL) {
		return -errno;
	}
	setvbuf(stream, NULL, _IOLBF, LINE_BYTES);
	return rte_openlog_stream(stream);
}

uint32_t
lanemark_cap_max_queue_entries(struct spdk_nvme_ctrlr *ctrlr)
{
	return spdk_nvme_ctrlr_get_regs_cap(ctrlr).bits.mqes + 1u;
}

uint64_t
lanemark_cap_min_page_bytes(struct spdk_nvme_ctrlr *ctrlr)
{
	return 1ull << (12 + spdk_nvme_ctrlr_get_regs_cap(ctrlr).bits.mpsmin);
}

uint16_t
lanemark_cpl_status_field(const struct spdk_nvme_cpl *cpl)
{
	uint16_t field;
	memcpy(&field, &cpl->status, sizeof(field));
	return field;
}

bool
lanemark_cpl_is_error(const struct spdk_nvme_cpl *cpl)
{
	return spdk_nvme_cpl_is_error(cpl);
}
