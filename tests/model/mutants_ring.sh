# SPDX-License-Identifier: Apache-2.0
# Broken forms of shared/ring.h. Sourced by run_explore.sh.
mutant capacity shared/ring.h <<'END'
-p->size - seq_distance(p->head_seen, p->tail) >= bytes
+p->size + RING_GRAIN - seq_distance(p->head_seen, p->tail) >= bytes
END
mutant wrap_unsafe shared/ring.h <<'END'
-p->size - seq_distance(p->head_seen, p->tail) >= bytes
+p->head_seen + p->size >= p->tail + bytes
END
mutant publish_early shared/ring.h <<'END'
-	memcpy(p->data + (at & (p->size - 1)), &frame, sizeof(frame));
+
-	word32_store_release_sys(&p->words->tail, p->tail);
+	word32_store_release_sys(&p->words->tail, p->tail);\n	memcpy(p->data + at % p->size, &frame, 16);
END
mutant recycle_early shared/ring.h <<'END'
-	*payload = c->data
+	word32_store_release_sys(&c->words->head, c->head + ring_need(frame->len));\n	*payload = c->data
END
mutant pad_not_counted shared/ring.h <<'END'
-ring_has_room(p, need + skip)
+ring_has_room(p, need)
END
mutant pad_not_skipped shared/ring.h <<'END'
-if (frame->type != RING_PAD)
+if (1)
END
mutant pad_missing shared/ring.h <<'END'
-memcpy(p->data + (p->tail & (p->size - 1)), &pad, sizeof(pad));
+(void)pad;
END
mutant stale_tail shared/ring.h <<'END'
-c->tail_seen = word32_load_acquire_sys(&c->words->tail);
+(void)word32_load_acquire_sys(&c->words->tail);
END
mutant stale_head shared/ring.h <<'END'
-p->head_seen = head;
+(void)head;
END
mutant not_rounded shared/ring.h <<'END'
-return RING_GRAIN + ((len + RING_GRAIN - 1) & ~(RING_GRAIN - 1));
+return RING_GRAIN + len;
END
