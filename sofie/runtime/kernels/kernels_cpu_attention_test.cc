// The kernels on the CPU backends: attention. Compiled with -fopenmp.
#include "sofie/runtime/kernels/attention_tests.h"
