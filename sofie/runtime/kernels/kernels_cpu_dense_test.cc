// The kernels on the CPU backends: dense layers. Compiled with -fopenmp.
#include "sofie/runtime/kernels/dense_rows_tests.h"
#include "sofie/runtime/kernels/dense_tests.h"
