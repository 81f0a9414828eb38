// The kernels on CUDA, but for those whose tests take long to compile.
#include "sofie/runtime/kernels/capture_tests.h"
#include "sofie/runtime/kernels/gemm_tests.h"
#include "sofie/runtime/kernels/math_tests.h"
#include "sofie/runtime/kernels/normalize_tests.h"
#include "sofie/runtime/kernels/pointwise_tests.h"
#include "sofie/runtime/kernels/random_tests.h"
#include "sofie/runtime/kernels/reduce_tests.h"
#include "sofie/runtime/kernels/scatter_tests.h"
