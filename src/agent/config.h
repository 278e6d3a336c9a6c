/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLI_CONFIG_H
#define KVLI_CONFIG_H

#include "kvlane/kvlane.h"

/*
 * Resolves a caller's config (NULL, an older smaller size, zeros) into one in which every option has its
 * effective value (workers: 0 for KVL_NO_WORKERS; wire, local_paths, sim never NULL; wire "auto" has become
 * "local"), validating each alone and those that belong together (latency_lanes < lanes unless lanes == 1;
 * notif_queue_bytes >= notif_max_bytes). KVL_ERR_OPTION names the option, its value and what is allowed;
 * KVL_ERR_INVALID is about size. *out is set only on success. A resolved config must not be resolved again:
 * its workers 0 would mean the default. Strings are still the caller's; kvli_config_own copies them.
 */
int kvli_config_resolve(const struct kvl_config *in, struct kvl_config *out);

/*
 * Replaces the strings by copies; undo with kvl_config_fini, after which they are NULL. On failure
 * (KVL_ERR_NOMEM) the strings are still the caller's, and kvl_config_fini must not be called.
 */
int kvli_config_own(struct kvl_config *config);

/* KVL_ERR_INVALID when config is NULL or its size cannot be one of a struct kvl_config. */
int kvli_config_check_size(const struct kvl_config *config);

#endif
