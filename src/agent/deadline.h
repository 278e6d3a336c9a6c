/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLI_AGENT_DEADLINE_H
#define KVLI_AGENT_DEADLINE_H

#include "agent/agent.h"

int kvli_deadline_open(struct kvli_agent *agent);
void kvli_deadline_close(struct kvli_agent *agent);
/* Something is pending: make sure the timer runs. */
void kvli_deadline_arm(struct kvli_agent *agent);

#endif
