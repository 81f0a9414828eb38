#include "sofie/npz/npz.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace sofie {
namespace {

// Files that NumPy itself wrote; see npz_testdata.py.
std::string File(const std::string& name) { return std::string(SOFIE_NPZ_TESTDATA) + "/" + name; }

template <class T>
std::vector<T> Values(const NpyArray& array) {
  std::vector<T> values(static_cast<size_t>(array.elements()));
  EXPECT_EQ(array.data.size(), values.size() * sizeof(T));
  std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

template <class Function>
std::string MessageOf(const Function& function) {
  try {
    function();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

// A refusal names the file and says what is wrong with it.
template <class Function>
void ExpectRefusal(const Function& function, const std::string& part) {
  const std::string message = MessageOf(function);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Npz, ReadsEveryArray) {
  const auto arrays = ReadNpz(File("several.npz"));
  ASSERT_EQ(arrays.size(), 5);
  EXPECT_EQ(arrays.at("floats").dtype, "f4");
  EXPECT_EQ(arrays.at("floats").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(Values<float>(arrays.at("floats")), (std::vector<float>{0, 1, 2, 3, 4, -5.5}));
  EXPECT_EQ(arrays.at("integers").dtype, "i8");
  EXPECT_EQ(arrays.at("integers").shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(Values<int64_t>(arrays.at("integers")),
            (std::vector<int64_t>{-1, 0, int64_t{1} << 40}));
  EXPECT_EQ(arrays.at("flags").dtype, "b1");
  EXPECT_EQ(Values<uint8_t>(arrays.at("flags")), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(arrays.at("scalar").shape, (std::vector<int64_t>{}));
  EXPECT_EQ(Values<double>(arrays.at("scalar")), (std::vector<double>{0.25}));
  EXPECT_EQ(arrays.at("empty").shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(arrays.at("empty").elements(), 0);
}

TEST(Npz, ReadsOneArray) {
  const NpyArray array = ReadNpy(File("halves.npy"));
  EXPECT_EQ(array.dtype, "f2");
  EXPECT_EQ(Values<uint16_t>(array), (std::vector<uint16_t>{0x3c00, 0xc000}));
}

TEST(Npz, RefusesWhatItCannotRead) {
  ExpectRefusal([] { ReadNpz(File("compressed.npz")); },
                "compressed.npz: 'x.npy' is compressed; write the file with numpy.savez.");
  ExpectRefusal([] { ReadNpy(File("fortran.npy")); }, "Fortran order");
  ExpectRefusal([] { ReadNpy(File("big_endian.npy")); }, "'>f4'");
  ExpectRefusal([] { ReadNpy(File("text.npy")); }, "'<U2'");
  ExpectRefusal([] { ReadNpz(File("halves.npy")); }, "no .npz file");
  ExpectRefusal([] { ReadNpy(File("several.npz")); }, "no .npy file");
  ExpectRefusal([] { ReadNpy("/nonexistent/x.npy"); }, "can't be opened");
}

TEST(Npz, NoCutMakesItReadBeyondTheEnd) {
  std::ifstream file(File("halves.npy"), std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  const auto parse = [&](size_t bytes) {
    // A vector of exactly these bytes, so that a sanitizer sees reads behind them.
    std::vector<std::byte> part(bytes);
    std::memcpy(part.data(), whole.data(), bytes);
    ParseNpy(part, "part");
  };
  ASSERT_GT(whole.size(), 80);
  EXPECT_NO_THROW(parse(whole.size()));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_THROW(parse(bytes), std::runtime_error) << bytes;
  }
}

TEST(Npz, RefusesACutArchive) {
  std::ifstream file(File("several.npz"), std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/cut.npz";
  for (size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, bytes);
    EXPECT_THROW(ReadNpz(path), std::runtime_error) << bytes;
  }
}

}  // namespace
}  // namespace sofie
