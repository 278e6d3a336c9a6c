/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire.h"

extern const struct kvli_wire_ops kvli_wire_local, kvli_wire_sim;

const struct kvli_wire_ops *const kvli_wires[] = { &kvli_wire_local, &kvli_wire_sim, NULL };
