// What cuBLASLt's epilogues lack, applied to a matrix product in place.
#ifndef SOFIE_RUNTIME_KERNELS_BIAS_ACTIVATION_H_
#define SOFIE_RUNTIME_KERNELS_BIAS_ACTIVATION_H_

#include "sofie/runtime/blas/blas.h"
#include "sofie/runtime/kernels/math.h"

namespace sofie::kernels {

// d[z, i, j] = epilogue(scale · d[z, i, j] + bias[j]). With scale 0 the old d is not read; no bias
// if it is null.
template <class T, class I>
struct BiasActivation {
  T* d;
  const T* bias;
  I stride;
  I ldd;
  T scale;
  Epilogue epilogue;

  ALPAKA_FN_ACC void operator()(I z, I i, I j) const {
    T& element = d[z * stride + i * ldd + j];
    const T x = (scale == T{0} ? T{0} : scale * element) + (bias == nullptr ? T{0} : bias[j]);
    element = epilogue == Epilogue::kRelu ? Relu(x) : epilogue == Epilogue::kGelu ? Gelu(x) : x;
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_BIAS_ACTIVATION_H_
