// Running sums and products on the CPU.
#ifndef SOFIE_RUNTIME_KERNELS_SCAN_CPU_H_
#define SOFIE_RUNTIME_KERNELS_SCAN_CPU_H_

#include <algorithm>
#include <cstdint>

#include "sofie/runtime/kernels/scan.h"

namespace sofie::kernels {

// The units are tiles of kTile lines that lie side by side.
template <class T, class Combine>
struct ScanOnCpu {
  static constexpr int64_t kTile = 64;

  ScanArgs<T> args;

  static int64_t Tiles(const ScanArgs<T>& args) { return (args.inner + kTile - 1) / kTile; }

  [[gnu::noinline]] void Run(int64_t begin, int64_t end) const {
    const ScanArgs<T> a = args;
    const int64_t tiles = Tiles(a);
    const Combine combine;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % tiles * kTile;
      const int64_t width = std::min(kTile, a.inner - first);
      T running[kTile];
      std::fill_n(running, kTile, Combine::Identity());
      for (int64_t step = 0; step < a.axis; ++step) {
        const int64_t at = a.At(unit / tiles * a.inner + first, step);
        const T* const x = a.x + at;
        T* const out = a.out + at;
        if (a.exclusive) {
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            const T before = running[i];
            running[i] = combine(before, x[i]);
            out[i] = before;
          }
        } else {
#pragma GCC ivdep
          for (int64_t i = 0; i < width; ++i) {
            running[i] = combine(running[i], x[i]);
            out[i] = running[i];
          }
        }
      }
    }
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_SCAN_CPU_H_
