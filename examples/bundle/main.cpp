// cc -c out/numbers.c -o numbers.o && c++ -std=c++17 main.cpp numbers.o -Iout -o main -lpthread -lm -ldl

#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

#include "numbers.h"

// Throw the sentence of a failure.
static void check(int status) {
    if (status)
        throw std::runtime_error(numbers_error());
}

// Run the parts of a launch on new threads, in the place of a program's own executor.
static void on_new_threads(void *, tilewright_part *part, void *job, int32_t threads) {
    std::vector<std::thread> running;
    for (int32_t i = 0; i < threads; i++)
        running.emplace_back(part, job, i);
    for (auto &thread : running)
        thread.join();
}

int main() {
    std::vector<float> x(100000, 1.5f), out(x.size());
    tilewright_queue queue = tilewright_cpu();
    queue.threads = 4;
    queue.parallel = on_new_threads;
    check(numbers_add(&queue, x.data(), x.data(), out.data(), static_cast<int32_t>(x.size())));
    std::printf("1.5 + 1.5 = %g\n", static_cast<double>(out.back()));

    // on a GPU, where there is one: pass pointers of its memory, and a CUstream
    tilewright_queue stream = tilewright_cuda(nullptr);
    if (int status = numbers_load(&stream))
        std::printf("no GPU (%d): %s\n", status, numbers_error());
}
