// Tasks on threads. The threads end with the call: there is no pool that a fork could break or that exit waits for.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

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

// Calls work(task, worker) once for each task 0 .. n_tasks - 1, in no particular order. `worker` is the thread that
// does it, from 0 to n_threads - 1. The first exception stops the others and is thrown here.
template <class Work>
void run_tasks(const Run& run, size_t n_tasks, Work&& work) {
    std::atomic<size_t> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr failure;
    std::mutex failure_lock;
    auto last_asked = std::chrono::steady_clock::now();

    auto loop = [&](size_t worker) {
        try {
            for (size_t task; !stop && (task = next++) < n_tasks;) {
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

    const size_t n_workers = std::min(size_t(std::max(run.n_threads, 1)), n_tasks);
    std::vector<std::thread> threads;
    try {
        for (size_t worker = 1; worker < n_workers; ++worker) threads.emplace_back(loop, worker);
    } catch (...) {
        // The system has no more threads: those that run, and this one, do the work.
    }
    loop(0);
    for (auto& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace rgld
