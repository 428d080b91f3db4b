// Chooses the kernels for this processor.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels.h"

#if defined(RGLD_X86) && defined(_MSC_VER)
#pragma comment(lib, "clang_rt.builtins-x86_64.lib")  // has __builtin_cpu_supports; Clang does not link it by itself
#endif

namespace rgld_baseline {
extern const rgld::Kernels kKernels;
}
#ifdef RGLD_X86
namespace rgld_avx2 {
extern const rgld::Kernels kKernels;
}
namespace rgld_avx512 {
extern const rgld::Kernels kKernels;
}
#endif

namespace rgld {
namespace {

// From the slowest to the fastest.
std::vector<const Kernels*> available() {
    std::vector<const Kernels*> found = {&rgld_baseline::kKernels};
#ifdef RGLD_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&rgld_avx2::kKernels);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        found.push_back(&rgld_avx512::kKernels);
#endif
    return found;
}

const Kernels& chosen() {
    const auto found = available();
    const char* asked = std::getenv("RGLD_CPU");
    if (asked == nullptr || *asked == '\0') return *found.back();
    std::string names;
    for (const Kernels* kernels : found) {
        if (std::string(asked) == kernels->name) return *kernels;
        names += std::string(names.empty() ? "" : ", ") + kernels->name;
    }
    throw std::invalid_argument("RGLD_CPU must be one of " + names + " on this processor, got '" + asked +
                                "' instead.");
}

}  // namespace

const Kernels& kernels() {
    static const Kernels& found = chosen();
    return found;
}

}  // namespace rgld
