// Reads NumPy's files: .npy with one array, .npz with several by name.
#ifndef SOFIE_NPZ_NPZ_H_
#define SOFIE_NPZ_NPZ_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sofie {

// An array in C order, little endian.
struct NpyArray {
  std::string dtype;           // NumPy's name without the byte order: "f4", "i8", "u1", "b1"
  std::vector<int64_t> shape;  // empty for a scalar
  std::vector<std::byte> data;

  int64_t elements() const;
};

// The array in the bytes of a .npy file. Throws std::runtime_error, whose message begins with
// `name`, if they are not such a file, or if the array is in Fortran order, big endian or of a
// dtype that is no plain number.
NpyArray ParseNpy(std::span<const std::byte> bytes, const std::string& name);

// The array of a .npy file. Throws std::runtime_error as ParseNpy does, or if it can't be read.
NpyArray ReadNpy(const std::string& path);

// The arrays of a .npz file as numpy.savez writes it, by name. Throws std::runtime_error as ReadNpy
// does, or if the archive is compressed (numpy.savez_compressed).
std::map<std::string, NpyArray> ReadNpz(const std::string& path);

}  // namespace sofie

#endif  // SOFIE_NPZ_NPZ_H_
