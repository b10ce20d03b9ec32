// Loops in several threads.

#pragma once

#include <atomic>
#include <cstdint>

namespace {

// GOMP_parallel of the OpenMP library that torch uses, so its threads already exist; calls a
// function in a number of threads. Null if there is none.
typedef void (*Parallel)(void (*)(void*), void*, unsigned, unsigned);

// Calls body(i) for each i below count; each thread takes the next i when it is free.
template <class Body>
void for_each(int64_t count, Parallel parallel, int64_t threads, Body body) {
    struct Work {
        std::atomic<int64_t> next;
        int64_t count;
        Body& body;
    } work{{0}, count, body};
    const auto take_part = [](void* shared) {
        Work& work = *static_cast<Work*>(shared);
        for (int64_t i; (i = work.next++) < work.count;) work.body(i);
    };
    if (parallel && threads > 1)
        parallel(take_part, &work, threads, 0);
    else
        take_part(&work);
}

}  // namespace
