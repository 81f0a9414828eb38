"""Provider of the CUDA toolchain."""

CudaToolchainInfo = provider(
    doc = "The CUDA compiler and what code compiled by it needs.",
    fields = {
        "nvcc": "File: the nvcc executable.",
        "compiler_files": "depset of File: everything nvcc reads when it runs.",
        "version": "string: the version of the compiler, such as 13.0.88.",
        "cc_info": "CcInfo: headers and static library of the CUDA runtime.",
    },
)
