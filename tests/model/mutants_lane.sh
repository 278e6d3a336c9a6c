# SPDX-License-Identifier: Apache-2.0
# Broken forms of lane/step.h. Sourced by run_explore.sh.
mutant capacity lane/step.h posts <<'END'
-> l->mask)
+> l->mask + 1)
END
mutant wrap_unsafe lane/step.h posts <<'END'
-seq_distance(word32_load_acquire_sys(&l->head), tail) > l->mask
+tail > word32_load_acquire_sys(&l->head) + l->mask
END
mutant publish_early lane/step.h posts <<'END'
-	l->slot[tail & l->mask] = index;
+
-	word32_store_release_sys(&l->tail, tail + 1);
+	word32_store_release_sys(&l->tail, tail + 1);\n	l->slot[tail & l->mask] = index;
END
mutant recycle_early lane/step.h posts <<'END'
-	index = l->slot[head & l->mask];
+	word32_store_release_sys(&l->head, head + 1);\n	index = l->slot[head & l->mask];
END
mutant outstanding lane/step.h posts <<'END'
-if (r->outstanding)
+if (0)
END
mutant window lane/step.h posts <<'END'
-if (l->inflight >= l->window)
+if (0)
END
mutant leave_blind lane/step.h posts <<'END'
-if (word32_cas_seq_sys(&l->drive, LANE_DRIVEN, LANE_FREE))
+word32_exchange_seq_sys(&l->drive, LANE_FREE);\n	if (1)
END
mutant leave_called lane/step.h posts <<'END'
-word32_exchange_seq_sys(&l->drive, LANE_DRIVEN);
+return word32_exchange_seq_sys(&l->drive, LANE_FREE) == LANE_CALLED;
END
mutant call_dropped lane/step.h posts <<'END'
-word32_cas_seq_sys(&l->drive, LANE_DRIVEN, LANE_CALLED)
+word32_load_seq_sys(&l->drive) == LANE_DRIVEN
END
mutant drive_blind lane/step.h posts <<'END'
-word32_cas_seq_sys(&l->drive, LANE_FREE, LANE_DRIVEN)
+word32_load_seq_sys(&l->drive) == LANE_FREE && word32_exchange_seq_sys(&l->drive, LANE_DRIVEN) < 9
END
mutant flush_wrap_unsafe lane/step.h failure <<'END'
-seq_before(r->ticket, l->flush_until)
+(r->ticket < l->flush_until)
END
mutant flush_older lane/step.h failure <<'END'
-if (!l->flushing || !seq_before(l->flush_after, r->ticket) ||
+if (!l->flushing ||
END
mutant flush_no_drain lane/step.h failure <<'END'
-if (l->flushing && l->issue == l->flush_until)
+if (0)
END
mutant flush_for_ever lane/step.h failure <<'END'
-head + 1 == l->flush_until
+head == l->flush_until
END
mutant stop_any_post lane/step.h stop <<'END'
-stop >> 16 == r->tag ?
+1 ?
END
mutant touch_after lane/step.h posts <<'END'
-	lane_hook_publish(l, index, status);
+	lane_hook_publish(l, index, status);\n	r->error = 0;
END
