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
    std::atomic<int64_t> next{0};
    auto work = [&] {
        for (int64_t i; (i = next++) < count;) body(i);
    };
    if (parallel && threads > 1)
        parallel([](void* work_) { (*static_cast<decltype(work)*>(work_))(); }, &work, threads, 0);
    else
        work();
}

}  // namespace
