#include "tests/alpaka_model_tests.h"
