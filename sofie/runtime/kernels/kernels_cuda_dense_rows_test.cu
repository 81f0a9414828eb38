// The kernels on CUDA: dense layers of single rows and of other precisions than float.
#include "sofie/runtime/kernels/dense_rows_tests.h"
