// The kernels on CUDA: attention.
#include "sofie/runtime/kernels/attention_tests.h"
