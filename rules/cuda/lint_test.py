"""Tests of lint.py."""

from __future__ import annotations

import pytest

from rules.cuda import lint


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("namespace {\nint f();\n}", "anonymous namespace"),
        ("namespace\n{\n}", "anonymous namespace"),
        ("namespace [[maybe_unused]] {}", "anonymous namespace"),
        ("static __device__ int x;", "static device variable"),
        ("__device__ static int x = 1;", "static device variable"),
        ("static __constant__ float table[4] = {1, 2, 3, 4};", "static device variable"),
        ("struct S {};\nstatic __managed__ int x{1};", "static device variable"),
        ("const __device__ int x = 1;", "constant device variable"),
        ("namespace n {\n__device__ constexpr float kTable[] = {1, 2};\n}", "constant device"),
        ("__constant__ const int kSize{3};", "constant device variable"),
        ("ALPAKA_STATIC_ACC_MEM_CONSTANT int x;", "static device variable"),
        ("static __global__ void kernel() {}", "static kernel"),
        ("template <class T>\n__global__ static void kernel(T x) {}", "static kernel"),
    ],
)
def test_refuses(source: str, message: str) -> None:
    found = list(lint.problems(source))
    assert len(found) == 1
    assert found[0][1].startswith(message)


@pytest.mark.parametrize(
    "source",
    [
        "namespace sofie {\n}",
        "namespace sofie::kernels {}",
        "namespace short_name = sofie::kernels;",
        "// namespace {\n",
        "/* static __device__ int x; */",
        'const char* text = "namespace {";',
        'const char* text = R"x(namespace { "static __device__ int x;" )x";',
        "constexpr int kCount = 1'000; // it's 'namespace {'\nint y = 2'000;",
        "__device__ int f() { static const int x = 1; return x; }",
        "static __device__ int f(int x) { return x; }",
        "struct S { static constexpr int kRank = 4; __device__ int f(); };",
        "inline constexpr __device__ int kSize = 3;",
        "extern const __device__ int kSize;",
        "__device__ constexpr int f() { const int x = 1; return x; }",
        "struct S { __device__ S& operator=(const S&) const = default; };",
        "struct S { __device__ const S& operator=(int) const; };",
        "__global__ void kernel() { __shared__ float tile[32]; }",
    ],
)
def test_accepts(source: str) -> None:
    assert not list(lint.problems(source))


def test_names_the_line() -> None:
    source = "/* two\nlines */\nint x;\n\n  namespace { }\nstatic\n__device__ int y;\n"
    assert [line for line, _ in lint.problems(source)] == [5, 6]
