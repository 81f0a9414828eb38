// The kernels on CUDA: dense layers.
#include "sofie/runtime/kernels/dense_tests.h"
