/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that two agents share: threads, processes, or a CPU and a GPU. The only file that touches their
 * member, and the only one with memory orders: each operation names its order and scope, so that a search
 * for "_seq_" or "_acquire_" shows every strong access there is. docs/memory-order.md has a row per word.
 *
 * Four builds of one text: C11, C++17, nvcc (device side by PTX), and with KVLI_MODEL, where every access is
 * a switch point of the exhaustive scheduler in tests/model.
 */
#ifndef KVLI_WORD_H
#define KVLI_WORD_H

#include <stdint.h>

#if defined(__CUDACC__)
#define KVLI_FN __host__ __device__ static __forceinline__
#else
#define KVLI_FN static inline
#endif

/* Mutants weaken one side by defining these; the checkers must then fail. */
#ifndef KVLI_PUBLISH
#define KVLI_PUBLISH __ATOMIC_RELEASE
#endif
#ifndef KVLI_OBSERVE
#define KVLI_OBSERVE __ATOMIC_ACQUIRE
#endif

struct word32 {
	uint32_t v;
};

struct word64 {
	uint64_t v;
};

#if defined(KVLI_MODEL)
#ifdef __cplusplus
extern "C"
#endif
	void
	kvli_model_point(void);
#define KVLI_POINT() kvli_model_point()
#else
#define KVLI_POINT() ((void)0)
#endif

#if defined(__CUDA_ARCH__)
#define KVLI_ASM_LOAD(how, type, reg, w)                                          \
	type r_;                                                                  \
	asm volatile("ld." how " %0, [%1];" : reg(r_) : "l"(&(w)->v) : "memory"); \
	return r_
#define KVLI_ASM_STORE(how, reg, w, value) \
	asm volatile("st." how " [%0], %1;" ::"l"(&(w)->v), reg(value) : "memory")
#endif

/* Relaxed: for a word's own writer, or where the comment at the site says why nothing is ordered by it. */
KVLI_FN uint32_t word32_load_relaxed_sys(const struct word32 *w)
{
#if defined(__CUDA_ARCH__)
	KVLI_ASM_LOAD("relaxed.sys.u32", uint32_t, "=r", w);
#else
	KVLI_POINT();
	return __atomic_load_n(&w->v, __ATOMIC_RELAXED);
#endif
}

KVLI_FN uint64_t word64_load_relaxed_sys(const struct word64 *w)
{
#if defined(__CUDA_ARCH__)
	KVLI_ASM_LOAD("relaxed.sys.u64", uint64_t, "=l", w);
#else
	KVLI_POINT();
	return __atomic_load_n(&w->v, __ATOMIC_RELAXED);
#endif
}

KVLI_FN void word32_store_relaxed_sys(struct word32 *w, uint32_t v)
{
#if defined(__CUDA_ARCH__)
	KVLI_ASM_STORE("relaxed.sys.u32", "r", w, v);
#else
	KVLI_POINT();
	__atomic_store_n(&w->v, v, __ATOMIC_RELAXED);
	KVLI_POINT();
#endif
}

KVLI_FN void word64_store_relaxed_sys(struct word64 *w, uint64_t v)
{
#if defined(__CUDA_ARCH__)
	KVLI_ASM_STORE("relaxed.sys.u64", "l", w, v);
#else
	KVLI_POINT();
	__atomic_store_n(&w->v, v, __ATOMIC_RELAXED);
	KVLI_POINT();
#endif
}

KVLI_FN uint32_t word32_load_acquire_sys(const struct word32 *w)
{
#if defined(__CUDA_ARCH__)
	KVLI_ASM_LOAD("acquire.sys.u32", uint32_t, "=r", w);
#else
	KVLI_POINT();
	return __atomic_load_n(&w->v, KVLI_OBSERVE);
#endif
}

KVLI_FN uint64_t word64_load_acquire_sys(const struct word64 *w)
{
#if defined(__CUDA_ARCH__)
	KVLI_ASM_LOAD("acquire.sys.u64", uint64_t, "=l", w);
#else
	KVLI_POINT();
	return __atomic_load_n(&w->v, KVLI_OBSERVE);
#endif
}

/* The model has a switch point after a store too: without it "publish before fill" goes unseen. */
KVLI_FN void word32_store_release_sys(struct word32 *w, uint32_t v)
{
#if defined(__CUDA_ARCH__)
	KVLI_ASM_STORE("release.sys.u32", "r", w, v);
#else
	KVLI_POINT();
	__atomic_store_n(&w->v, v, KVLI_PUBLISH);
	KVLI_POINT();
#endif
}

KVLI_FN void word64_store_release_sys(struct word64 *w, uint64_t v)
{
#if defined(__CUDA_ARCH__)
	KVLI_ASM_STORE("release.sys.u64", "l", w, v);
#else
	KVLI_POINT();
	__atomic_store_n(&w->v, v, KVLI_PUBLISH);
	KVLI_POINT();
#endif
}

/*
 * Sequentially consistent read-modify-writes: both halves of a store-then-look protocol (two sides each set
 * their own word and read the other's; at least one must see the other). Release and acquire do not give that.
 */
KVLI_FN uint32_t word32_exchange_seq_sys(struct word32 *w, uint32_t v)
{
#if defined(__CUDA_ARCH__)
	uint32_t old_;
	__threadfence_system();
	old_ = atomicExch_system(&w->v, v);
	__threadfence_system();
	return old_;
#else
	uint32_t old_;

	KVLI_POINT();
	old_ = __atomic_exchange_n(&w->v, v, __ATOMIC_SEQ_CST);
	KVLI_POINT();
	return old_;
#endif
}

KVLI_FN uint64_t word64_exchange_seq_sys(struct word64 *w, uint64_t v)
{
#if defined(__CUDA_ARCH__)
	unsigned long long old_;
	__threadfence_system();
	old_ = atomicExch_system((unsigned long long *)&w->v, (unsigned long long)v);
	__threadfence_system();
	return old_;
#else
	uint64_t old_;

	KVLI_POINT();
	old_ = __atomic_exchange_n(&w->v, v, __ATOMIC_SEQ_CST);
	KVLI_POINT();
	return old_;
#endif
}

KVLI_FN uint32_t word32_add_seq_sys(struct word32 *w, uint32_t v)
{
#if defined(__CUDA_ARCH__)
	uint32_t old_;
	__threadfence_system();
	old_ = atomicAdd_system(&w->v, v);
	__threadfence_system();
	return old_ + v;
#else
	uint32_t new_;

	KVLI_POINT();
	new_ = __atomic_add_fetch(&w->v, v, __ATOMIC_SEQ_CST);
	KVLI_POINT();
	return new_;
#endif
}

/* 1 and w = to when w was from. */
KVLI_FN int word32_cas_seq_sys(struct word32 *w, uint32_t from, uint32_t to)
{
#if defined(__CUDA_ARCH__)
	uint32_t old_;
	__threadfence_system();
	old_ = atomicCAS_system(&w->v, from, to);
	__threadfence_system();
	return old_ == from;
#else
	int done_;

	KVLI_POINT();
	done_ = __atomic_compare_exchange_n(&w->v, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	KVLI_POINT();
	return done_;
#endif
}

KVLI_FN int word64_cas_seq_sys(struct word64 *w, uint64_t from, uint64_t to)
{
#if defined(__CUDA_ARCH__)
	unsigned long long old_;
	__threadfence_system();
	old_ = atomicCAS_system((unsigned long long *)&w->v, (unsigned long long)from,
				(unsigned long long)to);
	__threadfence_system();
	return old_ == from;
#else
	int done_;

	KVLI_POINT();
	done_ = __atomic_compare_exchange_n(&w->v, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	KVLI_POINT();
	return done_;
#endif
}

KVLI_FN uint32_t word32_load_seq_sys(const struct word32 *w)
{
#if defined(__CUDA_ARCH__)
	__threadfence_system();
	KVLI_ASM_LOAD("acquire.sys.u32", uint32_t, "=r", w);
#else
	KVLI_POINT();
	return __atomic_load_n(&w->v, __ATOMIC_SEQ_CST);
#endif
}

KVLI_FN uint64_t word64_load_seq_sys(const struct word64 *w)
{
#if defined(__CUDA_ARCH__)
	__threadfence_system();
	KVLI_ASM_LOAD("acquire.sys.u64", uint64_t, "=l", w);
#else
	KVLI_POINT();
	return __atomic_load_n(&w->v, __ATOMIC_SEQ_CST);
#endif
}

/* A hint to the core inside a spin; spins are bounded by their callers. */
KVLI_FN void kvli_pause(void)
{
#if defined(__CUDA_ARCH__)
	__nanosleep(20);
#elif defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

#endif
