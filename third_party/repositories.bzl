"""The repositories of third-party code, as pinned in lock.json."""

load(":package.bzl", "archive_package", "cuda_hub", "python_hub", "python_package")
load(":python.bzl", "local_python")

# The packages' own tests, which nothing here runs, are most of their files.
_PYTHON_EXCLUDES = {
    "numpy": ["numpy/*/tests/*", "numpy/f2py/*", "*.a", "*.lib"],
    "sympy": ["*/tests/*", "share/*"],
}

# Programs inside Python packages, as targets of the hub.
_PROGRAMS = {
    "clang_format": "site-packages/clang_format/data/bin/clang-format",
    "ruff": "scripts/ruff",
}

# The packages that each repository of C++ and CUDA code is made of.
ARCHIVES = {
    "alpaka": ["CLUEstering==2.0.1"],
    "boost": ["boost-headers==1.85.0.post1"],
    "cublas_13_0": ["nvidia-cublas==13.1.0.3"],
    "cublas_13_5": ["nvidia-cublas==13.10.0.20"],
    "cuda_13_0": [
        "nvidia-cuda-cccl==13.0.85",
        "nvidia-cuda-crt==13.0.88",
        "nvidia-cuda-nvcc==13.0.88",
        "nvidia-cuda-runtime==13.0.96",
        "nvidia-nvvm==13.0.88",
        "nvidia-curand==10.4.0.35",
    ],
    "cuda_13_5": [
        "nvidia-cuda-cccl==13.3.5.0.6",
        "nvidia-cuda-crt==13.5.37",
        "nvidia-cuda-nvcc==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-nvvm==13.5.37",
        "nvidia-curand==10.4.5.25",
    ],
    "cutlass": ["nvidia-cutlass==4.2.0.0"],
    "googletest": ["ros-gtest-vendor==1.15.1"],
    "openblas": ["scipy-openblas32==0.3.34.481.3"],
}

# Releases of CUDA, as //rules/cuda:version names them; each has two of the repositories above.
_CUDA_VERSIONS = {
    "13.0": "13_0",
    "13.5": "13_5",
}

# Where a machine's own toolkit keeps what lies in these places of the packages' tree.
_CUDA_HOME = "SOFIE_CUDA_HOME"
_CUDA_LINKS = {
    "bin": "bin",
    "include": "include",
    "lib": "lib64",
    "nvvm": "nvvm",
}
_CUBLAS_FILES = [
    "include/cublasLt.h",
    "include/cublas_api.h",
    "lib/libcublasLt.so.13",
]

def _key(requirement):
    """The name of a package's entry in lock.json."""
    return requirement.replace("==", "_").replace("-", "_").replace(".", "_").lower()

def third_party_repositories(lock):
    """Declares the repositories.

    Args:
      lock: the content of lock.json.
    """

    def archive(name, build_file = None, **kwargs):
        archive_package(
            name = name,
            build_file = Label("//third_party:{}.BUILD.bazel".format(build_file or name)),
            packages = [json.encode(lock["archives"][_key(package)]) for package in ARCHIVES[name]],
            **kwargs
        )

    local_python(name = "local_python")
    for name, package in lock["python"].items():
        python_package(
            name = "pypi_" + name,
            exclude = _PYTHON_EXCLUDES.get(name, []),
            package = json.encode(package),
            program = _PROGRAMS.get(name, ""),
        )
    python_hub(
        name = "pypi",
        packages = sorted(lock["python"]),
        programs = sorted(_PROGRAMS),
    )

    archive(
        "alpaka",
        strip_prefix = "CLUEstering-2.0.1/extern/alpaka/",
    )
    archive(
        "boost",
        strip_prefix = "boost_headers/",
        # What alpaka reads: 2 of its 150 MB.
        include = [
            "include/boost/config.hpp",
            "include/boost/config/*",
            "include/boost/core/*",
            "include/boost/predef.h",
            "include/boost/predef/*",
            "include/boost/version.hpp",
        ],
    )
    archive(
        "googletest",
        strip_prefix = "ros_gtest_vendor-1.15.1.data/data/src/gtest_vendor/",
    )
    archive(
        "openblas",
        strip_prefix = "scipy_openblas32/",
    )
    for version, suffix in _CUDA_VERSIONS.items():
        archive(
            "cuda_" + suffix,
            build_file = "cuda",
            strip_prefix = "nvidia/cu{}/".format(version.split(".")[0]),
            # cuRAND's library is not used: alpaka's headers include its headers.
            exclude = [
                ".metadata/*",
                "lib/cmake/*",
                "lib/libcudart.so*",
                "lib/libcurand*",
                "lib/libnvvm*",
            ],
            home = _CUDA_HOME,
            home_links = _CUDA_LINKS,
        )
        archive(
            "cublas_" + suffix,
            build_file = "cublas",
            strip_prefix = "nvidia/cu{}/".format(version.split(".")[0]),
            include = _CUBLAS_FILES,
            home = _CUDA_HOME,
            home_links = {file: file.replace("lib/", "lib64/") for file in _CUBLAS_FILES},
        )
    cuda_hub(
        name = "cuda",
        suffixes = _CUDA_VERSIONS,
    )
    archive(
        "cutlass",
        strip_prefix = "cutlass_library/source/",
        include = ["include/*"],
    )
