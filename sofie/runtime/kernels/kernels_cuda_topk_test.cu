// The kernels on CUDA: TopK.
#include "sofie/runtime/kernels/topk_tests.h"
