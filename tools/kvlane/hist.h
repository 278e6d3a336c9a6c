/* SPDX-License-Identifier: Apache-2.0 */
/* Log-bucketed latency histogram: 64 sub-buckets per power of two, so at most 1.6 % error; fixed memory. */
#ifndef KVLANE_TOOL_HIST_H
#define KVLANE_TOOL_HIST_H

#include <stdint.h>

struct hist {
	uint64_t n, sum, min, max;
	uint64_t bucket[64 * 64];
};

void hist_reset(struct hist *h);
void hist_add(struct hist *h, uint64_t ns);
void hist_merge(struct hist *to, const struct hist *from);

/* Value at quantile q in [0, 1]: upper edge of the bucket of sorted[floor((n - 1) * q)]; 0 when empty. */
uint64_t hist_quantile(const struct hist *h, double q);

#endif
