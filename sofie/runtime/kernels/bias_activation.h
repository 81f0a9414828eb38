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
  using Scalar = typename GemmArgs<T>::Scalar;

  T* d;
  const T* bias;
  I stride;
  I ldd;
  Scalar scale;
  Epilogue epilogue;

  ALPAKA_FN_ACC void operator()(I z, I i, I j) const {
    T& element = d[z * stride + i * ldd + j];
    Scalar x = scale == 0 ? Scalar{0} : scale * Scalar{element};
    if (bias != nullptr) x += Scalar{bias[j]};
    if (epilogue == Epilogue::kRelu) x = Relu(x);
    if (epilogue == Epilogue::kGelu) x = Gelu(x);
    element = static_cast<T>(x);
  }
};

}  // namespace sofie::kernels

#endif  // SOFIE_RUNTIME_KERNELS_BIAS_ACTIVATION_H_
