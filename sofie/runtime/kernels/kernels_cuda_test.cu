// The kernels on CUDA.
#include "sofie/runtime/kernels/capture_tests.h"
#include "sofie/runtime/kernels/dense_tests.h"
#include "sofie/runtime/kernels/gemm_tests.h"
#include "sofie/runtime/kernels/math_tests.h"
#include "sofie/runtime/kernels/normalize_tests.h"
#include "sofie/runtime/kernels/pointwise_tests.h"
#include "sofie/runtime/kernels/reduce_tests.h"
#include "sofie/runtime/kernels/topk_tests.h"
