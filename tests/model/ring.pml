/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges E1, E2, E8 and E9: the shared-memory ring (src/shared/ring.h), its bell and its want_room word. Frames of
 * one or two cells in a ring of four, with pads; indices start two below their wrap.
 *
 *	producer  push; exchange(bell, 1) == 0 -> wake the consumer
 *	          no room: exchange(want_room, 1); look again; sleep
 *	consumer  woken: exchange(bell, 0); take frames until there is none; sleep
 *	          each frame taken: publish head; exchange(want_room, 0) == 1 -> wake the producer
 *
 * Shown: every frame arrives whole and in order; nothing is overwritten before it was read; neither side sleeps
 * for ever while the other has something for it.
 *
 * mutant TAIL_RELAXED: tail is published by a plain store
 * mutant TAIL_EARLY: tail is published before the frame is filled
 * mutant TAIL_OBSERVED_LATE: cells are loaded before tail is
 * mutant HEAD_EARLY: head is published before the payload is read
 * mutant ROOM_OFF_BY_ONE: one cell more than there is
 * mutant PAD_FORGOTTEN: room is not asked for the pad
 * mutant WRAP_UNSAFE: indices are compared without the wrap
 * mutant BELL_EARLY: the bell is rung before tail is published
 * mutant BELL_LOOKED_AT: the producer writes the bell only where a load showed 0
 * mutant BELL_CLEARED_LATE: the consumer clears the bell after it has drained the ring
 * mutant BELL_CLEARED_PLAIN: the consumer clears the bell by a plain store
 * mutant ROOM_NOT_CHECKED_AGAIN: the producer sleeps at once after it has set want_room
 * mutant WANT_PLAIN: the producer sets want_room by a plain store
 * mutant WANT_LOOKED_AT: the consumer swaps want_room only where a load showed 1
 * mutant WANT_EARLY: the consumer looks at want_room before it publishes head
 */
#define THREADS 2
#define PRODUCER 0
#define CONSUMER 1

#define SIZE 4
#define FRAMES 4
#define START 254 /* indices are bytes: 2 below their wrap */

#define CELL 0 /* SIZE words */
#define TAIL 4
#define HEAD 5
#define BELL 6
#define WANT 7
#define WORDS 8

#include "buffer.pml"

#define distance(from, to) (((to) - (from)) & 255)
#define header(frame, cells) (((frame) + 1) * 4 + (cells)) /* a pad's is its length alone */
#define is_pad(h) ((h) < 4)
#define payload(frame) (100 + (frame))

bool wake_consumer, wake_producer; /* a byte in the socket, an event */
byte taken;

#ifdef TAIL_RELAXED
#define PUBLISH PLAIN
#else
#define PUBLISH ORDERED
#endif
#ifdef ROOM_OFF_BY_ONE
#define CAPACITY (SIZE + 1)
#else
#define CAPACITY SIZE
#endif
#ifdef PAD_FORGOTTEN
#define ask(cells, pad) (cells)
#else
#define ask(cells, pad) ((cells) + (pad))
#endif
#ifdef WRAP_UNSAFE
#define has_room(cells) (tail + (cells) <= head_seen + CAPACITY)
#else
#define has_room(cells) (distance(head_seen, tail) + (cells) <= CAPACITY)
#endif


inline bell_ring()
{
#ifdef BELL_LOOKED_AT
	if
	:: atomic { mem[BELL] == 0 -> old = 0 };
		atomic { drained(PRODUCER) -> mem[BELL] = 1 }
	:: atomic { mem[BELL] == 1 -> old = 1 }
	fi;
#else
	atomic { drained(PRODUCER) -> old = mem[BELL]; mem[BELL] = 1 };
#endif
	atomic {
		if
		:: old == 0 -> wake_consumer = true
		:: else
		fi;
		old = 0
	}
}

/* Returns with room for the frame. */
inline room_wait()
{
	do
	:: has_room(ask(cells, pad)) -> break
	:: else ->
		head_seen = mem[HEAD]; /* E2 */
		if
		:: has_room(ask(cells, pad)) -> break
		:: else
		fi;
#ifdef WANT_PLAIN
		put(PRODUCER, WANT, 1, PLAIN);
#else
		atomic { drained(PRODUCER) -> mem[WANT] = 1 }; /* E9 */
#endif
#ifndef ROOM_NOT_CHECKED_AGAIN
		head_seen = mem[HEAD]; /* E2 */
		if
		:: has_room(ask(cells, pad)) -> break
		:: else
		fi;
#endif
		atomic { wake_producer -> wake_producer = false }
	od
}

inline frame_fill()
{
	if
	:: pad > 0 -> put(PRODUCER, CELL + tail % SIZE, pad, PLAIN)
	:: else
	fi;
	start = tail + pad;
	put(PRODUCER, CELL + start % SIZE, header(frame, cells), PLAIN);
	if
	:: cells == 2 -> put(PRODUCER, CELL + (start + 1) % SIZE, payload(frame), PLAIN)
	:: else
	fi
}

proctype producer()
{
	byte frame, cells, pad, start, old;
	byte tail = START, head_seen = START;

	do
	:: frame < FRAMES ->
		if
		:: cells = 1
		:: cells = 2
		fi;
		pad = (SIZE - tail % SIZE < cells -> SIZE - tail % SIZE : 0);
		room_wait();
#ifdef TAIL_EARLY
		put(PRODUCER, TAIL, (tail + pad + cells) & 255, PUBLISH);
#endif
#ifdef BELL_EARLY
		bell_ring();
#endif
		frame_fill();
		tail = start + cells;
#ifndef TAIL_EARLY
		put(PRODUCER, TAIL, tail, PUBLISH); /* E1 */
#endif
#ifndef BELL_EARLY
		bell_ring(); /* E8 */
#endif
		frame++;
		cells = 0;
		pad = 0;
		start = 0
	:: else -> break
	od
}

inline want_answer()
{
#ifdef WANT_LOOKED_AT
	old = mem[WANT];
	if
	:: old -> atomic { drained(CONSUMER) -> old = mem[WANT]; mem[WANT] = 0 }
	:: else
	fi;
#else
	atomic { drained(CONSUMER) -> old = mem[WANT]; mem[WANT] = 0 }; /* E9 */
#endif
	atomic {
		if
		:: old -> wake_producer = true
		:: else
		fi;
		old = 0
	}
}

/* The cells at `at`, loaded early in the mutant. */
inline frame_take()
{
#ifdef TAIL_OBSERVED_LATE
	h = early;
#else
	h = mem[CELL + head % SIZE];
#endif
	if
	:: is_pad(h) ->
		assert(h == SIZE - head % SIZE && distance(head, tail_seen) > h);
		head = head + h
	:: else ->
		assert(h / 4 == taken + 1 && (h % 4 == 1 || h % 4 == 2));
		assert(h % 4 <= distance(head, tail_seen) && h % 4 <= SIZE - head % SIZE);
		cells = h % 4;
#ifdef WANT_EARLY
		want_answer();
#endif
#ifdef HEAD_EARLY
		put(CONSUMER, HEAD, (head + cells) & 255, ORDERED);
#endif
		assert(cells == 1 || mem[CELL + (head + 1) % SIZE] == payload(taken));
		head = head + cells;
#ifndef HEAD_EARLY
		put(CONSUMER, HEAD, head, ORDERED); /* E2 */
#endif
		taken++;
		cells = 0;
#ifndef WANT_EARLY
		want_answer()
#endif
	fi;
	h = 0
}

proctype consumer()
{
	byte h, cells, old;
	byte head = START, tail_seen = START;
#ifdef TAIL_OBSERVED_LATE
	byte early;
#endif
end:
	do
	:: atomic { wake_consumer -> wake_consumer = false };
#ifdef BELL_CLEARED_PLAIN
		put(CONSUMER, BELL, 0, PLAIN);
#endif
#if !defined(BELL_CLEARED_LATE) && !defined(BELL_CLEARED_PLAIN)
		atomic { drained(CONSUMER) -> mem[BELL] = 0 }; /* E8 */
#endif
		do
		:: head != tail_seen ->
#ifdef TAIL_OBSERVED_LATE
			early = mem[CELL + head % SIZE];
#endif
			frame_take()
		:: else ->
#ifdef TAIL_OBSERVED_LATE
			early = mem[CELL + head % SIZE];
#endif
			tail_seen = mem[TAIL]; /* E1 */
			if
			:: head == tail_seen -> break
			:: else -> frame_take()
			fi
		od;
#ifdef BELL_CLEARED_LATE
		atomic { drained(CONSUMER) -> mem[BELL] = 0 }
#endif
	od
}

init
{
	atomic {
		mem[TAIL] = START;
		mem[HEAD] = START;
		run memory(PRODUCER);
		run memory(CONSUMER);
		run producer();
		run consumer()
	};
	timeout -> assert(taken == FRAMES)
}
