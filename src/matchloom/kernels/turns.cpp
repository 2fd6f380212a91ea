// Turns of processes that share memory: one says that it has written, others wait for all. training/exchange.py calls.

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace {

int64_t nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

bool all_there(const int64_t *const *turns, int64_t count, int64_t turn) {
    for (int64_t n = 0; n < count; n++)
        if (__atomic_load_n(turns[n], __ATOMIC_ACQUIRE) < turn) return false;
    return true;
}

}  // namespace

// What was written before is seen by who sees the turn.
extern "C" void matchloom_say_turn(int64_t *place, int64_t turn) { __atomic_store_n(place, turn, __ATOMIC_RELEASE); }

// Whether all have said the turn within so many nanoseconds. Waits are short where all do the same work: the processor
// is kept, and offered to others between two looks.
extern "C" int matchloom_wait_turn(const int64_t *const *turns, int64_t count, int64_t turn, int64_t patience) {
    const int64_t begun = nanoseconds();
    while (true) {
        for (int look = 0; look < 100; look++)
            if (all_there(turns, count, turn)) return 1;
        const int64_t waited = nanoseconds() - begun;
        if (waited > patience) return 0;
        if (waited > 20'000'000) {  // somebody does something else
            const timespec pause{0, 100'000};
            nanosleep(&pause, nullptr);
        } else {
            sched_yield();
        }
    }
}
