"""The public rules: ONNX models as C++ libraries, CUDA libraries, and tests on GPUs."""

load("//rules/cuda:cuda_library.bzl", _cuda_library = "cuda_library")
load("//rules/cuda:cuda_toolchain.bzl", _cuda_toolchain = "cuda_toolchain")
load("//rules/cuda:cuda_toolchain_info.bzl", _CudaToolchainInfo = "CudaToolchainInfo")
load("//rules/private:backend_test.bzl", _backend_test = "backend_test")
load("//rules/private:backends.bzl", _backend_defines = "backend_defines", _if_backend = "if_backend")
load("//rules/private:gpu_test.bzl", _gpu_suite = "gpu_suite", _gpu_test = "gpu_test")
load("//rules/private:onnx_cc_library.bzl", _onnx_cc_library = "onnx_cc_library")
load("//rules/private:onnx_model_info.bzl", _OnnxModelInfo = "OnnxModelInfo")
load("//rules/private:onnx_model_test.bzl", _onnx_model_test = "onnx_model_test")
load("//rules/private:pytest.bzl", _pytest_test = "pytest_test")
load("//rules/private:third_party_files.bzl", _third_party_files = "third_party_files")

backend_defines = _backend_defines
backend_test = _backend_test
cuda_library = _cuda_library
cuda_toolchain = _cuda_toolchain
CudaToolchainInfo = _CudaToolchainInfo
gpu_suite = _gpu_suite
gpu_test = _gpu_test
if_backend = _if_backend
onnx_cc_library = _onnx_cc_library
OnnxModelInfo = _OnnxModelInfo
onnx_model_test = _onnx_model_test
pytest_test = _pytest_test
third_party_files = _third_party_files
