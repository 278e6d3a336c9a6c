/* SPDX-License-Identifier: Apache-2.0 */
/* What the system says of this process. All of it uses must(). */
#ifndef KVLANE_TESTING_PROCESS_H
#define KVLANE_TESTING_PROCESS_H

#include <stddef.h>

/* Open descriptors and running threads: to be compared with an earlier count. */
size_t process_descriptors(void);
size_t process_threads(void);
/* Until a thread of this process sleeps: inside the call that it makes, when it has no other reason to. */
void process_wait_asleep(int tid);

#endif
