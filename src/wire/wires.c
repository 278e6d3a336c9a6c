/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire.h"

const struct kvli_wire_ops *const kvli_wires[] = { &kvli_wire_local, &kvli_wire_sim, NULL };
