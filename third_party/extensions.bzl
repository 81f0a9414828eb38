"""The module extension that declares all third-party code of this workspace."""

load(":package.bzl", "archive_package", "python_hub", "python_package")
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

def _third_party_impl(module_ctx):
    lock = json.decode(module_ctx.read(Label("//third_party:lock.json")))

    def archive(name, packages, **kwargs):
        archive_package(
            name = name,
            build_file = Label("//third_party:{}.BUILD.bazel".format(name)),
            packages = [json.encode(lock["archives"][package]) for package in packages],
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
        ["cluestering"],
        strip_prefix = "CLUEstering-2.0.1/extern/alpaka/",
    )
    archive(
        "boost",
        ["boost_headers"],
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
        ["ros_gtest_vendor"],
        strip_prefix = "ros_gtest_vendor-1.15.1.data/data/src/gtest_vendor/",
    )
    archive(
        "openblas",
        ["scipy_openblas32"],
        strip_prefix = "scipy_openblas32/",
    )
    archive(
        "cuda",
        [
            "nvidia_cuda_cccl",
            "nvidia_cuda_crt",
            "nvidia_cuda_nvcc",
            "nvidia_cuda_runtime",
            "nvidia_nvvm",
            "nvidia_curand",
        ],
        strip_prefix = "nvidia/cu13/",
        # cuRAND's library is not used: alpaka's headers include its headers.
        exclude = [
            ".metadata/*",
            "lib/cmake/*",
            "lib/libcudart.so*",
            "lib/libcurand*",
            "lib/libnvvm*",
        ],
    )
    archive(
        "cublas",
        ["nvidia_cublas"],
        strip_prefix = "nvidia/cu13/",
        include = [
            "include/cublasLt.h",
            "include/cublas_api.h",
            "lib/libcublasLt.so.13",
        ],
    )
    archive(
        "cutlass",
        ["nvidia_cutlass"],
        strip_prefix = "cutlass_library/source/",
        include = ["include/*"],
    )

    return module_ctx.extension_metadata(reproducible = True)

third_party = module_extension(
    implementation = _third_party_impl,
    doc = "Declares the repositories of third-party code, as pinned in lock.json.",
)
