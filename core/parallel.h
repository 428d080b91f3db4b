// Tasks on threads. The threads end with the call or with the team of the calling thread, which lives as long as a fit:
// there is no pool that a fork could break or that exit waits for.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "placing.h"
#ifndef _WIN32
#include <unistd.h>
#endif

namespace rgld {

struct Interrupted : std::runtime_error {
    Interrupted() : std::runtime_error("interrupted") {}
};

// How a call runs: on how many threads, and a function that says whether to stop. Only the calling thread calls it.
struct Run {
    int n_threads = 1;
    std::function<bool()> asked_to_stop;
};

constexpr auto kAskEvery = std::chrono::milliseconds(50);
constexpr auto kLookFor = std::chrono::milliseconds(2);

// Threads that wait for work as long as the team lives. A fit makes about twenty calls of a millisecond each, and the
// start of a thread takes a tenth of that or more: on virtual machines, 0.2 to 0.4 ms pass before a new thread runs.
// Between calls a thread looks for work for a moment, giving way to all others, and then sleeps.
class Team {
  public:
    explicit Team(size_t n_threads) {
        try {
            for (size_t worker = 1; worker < n_threads; ++worker)
                threads_.emplace_back([this, worker] { serve(worker); });
        } catch (...) {
            // The system has no more threads: those that run, and the caller, do the work.
        }
    }

    ~Team() { end(); }

    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Ends the threads. Not in the child of a fork, which has none of them and would wait for ever.
    void end() {
        start(nullptr);
        for (auto& thread : threads_) thread.join();
        threads_.clear();
    }

    // Other work of the caller, on a thread of its own, borrows a core. A thread of the team that had to share its core
    // would keep the others waiting at the end of each call.
    void lend() { ++n_lent_; }
    void take_back() { --n_lent_; }

    // How many may work now.
    size_t n_workers() const { return threads_.size() + 1 - std::min(threads_.size(), n_lent_.load()); }

    // Whether this is the copy of a team in the child of a fork. Such a copy is of no use, and must not be destroyed.
    bool is_copy() const { return owner_ != process(); }

    // Calls work(worker) on the threads and, as worker 0, here. It must not throw.
    void run(const std::function<void(size_t)>& work) {
        n_busy_.store(threads_.size(), std::memory_order_relaxed);
        start(&work);
        work(0);
        wait([this] { return n_busy_.load(std::memory_order_acquire) == 0; });
    }

    // The team that works for the calling thread; none if null.
    static Team*& current() {
        static thread_local Team* team = nullptr;
        return team;
    }

  private:
    static long process() {
#ifdef _WIN32
        return 0;  // there is no fork
#else
        return long(getpid());
#endif
    }

    // Begins a round: calls the work on every thread or, without work, ends them.
    void start(const std::function<void(size_t)>* work) {
        {
            std::lock_guard<std::mutex> hold(lock_);
            work_ = work;
            round_.fetch_add(1, std::memory_order_release);
        }
        changed_.notify_all();
    }

    void serve(size_t worker) {
        for (size_t round = 1;; ++round) {
            wait([&] { return round_.load(std::memory_order_acquire) >= round; });
            if (!work_) return;
            (*work_)(worker);
            if (n_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                std::lock_guard<std::mutex> hold(lock_);  // the caller may be about to sleep
                changed_.notify_all();
            }
        }
    }

    template <class Condition>
    void wait(Condition&& holds) {
        const auto until = std::chrono::steady_clock::now() + kLookFor;
        while (!holds()) {
            if (std::chrono::steady_clock::now() > until) {
                std::unique_lock<std::mutex> hold(lock_);
                changed_.wait(hold, holds);
                return;
            }
            std::this_thread::yield();
        }
    }

    const long owner_ = process();
    const std::function<void(size_t)>* work_ = nullptr;
    std::atomic<size_t> round_{0}, n_busy_{0}, n_lent_{0};
    std::mutex lock_;
    std::condition_variable changed_;
    std::vector<Thread> threads_;  // last: the threads use all of the above
};

// Calls work(task, worker) once for each task 0 .. n_tasks - 1, in no particular order. `worker` is the thread that
// does it, from 0 to n_threads - 1. The first exception stops the others and is thrown here.
template <class Work>
void run_tasks(const Run& run, size_t n_tasks, Work&& work) {
    std::atomic<size_t> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr failure;
    std::mutex failure_lock;
    auto last_asked = std::chrono::steady_clock::now();

    const size_t n_workers = std::min(size_t(std::max(run.n_threads, 1)), n_tasks);
    Team* team = n_workers > 1 ? Team::current() : nullptr;
    if (team && team->is_copy()) team = nullptr;

    // A caller whose threads are all lent works alone until one comes back.
    auto loop = [&](size_t worker, bool until_helped) {
        try {
            for (size_t task; !stop && !(until_helped && team->n_workers() > 1) && (task = next++) < n_tasks;) {
                work(task, worker);
                if (worker == 0 && run.asked_to_stop) {
                    const auto now = std::chrono::steady_clock::now();
                    if (now - last_asked > kAskEvery) {
                        last_asked = now;
                        if (run.asked_to_stop()) throw Interrupted();
                    }
                }
            }
        } catch (...) {
            std::lock_guard<std::mutex> hold(failure_lock);
            if (!failure) failure = std::current_exception();
            stop = true;
        }
    };

    if (team) {
        if (team->n_workers() == 1) loop(0, true);
        const size_t n_free = std::min(n_workers, team->n_workers());
        if (!stop && next < n_tasks)
            team->run([&](size_t worker) {
                if (worker < n_free) loop(worker, false);
            });
        if (failure) std::rethrow_exception(failure);
        return;
    }
    std::vector<Thread> threads;
    try {
        for (size_t worker = 1; worker < n_workers; ++worker)
            threads.emplace_back([&loop, worker] { loop(worker, false); });
    } catch (...) {
        // The system has no more threads: those that run, and this one, do the work.
    }
    loop(0, false);
    for (auto& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace rgld
