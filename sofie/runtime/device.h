// Where a session runs.
#ifndef SOFIE_RUNTIME_DEVICE_H_
#define SOFIE_RUNTIME_DEVICE_H_

#include <cstdint>
#include <string>

namespace sofie {

enum class Backend : uint8_t { kCpu, kOpenMp, kCuda };

// "cpu", "openmp", "cuda": the values of --//sofie:backends.
const char* NameOf(Backend backend);

class Device {
 public:
  // One thread of the host.
  static Device Cpu();
  // `threads` threads of the host; 0 means as many as OpenMP would use (OMP_NUM_THREADS).
  // Throws ArgumentError if negative.
  static Device OpenMp(int threads = 0);
  // The CUDA device `index`. `stream` is a cudaStream_t (CUstream) of that device which outlives
  // the session; null means that the session makes a non-blocking stream of its own. Throws
  // ArgumentError if the index is negative.
  static Device Cuda(int index = 0, void* stream = nullptr);

  Backend backend() const { return backend_; }
  int index() const { return index_; }
  void* stream() const { return stream_; }
  // 1 for Cpu; 0 for OpenMp with the default number.
  int threads() const { return threads_; }
  // "cpu", "openmp (4 threads)", "cuda:0".
  std::string ToString() const;

 private:
  Device(Backend backend, int index, void* stream, int threads)
      : backend_(backend), index_(index), stream_(stream), threads_(threads) {}

  Backend backend_;
  int index_;
  void* stream_;
  int threads_;
};

}  // namespace sofie

#endif  // SOFIE_RUNTIME_DEVICE_H_
