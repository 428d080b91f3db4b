// Threads that begin on another core than the thread that starts them. Left to itself, a kernel that saves cores puts a
// new thread on the core of its maker, which is busy: on some virtual machines it begins 4 ms later, when a fit may be
// over. Once a thread runs, the kernel may move it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#ifdef __GLIBC__
#include <pthread.h>
#include <sched.h>
#endif

namespace rgld {

#ifdef __GLIBC__

// The cores that a thread may use, as the kernel knows them.
class Cores {
  public:
    // Those of the calling thread.
    Cores() : is_known_(pthread_getaffinity_np(pthread_self(), sizeof(cores_), &cores_) == 0) {}

    // All but one of them. False if there is no other.
    bool leave_out(int core) {
        if (!is_known_ || core < 0 || core >= CPU_SETSIZE) return false;
        CPU_CLR(size_t(core), &cores_);
        return CPU_COUNT(&cores_) > 0;
    }

    void use_in(pthread_attr_t& attributes) const { pthread_attr_setaffinity_np(&attributes, sizeof(cores_), &cores_); }

    void use_here() const {
        if (is_known_) pthread_setaffinity_np(pthread_self(), sizeof(cores_), &cores_);
    }

  private:
    cpu_set_t cores_;
    bool is_known_;
};

inline int current_core() { return sched_getcpu(); }

// Moves the calling thread away from a core, to which it may come back later.
inline void leave_core(int core) {
    const Cores all;
    Cores others = all;
    if (!others.leave_out(core)) return;
    others.use_here();
    all.use_here();
}

class Thread {
  public:
    explicit Thread(std::function<void()> work) {
        auto begun = std::make_unique<Begun>(Begun{std::move(work), Cores()});
        Cores others = begun->cores;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        if (others.leave_out(current_core())) others.use_in(attributes);
        int failure = pthread_create(&thread_, &attributes, &run, begun.get());
        pthread_attr_destroy(&attributes);
        // Where a thread may not choose its cores, it begins where the kernel puts it.
        if (failure) failure = pthread_create(&thread_, nullptr, &run, begun.get());
        if (failure) throw std::system_error(failure, std::generic_category());
        (void)begun.release();
    }

    Thread(Thread&& other) noexcept : thread_(other.thread_), is_joinable_(std::exchange(other.is_joinable_, false)) {}
    Thread& operator=(Thread&&) = delete;

    ~Thread() {
        if (is_joinable_) std::terminate();
    }

    void join() {
        pthread_join(thread_, nullptr);
        is_joinable_ = false;
    }

  private:
    struct Begun {
        std::function<void()> work;
        Cores cores;
    };

    static void* run(void* argument) {
        const std::unique_ptr<Begun> begun(static_cast<Begun*>(argument));
        begun->cores.use_here();
        begun->work();
        return nullptr;
    }

    pthread_t thread_;
    bool is_joinable_ = true;
};

#else

inline int current_core() { return -1; }
inline void leave_core(int) {}
using Thread = std::thread;

#endif

}  // namespace rgld
